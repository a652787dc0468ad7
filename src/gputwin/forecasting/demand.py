"""From a trace to demand series: arrivals, demand in force, requests per second, sampled metrics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.units import MINUTE, short_duration
from gputwin.forecasting.gaps import is_rate, missing_note, totals, zero_note
from gputwin.forecasting.resources import RESOURCES, amount
from gputwin.forecasting.rollouts import replicas
from gputwin.forecasting.series import DemandSeries, Floats, Integers, Target
from gputwin.traces.dataset import Trace
from gputwin.traces.lifetimes import TIMES, Window, observed, with_lives
from gputwin.traces.reader import Clock

GROUPS = ("application", "role", "gpu_model", "tenant", "user", "workload", "qos")
MOST_GROUPS = 50
MOST_BINS = 5_000_000
_NEARLY_WHOLE = 0.95
"""A last bin of which the record covers less is left out of rates: it would read as a sudden drop."""
_FEWEST_BINS = 10
"""Of records with fewer, no bin is left out."""
_LAST_BINS = 24
_FADED = 0.25
"""Below this part of the average, the last bins hold too little to be a quiet time."""


def demand(
    trace: Trace,
    target: Target | str = Target.ARRIVALS,
    *,
    bin_seconds: float = 5 * MINUTE,
    resources: Sequence[str] = (),
    by: str | None = None,
    metric: str | None = None,
) -> DemandSeries:
    """Return the trace's demand series of one kind; `resources` default to those the trace asks for at all."""
    try:
        target = Target(target)
    except ValueError:
        raise UserError(f"unknown target '{target}'; known: {', '.join(Target)}") from None
    if not bin_seconds > 0 or not math.isfinite(bin_seconds):
        raise UserError(f"bins must have a length, not {bin_seconds:g} s")
    if target is Target.REQUESTS:
        return requests_per_second(trace, bin_seconds, by)
    if target is Target.METRIC:
        return sampled(trace, metric, bin_seconds)
    if trace.tasks.is_empty():
        raise UserError(f"the trace has no tasks, so there is no demand '{target}'; {_instead(trace)}")
    if target is Target.ARRIVALS:
        return arrivals(trace, bin_seconds, resources, by)
    return in_force(trace, bin_seconds, resources, by)


def arrivals(trace: Trace, bin_seconds: float, resources: Sequence[str] = (), by: str | None = None) -> DemandSeries:
    """Return requests of new instances summed per bin of their arrival; tasks older than the window have none."""
    window, start, bins = _span(trace, bin_seconds)
    tasks = _lives(trace, window).select("begin", "is_older", *_amounts(trace, resources), _group(by))
    known = tasks.filter(pl.col("begin").is_not_null())
    names, units, keys = _columns(trace, known, resources, by)
    values = _sum_per_bin(known, "begin", keys, start, bin_seconds, bins)
    older = int(tasks["is_older"].sum())
    left = tasks.height - known.height - older
    notes = [f"{older:,} tasks were there before the trace began and arrive in no bin"] if older else []
    if left:
        notes.append(f"{left:,} tasks have no arrival time and are left out")
    notes += zero_note(values, "arrival", bin_seconds)
    return _series(trace, Target.ARRIVALS, names, units, values, bin_seconds, start, (*notes, *window.notes()))


def in_force(trace: Trace, bin_seconds: float, resources: Sequence[str] = (), by: str | None = None) -> DemandSeries:
    """Return what the instances alive at each bin's end ask for, in the resources' units.

    An instance is there from its arrival to its end, waiting or running (`gputwin.traces.lifetimes`). One that ran when
    the trace began was there before; one still there when it ended has no end; one of which neither an end nor that it
    runs or waits on is known is left out and counted in `notes`.
    """
    window, start, bins = _span(trace, bin_seconds)
    tasks = _lives(trace, window)
    gone = (pl.col("end") < window.begin).fill_null(False)
    known = tasks.filter("is_known").with_columns(*_amounts(trace, resources), _group(by))
    left = tasks.height - known.height
    known = known.filter(~gone)
    names, units, keys = _columns(trace, known, resources, by)
    before = known.filter("is_older").with_columns(pl.lit(start).alias("begin"))
    older = _sum_per_bin(before, "begin", keys, start, bin_seconds, bins).sum(axis=0)
    came = _sum_per_bin(known.filter(~pl.col("is_older")), "begin", keys, start, bin_seconds, bins)
    went = _sum_per_bin(known.filter(pl.col("end").is_not_null()), "end", keys, start, bin_seconds, bins)
    values = older + np.cumsum(came - went, axis=0)
    # Sums of floats come and go; what is left of an empty cluster is nothing.
    values[np.abs(values) < 1e-6] = 0.0
    notes = [f"{before.height:,} tasks were there before the trace began"] if before.height else []
    if left:
        notes.append(f"{left:,} tasks have neither an end nor are said to run, and are left out")
    running = int(known["end"].null_count())
    if running:
        notes.append(f"{running:,} tasks were still there at the end")
    else:
        notes += _fading(values, names, units)
    series = _series(trace, Target.IN_FORCE, names, units, values, bin_seconds, start, (*notes, *window.notes()))
    groups = replicas(known, [r for r, _ in keys], start, bin_seconds, bins) if by is None else None
    return replace(series, covariates={"arrived": came, "departed": went}, replicas=groups)


