"""Requests to model-serving systems: rates and their bursts, tokens, clients, and sessions where prefixes tell them."""

from __future__ import annotations

from typing import Any

import polars as pl

from gputwin.analysis.bins import Bins
from gputwin.analysis.sessions import sessions
from gputwin.analysis.topic import Remark, Topic
from gputwin.analysis.words import duration, share
from gputwin.core.units import MINUTE

CLIENT_RATE = "request_rate_per_s"
CLIENT_CV = "interarrival_cv"
_TOKENS = ("input_tokens", "output_tokens")
_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_LARGEST_CLIENTS = 10_000
_FEWEST = 20
_MOST_BINS = 50_000
_NOTES = (
    "Rates are over the time from the first to the last request; the peak is the fullest minute.",
    "A session is a chain of requests each of which begins with all prefix blocks of an earlier one but the last, which "
    "may be partly filled; one block alone, often a system prompt, makes no session. The gap is from one turn's arrival to "
    "the next. Blocks seen before are what an unlimited prefix cache could have kept.",
    "A client's CV is that of the gaps between its requests: 1 is a Poisson process, more is bursty.",
)


def requests(frame: pl.DataFrame, series: pl.DataFrame | None) -> Topic | None:
    """Return what requests ask for and when; None where there are neither requests nor rates of clients."""
    tables: dict[str, pl.DataFrame] = {}
    timed = frame.filter(pl.col("submit_time").is_not_null())
    if frame.height:
        tables["totals"] = totals(frame)
        tables["tokens"] = tokens(frame)
        tables["over_time"] = over_time(timed)
        tables["clients"] = clients(frame)
        tables["sessions"] = sessions(timed)
    if series is not None and series.height:
        tables["client_rates"] = client_rates(series)
    tables = {name: table for name, table in tables.items() if not table.is_empty()}
    return Topic("requests", "Requests", tables, tuple(_remarks(tables)), _NOTES) if tables else None


def _span(timed: pl.DataFrame) -> float:
    times = timed["submit_time"]
    return float(times.max()) - float(times.min()) if times.len() > 1 else 0.0  # type: ignore[arg-type]


def totals(frame: pl.DataFrame) -> pl.DataFrame:
    """Return requests, those of known time, span s, rates and tokens per s, and how many clients, models, services.

    Empty where the requests say neither when they came nor what they asked for nor who sent them.
    """
    timed = frame.filter(pl.col("submit_time").is_not_null())
    if timed.is_empty() and not any(frame[c].is_not_null().any() for c in (*_TOKENS, "user", "model")):
        return pl.DataFrame()
    span = _span(timed)
    per_minute = timed.group_by((pl.col("submit_time") / MINUTE).floor(), maintain_order=True).len()["len"].to_list()
    row: dict[str, Any] = {
        "requests": frame.height,
        "timed": timed.height,
        "span_seconds": span if span else None,
        "rate_per_s": timed.height / span if span else None,
        "peak_rate_per_s": max(per_minute) / MINUTE if span else None,
    }
    for name in _TOKENS:
        total = int(frame[name].sum()) if frame[name].is_not_null().any() else None
        row[name] = total
        row[f"{name}_per_s"] = int(timed[name].sum()) / span if timed[name].is_not_null().any() and span else None
    counts = {"clients": "user", "models": "model", "services": "application"}
    row |= {name: frame[column].drop_nulls().n_unique() for name, column in counts.items()}
    ended = frame.filter(pl.col("status").cast(pl.String) != "unknown")
    row["failed_share"] = float((ended["status"].cast(pl.String) == "failed").mean()) if ended.height else None  # type: ignore[arg-type]
    return pl.DataFrame([row], infer_schema_length=None)


def tokens(frame: pl.DataFrame) -> pl.DataFrame:
    """Return how many tokens requests have: `what`, `count`, `mean`, quantiles, `max`."""
    rows = []
    for name in _TOKENS:
        values = frame[name].drop_nulls()
        if values.len():
            at = {k: values.quantile(q, "linear") for k, q in _QUANTILES.items()}
            rows.append({"what": name, "count": values.len(), "mean": values.mean(), **at, "max": values.max()})
    return pl.DataFrame(rows, infer_schema_length=None)


def over_time(timed: pl.DataFrame) -> pl.DataFrame:
    """Return per minute (or more, in long traces): `begin` s, `requests_per_s`, tokens in and out per s; zero for none."""
    if timed.is_empty():
        return pl.DataFrame()
    times = timed["submit_time"]
    bins = Bins.covering(float(times.min()), float(times.max()), most=_MOST_BINS)  # type: ignore[arg-type]
    width = max(bins.width, MINUTE)
    number = (pl.col("submit_time") / width).floor().cast(pl.Int64).alias("bin")
    found = timed.group_by(number, maintain_order=True).agg(
        (pl.len() / width).alias("requests_per_s"),
        *((pl.col(name).sum() / width).alias(f"{name}_per_s") for name in _TOKENS),
    )
    first, last = found["bin"].min(), found["bin"].max()
    whole = pl.DataFrame({"bin": pl.int_range(first, last + 1, eager=True)})  # type: ignore[operator, arg-type]
    filled = whole.join(found, on="bin", how="left", maintain_order="left").with_columns(
        pl.exclude("bin").fill_null(0.0)
    )
    return filled.select((pl.col("bin") * width).alias("begin"), pl.exclude("bin"))


