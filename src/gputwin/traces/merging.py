"""Several traces as one: exports of successive months, or of several clusters.

Traces with dates are put on one clock. A job that is in two of them (same id and submission) counts once, as the one
knows it that saw it end, else the one that ends last. The same id with another submission is another job: its id then
begins with the trace's name.

A job that ran when its own trace ended was seen until then, not until the merged record ends: where that is a tenth of the
record or more later, its time is counted as far as it was seen. What waited then, or ran when a later trace began, has no
known life in the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from gputwin.core.errors import UserError, shorten
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.lifetimes import STRAY_TIME, observed
from gputwin.traces.quality import RULES, Finding
from gputwin.traces.reader import Clock
from gputwin.traces.schema import TABLES, Status

_OF_JOBS = ("tasks", "instances", "usage")


def merge(traces: Sequence[Trace], names: Sequence[str]) -> Trace:
    """Return the traces as one; `names` tell apart jobs that share an id."""
    if len(traces) < 2:
        raise UserError("a merge needs at least two traces; name another")
    if len(set(names)) < len(names):
        raise UserError(f"two of the traces are called '{shorten(names[0])}'; rename one")
    clocks = {t.meta.clock for t in traces}
    if len(clocks) > 1:
        raise UserError(
            f"the traces' clocks are of different kinds ({', '.join(sorted(clocks))}); merge traces of one kind"
        )
    origin = min((t.meta.origin_unix_seconds or 0.0 for t in traces), default=0.0)
    moved = [(_on_clock(t, origin), name) for t, name in zip(traces, names, strict=True)]
    # Of two that do not know a job's end, the one whose record ends last says more.
    moved.sort(key=lambda part: _record(part[0])[1])
    parts = _with_edges(_told_apart([part for part, _ in moved], [name for _, name in moved]))
    tables: dict[str, pl.DataFrame] = {}
    for name, table in TABLES.items():
        frames = [part[name] for part in parts if name in part]
        if frames:
            whole = pl.concat(frames)
            tables[name] = _once(whole, table.key) if table.key else whole
    unknown = int(tables["tasks"]["_edge"].sum()) if "tasks" in tables else 0
    tables = {name: _without_marks(frame) for name, frame in tables.items()}
    return Trace.from_frames(tables, _meta(traces, origin, unknown))


def _record(part: dict[str, pl.DataFrame]) -> tuple[float, float]:
    """Return the first and the last event of a part's tasks, s; the last place in time where it has none."""
    if "tasks" not in part:
        return -math.inf, math.inf
    window = observed(part["tasks"])
    return window.first, window.last


def _with_edges(parts: Sequence[dict[str, pl.DataFrame]]) -> list[dict[str, pl.DataFrame]]:
    """Return the tables with `_edge`: it lives on at an end of its trace that is not one of the merged record.

    Such a row has as its end when it was last seen, and still counts as running, so that nobody takes that for its end.
    """
    records = [_record(part) for part in parts if "tasks" in part]
    if not records:
        return list(parts)
    first, last = min(r[0] for r in records), max(r[1] for r in records)
    gap = STRAY_TIME * (last - first)
    found = []
    for part in parts:
        begin, end = _record(part)
        fresh = dict(part)
        for name in ("tasks", "instances"):
            if name in part:
                seen_until = end if last - end >= gap > 0 else None
                fresh[name] = _cut_off(part[name], seen_until, begins_late=begin - first >= gap > 0)
        found.append(fresh)
    return found


def _cut_off(frame: pl.DataFrame, seen_until: float | None, *, begins_late: bool) -> pl.DataFrame:
    is_task = "was_running" in frame.columns
    status = pl.col("status").cast(pl.String)
    ended = pl.coalesce("end_time", "duration_seconds") if is_task else pl.col("end_time")
    runs = (pl.col("is_running") | (status == Status.RUNNING.value)) & ended.is_null()
    is_cut = pl.lit(seen_until is not None)
    at_the_end = is_cut & runs
    edge, changes = at_the_end, []
    if is_task:
        waits = is_cut & (status == Status.WAITING.value) & pl.col("start_time").is_null()
        before = pl.lit(begins_late) & pl.col("was_running")
        edge = at_the_end | waits | before
        unknown = pl.lit(Status.UNKNOWN.value).cast(frame.schema["status"])
        changes = [pl.when(waits).then(unknown).otherwise("status").alias("status")]
    return frame.with_columns(
        *changes,
        pl.when(at_the_end).then(pl.lit(seen_until, pl.Float64)).otherwise("end_time").alias("end_time"),
        (pl.col("is_running") | at_the_end).alias("is_running"),
        edge.fill_null(False).alias("_edge"),
        pl.lit(begins_late).alias("_late"),
    )