def _fading(values: Floats, names: Sequence[str], units: Sequence[str]) -> list[str]:
    """Return a note where demand fades out at the end of a record in which every task ends.

    Such logs hold finished jobs only: those that still ran when the log was taken are missing, long ones most.
    """
    total = values.sum(axis=1)
    last, mean = float(total[-_LAST_BINS:].mean()), float(total.mean())
    if total.size < 10 * _LAST_BINS or last >= _FADED * mean:
        return []
    k = int(np.argmax(values.mean(axis=0)))
    now, usual = values[-_LAST_BINS:, k].mean(), values[:, k].mean()
    return [
        f"no task still runs at the end of the record, and its last bins hold {now:,.0f} {units[k]} ({names[k]}) against "
        f"{usual:,.0f} on average: jobs that had not ended may be missing, which makes the forecast too low"
    ]


def _lives(trace: Trace, window: Window) -> pl.DataFrame:
    """Return the tasks with `begin` and `end` of being there, s, and whether that `is_known`.

    `begin` is null where it is not known, or `is_older`: before the window; `end` where it is still there at the end.
    """
    tasks = with_lives(trace.tasks, window)
    waits_on = pl.col("held_seconds").is_null() & ~pl.col("is_unknown")
    end = pl.when(waits_on).then("end_time").otherwise(pl.col("held_from") + pl.col("held_seconds"))
    is_older = (pl.col("was_running") | (pl.col("asked_from") < window.begin)).fill_null(False)
    return tasks.with_columns(
        pl.when(~is_older).then("asked_from").alias("begin"),
        pl.when(~pl.col("is_alive")).then(end).alias("end"),
        is_older.alias("is_older"),
        (pl.col("asked_from").is_not_null() & ~pl.col("is_unknown")).alias("is_known"),
    )


def requests_per_second(trace: Trace, bin_seconds: float, by: str | None = None) -> DemandSeries:
    """Return requests per second, mean over the bin: counted where the trace has requests, else its own rates."""
    if trace.requests.is_empty():
        if trace.series.filter(pl.col("metric") == "request_rate_per_s").is_empty():
            raise UserError(f"the trace has no requests; {_instead(trace)}")
        rates = sampled(trace, "request_rate_per_s", bin_seconds)
        return DemandSeries(**{**vars(rates), "target": Target.REQUESTS, "names": ("requests",), "units": ("1/s",)})
    if by is not None and by not in ("application", "user", "model", "kind"):
        raise UserError(f"requests have no '{by}'; they can be grouped by application, user, model or kind")
    frame = trace.requests.select(pl.col("submit_time").alias("begin"), pl.lit(1.0).alias("requests"), _group(by))
    known = frame.filter(pl.col("begin").is_finite())
    if known.is_empty():
        raise UserError("no request of the trace has a time, so there is nothing to forecast")
    last = float(known["begin"].max())  # type: ignore[arg-type]
    start, bins = _bins(float(known["begin"].min()), last, bin_seconds)  # type: ignore[arg-type]
    keys = _group_keys(known, ("requests",), by)
    values = _sum_per_bin(known, "begin", keys, start, bin_seconds, bins) / bin_seconds
    values, cut = _whole(values, start, bin_seconds, last)
    names = tuple(_name(resource, group) for resource, group in keys)
    left = frame.height - known.height
    notes: tuple[str, ...] = (f"{left:,} requests have no time and are left out",) if left else ()
    notes += (*zero_note(values, "request", bin_seconds), *cut)
    return _series(trace, Target.REQUESTS, names, ("1/s",) * len(names), values, bin_seconds, start, notes)


def sampled(trace: Trace, metric: str | None, bin_seconds: float) -> DemandSeries:
    """Return a metric of the series table: mean of each entity's samples in the bin, summed over entities.

    A bin in which nobody has a sample is missing: it holds the last value, is marked in `missing` and counted in `notes`.
    """
    frame = trace.series
    known = sorted(frame["metric"].unique().to_list())
    if metric is None and len(known) == 1:
        metric = known[0]
    if metric is None or metric not in known:
        which = f"no metric '{metric}'" if metric else "say which metric"
        raise UserError(f"{which}; the trace has: {', '.join(known) or 'none'}")
    samples = frame.filter((pl.col("metric") == metric) & pl.col("value").is_finite() & pl.col("time").is_finite())
    if samples.is_empty():
        raise UserError(f"metric '{metric}' has no finite sample")
    # A source may give the whole besides its parts; adding both would count everything twice.
    whole = samples.filter(pl.col("entity").is_null())
    samples = whole if whole.height else samples
    start, bins = _bins(float(samples["time"].min()), float(samples["time"].max()), bin_seconds)  # type: ignore[arg-type]
    made = totals(samples, start, bin_seconds, bins, rate=is_rate(metric))
    notes = missing_note(made.missing, samples, bin_seconds)
    series = _series(trace, Target.METRIC, (metric,), ("",), made.totals[:, None], bin_seconds, start, notes)
    return replace(series, missing=made.missing[:, None] if made.missing.any() else None)


