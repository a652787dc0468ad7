"""The small frames behind the figures: however long the trace, a figure gets a few hundred points at most."""

from __future__ import annotations

import numpy as np
import polars as pl

from gputwin.core.units import DAY, HOUR
from gputwin.report.timeline import Timeline

MOST_POINTS = 400
MOST_METRICS = 12
OTHERS = "others"
_METRIC_BINS = 200
_SLOT = HOUR / 4
"""Offsets of time zones are multiples of a quarter of an hour."""
_MOST_SLOTS = 4_000_000


def known_sum(expression: pl.Expr) -> pl.Expr:
    """Return the sum of what is known; null, not zero, where nothing is."""
    return pl.when(expression.count() > 0).then(expression.sum())


def mean(values: pl.Series) -> float:
    """Return the mean of what is known; 0 where nothing is."""
    return float(values.mean() or 0.0)  # type: ignore[arg-type]


def largest(values: pl.Series) -> float:
    """Return the largest value known; 0 where none is."""
    return float(values.max() or 0.0)  # type: ignore[arg-type]


def counts_over_time(times: pl.Series, timeline: Timeline) -> pl.DataFrame:
    """Return how many times fall into each bin: `begin` and `end` in s, `from` and `to` as shown, and `count`."""
    low, high = float(times.min()), float(times.max())  # type: ignore[arg-type]
    bins = timeline.bins(low, high)
    found = times.to_frame("time").group_by(bins.number(pl.col("time")).alias("bin")).agg(pl.len().alias("count"))
    return (
        bins.frame()
        .join(found, on="bin", how="left", maintain_order="left")
        .select(
            "begin",
            "end",
            timeline.shown(pl.col("begin")).alias("from"),
            timeline.shown(pl.col("end")).alias("to"),
            pl.col("count").fill_null(0).cast(pl.Int64),
        )
    )


def weekly_rate(times: pl.Series, timeline: Timeline) -> pl.DataFrame | None:
    """Return arrivals per hour for each local weekday (1 = Monday) and hour; None without a day of true local times.

    A cell's rate is its arrivals over the hours of that kind between the first and the last arrival; cells that the
    trace does not cover are absent.
    """
    low, high = float(times.min()), float(times.max())  # type: ignore[arg-type]
    if timeline.origin is None or high - low < DAY or (high - low) / _SLOT > _MOST_SLOTS:
        return None
    local = timeline.local(pl.col("time"))
    cell = (local.dt.weekday().alias("weekday"), local.dt.hour().alias("hour"))
    first = np.floor((low + timeline.origin) / _SLOT) * _SLOT - timeline.origin
    slots = pl.DataFrame({"time": np.arange(first, high + 1e-9, _SLOT)})
    covered = slots.group_by(cell).agg((pl.len() * (_SLOT / HOUR)).alias("hours_covered"))
    arrivals = times.to_frame("time").group_by(cell).agg(pl.len().cast(pl.Int64).alias("arrivals"))
    return (
        covered.join(arrivals, on=["weekday", "hour"], how="left")
        .with_columns(pl.col("arrivals").fill_null(0))
        .with_columns((pl.col("arrivals") / pl.col("hours_covered")).alias("per_hour"))
        .sort("weekday", "hour")
    )