def _without_marks(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the rows without marks; what ran already when a later trace began has no known begin in the whole."""
    if "_edge" not in frame.columns:
        return frame
    if "was_running" in frame.columns:
        frame = frame.with_columns(pl.col("was_running") & ~pl.col("_late"))
    return frame.drop("_edge", "_late")


def _on_clock(trace: Trace, origin: float) -> dict[str, pl.DataFrame]:
    shift = (trace.meta.origin_unix_seconds or 0.0) - origin if trace.meta.clock == Clock.ABSOLUTE else 0.0
    return {
        name: trace.frame(name).with_columns(pl.col(c) + shift for c in TABLES[name].time_columns)
        for name in trace.meta.tables
    }


def _told_apart(parts: Sequence[dict[str, pl.DataFrame]], names: Sequence[str]) -> list[dict[str, pl.DataFrame]]:
    """Return the tables with ids that mean different jobs in different traces set apart by the trace's name."""
    submitted = [
        part["tasks"].group_by("job_id").agg(pl.col("submit_time").min()) if "tasks" in part else None for part in parts
    ]
    seen = pl.concat([s for s in submitted if s is not None] or [pl.DataFrame(schema={"job_id": pl.String})])
    clashing = pl.Series("job_id", [], dtype=pl.String)
    if seen.height:
        # Half a second: clocks that start at fractions of one may differ by rounding.
        spread = seen.group_by("job_id").agg(
            (pl.col("submit_time").max() - pl.col("submit_time").min()).alias("spread")
        )
        clashing = spread.filter(pl.col("spread") > 0.5)["job_id"]
    of_requests = [part["requests"]["request_id"] for part in parts if "requests" in part]
    repeated = pl.concat(of_requests).to_frame().filter(pl.col("request_id").is_duplicated()) if of_requests else None
    result = []
    for part, name in zip(parts, names, strict=True):
        fresh = dict(part)
        for table in _OF_JOBS:
            if table in part and clashing.len():
                fresh[table] = part[table].with_columns(_named("job_id", clashing, name))
        if repeated is not None and repeated.height and "requests" in part:
            fresh["requests"] = part["requests"].with_columns(_named("request_id", repeated["request_id"], name))
        result.append(fresh)
    return result


def _named(column: str, clashing: pl.Series, name: str) -> pl.Expr:
    value = pl.col(column)
    return (
        pl.when(value.is_in(clashing.unique().implode()))
        .then(pl.lit(f"{name}/") + value)
        .otherwise(value)
        .alias(column)
    )


def _once(frame: pl.DataFrame, key: tuple[str, ...]) -> pl.DataFrame:
    """Return each key once: the row that knows the end, else the one of the last trace; its begin from any that knows it."""
    order = pl.int_range(pl.len())
    known = pl.lit(True)
    if "end_time" in frame.columns:
        known = pl.col("end_time").is_not_null() & ~(
            pl.col("is_running") if "_edge" in frame.columns else pl.lit(False)
        )
    ranked = frame.with_columns(_known=known, _order=order).sort("_known", "_order")
    if "was_running" in frame.columns:
        begun = pl.col("start_time").min().over(key)
        ranked = ranked.with_columns(
            pl.col("submit_time").fill_null(pl.col("submit_time").min().over(key)),
            pl.col("start_time").fill_null(begun),
            pl.col("was_running") & begun.is_null(),
            pl.col("_edge") & ~(pl.col("was_running") & begun.is_not_null()),
        )
    kept = ranked.unique(key, keep="last", maintain_order=True).sort("_order").drop("_known", "_order")
    if "submit_time" in kept.columns and "role" in kept.columns and "instance_id" not in kept.columns:
        kept = kept.sort("submit_time", "job_id", "role", nulls_last=True, maintain_order=True)
    return kept


def _meta(traces: Sequence[Trace], origin: float, unknown: int) -> TraceMeta:
    metas = [t.meta for t in traces]
    first = metas[0]
    sources, zones = dict.fromkeys(m.source for m in metas), dict.fromkeys(m.zone for m in metas)
    findings = tuple(f for m in metas for f in m.findings)
    if first.clock == Clock.RELATIVE:
        rule = RULES["F06"]
        findings += (Finding("F06", rule.title, "traces", len(traces), rule.action),)
    if unknown:
        rule = RULES["F26"]
        findings += (Finding("F26", rule.title, "tasks", unknown, rule.action),)
    return replace(
        first,
        source=" + ".join(sources),
        title=" + ".join(dict.fromkeys(m.title or m.source for m in metas)),
        zone=first.zone if len(zones) == 1 else "UTC",
        origin_unix_seconds=origin if first.clock == Clock.ABSOLUTE else first.origin_unix_seconds,
        inputs=tuple(dict.fromkeys(i for m in metas for i in m.inputs)),
        rows_read=sum(m.rows_read for m in metas),
        rows_kept=sum(m.rows_kept for m in metas),
        rows_dropped=sum(m.rows_dropped for m in metas),
        findings=findings,
    )