def clients(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the clients with most requests: `client`, `requests`, `share`, mean tokens, `cv` of gaps, time to serve s.

    Shares are of the requests whose client is known.
    """
    known = frame.filter(pl.col("user").is_not_null())
    if known.is_empty():
        return pl.DataFrame()
    gaps = pl.col("submit_time").sort().diff().drop_nulls()
    cv = pl.when((gaps.len() >= _FEWEST) & (gaps.mean() > 0)).then(gaps.std() / gaps.mean())
    found = known.group_by(pl.col("user").alias("client"), maintain_order=True).agg(
        pl.len().alias("requests"),
        (pl.len() / known.height).alias("share"),
        pl.col("input_tokens").mean().alias("mean_input_tokens"),
        pl.col("output_tokens").mean().alias("mean_output_tokens"),
        cv.alias("cv"),
        pl.col("duration_seconds").mean().alias("mean_duration_seconds"),
    )
    return found.sort(["requests", "client"], descending=[True, False]).head(_LARGEST_CLIENTS)


def client_rates(series: pl.DataFrame) -> pl.DataFrame:
    """Return clients whose rates are reported over time: `client`, mean `rate_per_s` over the whole time, `share`, `cv`."""
    rates = series.filter(pl.col("metric") == CLIENT_RATE)
    if rates.is_empty():
        return pl.DataFrame()
    # Windows in which a client, or all of them, sent nothing are left out of the source: they count as zero.
    windows = _windows(rates["time"].unique().sort())
    found = rates.group_by(pl.col("entity").alias("client"), maintain_order=True).agg(
        (pl.col("value").sum() / windows).alias("rate_per_s"),
        pl.col("value").max().alias("peak_rate_per_s"),
        (pl.len() / windows).alias("active_share"),
    )
    cvs = series.filter(pl.col("metric") == CLIENT_CV).group_by(pl.col("entity").alias("client"), maintain_order=True)
    found = found.join(cvs.agg(pl.col("value").mean().alias("cv")), on="client", how="left")
    total = float(found["rate_per_s"].sum())
    part = pl.col("rate_per_s") / total if total else pl.lit(None, pl.Float64)
    return found.with_columns(part.alias("share")).sort(["rate_per_s", "client"], descending=[True, False])


def _windows(begins: pl.Series) -> int:
    """Return how many windows of equal length there are from the first to the last of these, the empty ones between too."""
    if begins.len() < 2:
        return begins.len()
    width = float(begins.diff().min())  # type: ignore[arg-type]
    return round(float(begins[-1] - begins[0]) / width) + 1


def _remarks(tables: dict[str, pl.DataFrame]) -> list[Remark]:
    remarks = []
    if "totals" in tables:
        remarks.append(_rate_remark(tables["totals"].row(0, named=True)))
    if "tokens" in tables:
        words = "; ".join(
            f"{r['what'].removesuffix('_tokens')} {r['mean']:,.0f} on average, {r['p50']:,.0f} in the median, "
            f"over {r['p99']:,.0f} in the largest 1 %"
            for r in tables["tokens"].to_dicts()
        )
        remarks.append(Remark(f"Tokens per request: {words}."))
    if "sessions" in tables:
        s = tables["sessions"].row(0, named=True)
        text = (
            f"{share(s['follow_up_share'])} of the requests continue an earlier one; {s['sessions']:,} sessions have "
            f"{s['turns_mean']:.1f} turns on average (up to {s['turns_max']:,})"
        )
        gap = "" if s["gap_p50_seconds"] is None else f", {duration(s['gap_p50_seconds'])} apart in the median"
        remarks.append(
            Remark(f"{text}{gap}. {share(s['blocks_seen_share'])} of all prefix blocks were seen before in the trace.")
        )
    for name in ("clients", "client_rates"):
        if name in tables and tables[name].height > 1:
            remarks.append(_client_remark(tables[name], tables.get("totals")))
    return remarks


def _rate_remark(r: dict[str, Any]) -> Remark:
    if not r["rate_per_s"]:
        return Remark(f"{r['requests']:,} requests without times: rates are not known.")
    ratio = r["peak_rate_per_s"] / r["rate_per_s"]
    unit, mean, peak = rates_in_words(r["rate_per_s"], r["peak_rate_per_s"])
    text = (
        f"{r['timed']:,} requests in {duration(r['span_seconds'])}: {mean} {unit} on average, {peak} in the fullest "
        f"minute ({ratio:.1f} times the mean)"
    )
    out = "" if not r["output_tokens_per_s"] else f"; {r['output_tokens_per_s']:,.0f} tokens out per second"
    left = r["requests"] - r["timed"]
    untimed = f" {left:,} more have no known time." if left else ""
    return Remark(f"{text}{out}.{untimed}", ratio > 10)


def rates_in_words(per_second: float, *others: float) -> tuple[str, ...]:
    """Return the unit in which people say a rate (per minute below one a second), and the rate and others in it."""
    unit, size, digits = ("per second", 1.0, 2) if per_second >= 1 else ("per minute", MINUTE, 1)
    return (unit, *(f"{rate * size:,.{digits}f}" for rate in (per_second, *others)))


def _client_remark(table: pl.DataFrame, totals: pl.DataFrame | None) -> Remark:
    top = table.row(0, named=True)
    # The table has the largest clients only.
    count = table.height if totals is None else max(int(totals["clients"][0]), table.height)
    largest = max(1, round(0.1 * count))
    known = round(top["requests"] / top["share"]) if "requests" in table.columns else None
    of = "" if totals is None or known in (None, totals["requests"][0]) else f" whose client is known ({known:,})"
    text = (
        f"{count:,} clients: the largest, {top['client']}, sends {share(top['share'])} of the requests{of}, the "
        f"largest tenth {share(float(table['share'].head(largest).sum()))}"
    )
    bursty = table.filter(pl.col("cv") > 1.5)
    some = f"; {bursty.height:,} of them send in bursts (CV over 1.5)" if bursty.height else ""
    return Remark(f"{text}{some}.")