def distribution(values: pl.Series) -> pl.DataFrame:
    """Return the empirical distribution function at up to 400 of its points: `value` and `share` of values ≤ it."""
    known = values.drop_nulls()
    value, counts = np.unique(known.filter(known.is_finite()).to_numpy(), return_counts=True)
    total = int(counts.sum())
    cumulative = np.cumsum(counts)
    if value.size > MOST_POINTS:
        # Even steps of probability, then finer and finer ones into the tail, where the long jobs are.
        body = np.linspace(0.0, 1.0, MOST_POINTS * 3 // 4)
        tail = 1.0 - np.geomspace(0.02, 0.5 / total, MOST_POINTS // 4)
        ranks = np.unique(np.searchsorted(cumulative, np.concatenate([body, tail]) * total).clip(max=value.size - 1))
        value, cumulative = value[ranks], cumulative[ranks]
    return pl.DataFrame({"value": value.astype(np.float64), "share": cumulative / max(total, 1)})


def concentration(totals: pl.DataFrame) -> pl.DataFrame:
    """Return the share of tasks and GPU-hours of the largest owners, at up to 400 ranks, each measure ranked by itself.

    `owner_share` of owners have `task_share` of the tasks; the row of rank 0 is where both begin.
    """
    ranks = np.unique(np.linspace(0, totals.height, min(totals.height + 1, MOST_POINTS)).round().astype(np.int64))
    columns = {"rank": ranks, "owner_share": ranks / totals.height}
    for name in ("task_share", "gpu_hour_share"):
        if totals[name].count():
            largest_first = totals[name].fill_null(0.0).sort(descending=True).to_numpy()
            cumulative = np.concatenate([[0.0], np.cumsum(largest_first)])
            columns[name] = cumulative[ranks].clip(max=1.0)
    return pl.DataFrame(columns)


def gpus_by_model(nodes: pl.DataFrame, most: int = 20) -> pl.DataFrame:
    """Return `model`, `gpus` and `nodes`, most GPUs first; what does not fit into `most` rows becomes "others"."""
    totals = (
        nodes.filter(pl.col("gpu_count") > 0)
        .group_by(pl.col("gpu_model").fill_null("unknown").alias("model"))
        .agg(pl.col("gpu_count").cast(pl.Int64).sum().alias("gpus"), pl.len().cast(pl.Int64).alias("nodes"))
        .sort(["gpus", "model"], descending=[True, False])
    )
    if totals.height <= most:
        return totals
    rest = totals[most - 1 :].select(pl.lit(OTHERS).alias("model"), pl.col("gpus", "nodes").sum())
    return pl.concat([totals[: most - 1], rest])


def metrics_over_time(series: pl.LazyFrame, timeline: Timeline) -> pl.DataFrame:
    """Return the mean over entities of each metric per bin: `metric`, `time` in s, `value`.

    The twelve metrics with most samples; an entity counts once per bin, however often it was sampled.
    """
    known = series.filter(pl.col("value").is_finite() & pl.col("time").is_finite())
    samples = known.group_by("metric").agg(pl.len().alias("samples")).collect()
    chosen = samples.sort(["samples", "metric"], descending=[True, False])["metric"].head(MOST_METRICS)
    if not chosen.len():
        return pl.DataFrame(schema={"metric": pl.String, "time": pl.Float64, "value": pl.Float64})
    known = known.filter(pl.col("metric").is_in(chosen.to_list()))
    low, high = known.select(low=pl.col("time").min(), high=pl.col("time").max()).collect().row(0)
    bins = timeline.bins(low, high, _METRIC_BINS)
    means = (
        known.group_by("metric", bins.number(pl.col("time")).alias("bin"), "entity")
        .agg(pl.col("value").mean())
        .group_by("metric", "bin")
        .agg(pl.col("value").sort().mean())
        .collect()
    )
    order = pl.DataFrame({"metric": chosen}).with_row_index("order")
    return (
        means.join(bins.frame().select("bin", pl.col("begin").alias("time")), on="bin")
        .join(order, on="metric")
        .sort("order", "bin")
        .select("metric", "time", "value")
    )


def token_classes(requests: pl.LazyFrame) -> pl.DataFrame:
    """Return requests by number of tokens in powers of two: `tokens` (the class), `direction` and `requests`."""
    counts = []
    for direction, column in (("input", "input_tokens"), ("output", "output_tokens")):
        tokens = requests.select(pl.col(column).alias("n")).filter(pl.col("n") >= 0).collect()["n"].to_numpy()
        # frexp gives the number of binary digits, exactly: 0 → 0, 1 → 1, 2–3 → 2, 4–7 → 3, …
        digits = np.frexp(tokens.astype(np.float64))[1]
        value, count = np.unique(digits, return_counts=True)
        counts += [(int(v), direction, int(c)) for v, c in zip(value, count, strict=True)]
    schema = {"digits": pl.Int64, "direction": pl.String, "requests": pl.Int64}
    frame = pl.DataFrame(counts, schema=schema, orient="row")
    labels = {d: _token_label(d) for d in frame["digits"].unique().to_list()}
    return frame.sort("digits", "direction").select(
        pl.col("digits").replace_strict(labels, return_dtype=pl.String).alias("tokens"), "direction", "requests"
    )


def _token_label(digits: int) -> str:
    if digits < 2:
        return str(digits)
    return f"{2 ** (digits - 1):,}–{2**digits - 1:,}"