def _span(trace: Trace, bin_seconds: float) -> tuple[Window, float, int]:
    """Return the window that series are of, the start of its first bin, s, and the number of bins."""
    has_times = trace.tasks.select(pl.any_horizontal(pl.col(TIMES).is_finite().any())).item()
    if not has_times:
        raise UserError("no task of the trace has a time, so there is nothing to forecast")
    window = observed(trace.tasks)
    return (window, *_bins(window.begin, window.until, bin_seconds))


def _bins(first: float, last: float, bin_seconds: float) -> tuple[float, int]:
    """Return the start of the first bin, s, and the number of bins; edges are multiples of the width."""
    start = math.floor(first / bin_seconds) * bin_seconds
    count = math.floor((last - start) / bin_seconds) + 1
    if count > MOST_BINS:
        raise UserError(f"{count:,} bins are more than {MOST_BINS:,}; choose wider ones than {bin_seconds:g} s")
    return start, count


def _whole(values: Floats, start: float, width: float, until: float) -> tuple[Floats, tuple[str, ...]]:
    """Return rates per bin without a last bin that the end of the record cuts off, and a note that says so."""
    covered = (until - start) - (len(values) - 1) * width
    if covered >= _NEARLY_WHOLE * width or len(values) < _FEWEST_BINS:
        return values, ()
    seen = f"{short_duration(max(covered, 0.0))} of {short_duration(width)}"
    return values[:-1], (f"the record covers {seen} of the last bin, which is left out",)


def _amounts(trace: Trace, resources: Sequence[str]) -> list[pl.Expr]:
    for name in resources:
        if name not in RESOURCES:
            raise UserError(f"unknown resource '{name}'; known: {', '.join(RESOURCES)}")
    return [amount(name) for name in resources or RESOURCES]


def _group(by: str | None) -> pl.Expr:
    if by is None:
        return pl.lit("", pl.String).alias("group")
    if by not in (*GROUPS, "model", "kind"):
        raise UserError(f"cannot tell series apart by '{by}'; known: {', '.join(GROUPS)}")
    return pl.col(by).cast(pl.String).fill_null("(none)").alias("group")


def _columns(
    trace: Trace, tasks: pl.DataFrame, resources: Sequence[str], by: str | None
) -> tuple[tuple[str, ...], tuple[str, ...], list[tuple[str, str]]]:
    asked = tuple(resources) or tuple(r for r in RESOURCES if r != "instances" and tasks[r].sum() > 0) or ("instances",)
    keys = _group_keys(tasks, asked, by)
    return tuple(_name(r, g) for r, g in keys), tuple(RESOURCES[r][0] for r, _ in keys), keys


def _group_keys(tasks: pl.DataFrame, resources: Sequence[str], by: str | None) -> list[tuple[str, str]]:
    """Return (resource, group) of each series; the largest groups by number of rows where there are very many."""
    if by is None:
        return [(r, "") for r in resources]
    largest = tasks.group_by("group").len().sort(["len", "group"], descending=[True, False]).head(MOST_GROUPS)
    return [(r, g) for r in resources for g in sorted(largest["group"])]


def _name(resource: str, group: str) -> str:
    return f"{resource}/{group}" if group else resource


def _sum_per_bin(
    rows: pl.DataFrame, time: str, keys: list[tuple[str, str]], start: float, width: float, bins: int
) -> Floats:
    """Return bins × keys: each group's amounts summed over the bin their time falls into."""
    at: Integers = np.floor((rows[time].to_numpy() - start) / width).astype(np.int64)
    # What came before the first bin is there when it begins; what happens after the last is not seen.
    inside = at < bins
    at = np.maximum(at, 0)
    groups = rows["group"].to_numpy()
    values = np.zeros((bins, len(keys)))
    for column, (resource, group) in enumerate(keys):
        chosen = inside if not group else inside & (groups == group)
        values[:, column] = np.bincount(at[chosen], rows[resource].to_numpy()[chosen], minlength=bins)
    return values


def _series(
    trace: Trace,
    target: Target,
    names: tuple[str, ...],
    units: tuple[str, ...],
    values: Floats,
    bin_seconds: float,
    start: float,
    notes: tuple[str, ...],
) -> DemandSeries:
    meta = trace.meta
    origin = meta.origin_unix_seconds if meta.clock in (Clock.ABSOLUTE, Clock.WEEKDAY) else None
    return DemandSeries(target, names, units, values, bin_seconds, start, origin, meta.zone, notes=notes)


def _instead(trace: Trace) -> str:
    """Return what the trace could be asked for instead, as a hint."""
    if not trace.requests.is_empty():
        return "try --target requests"
    metrics = sorted(trace.series["metric"].unique().to_list())
    return f"try --target metric --metric with one of: {', '.join(metrics)}" if metrics else "it has no series either"
