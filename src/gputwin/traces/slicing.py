"""A trace cut in two at a point in time: what had been recorded by then, and the jobs submitted from then on.

Both parts keep the trace's clock, so a time in one part means the same instant in the other. The earlier part is what
somebody knew at the cut: a job that had not ended is running there, or waiting, and its end is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from zoneinfo import ZoneInfo

import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.units import parse_duration
from gputwin.traces.dataset import Trace
from gputwin.traces.measures import ARRIVAL, RUNTIME
from gputwin.traces.reader import Clock
from gputwin.traces.schema import Status
from gputwin.traces.selecting import of_models, of_tenants, sample

_JOB_ARRIVAL = ARRIVAL.min().over("job_id")
_SAMPLES = {"requests": "submit_time", "series": "time"}


@dataclass(frozen=True)
class Selection:
    """Which part of a trace: by time, then by tenant, GPU model or chance; what is not given does not restrict."""

    first: str | None = None
    last: str | None = None
    since: str | None = None
    until: str | None = None
    tenants: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    sample: str | None = None
    seed: int = 0


def select(trace: Trace, selection: Selection) -> tuple[Trace, float | None]:
    """Return the selected part, and where the trace was cut, s on its clock; None where it was not cut by time."""
    if selection == Selection(seed=selection.seed):
        raise UserError(
            "say which part of the trace: the first or last, since or until when, a tenant, model or sample"
        )
    by_share = selection.first is not None or selection.last is not None
    if by_share and (selection.since or selection.until):
        raise UserError("a share of the trace and dates exclude one another; give one of them")
    part, cut = trace, None
    if by_share:
        cut = cut_time(trace, first=selection.first, last=selection.last)
        part = (since if selection.first is None else before)(trace, cut)
    if selection.until is not None:
        cut = instant(trace, selection.until)
        part = before(part, cut)
    if selection.since is not None:
        cut = instant(trace, selection.since)
        part = since(part, cut)
    if selection.tenants:
        part = of_tenants(part, selection.tenants)
    if selection.models:
        part = of_models(part, selection.models)
    if selection.sample is not None:
        part = sample(part, _share(selection.sample), selection.seed)
    return part, cut


def cut_time(trace: Trace, *, first: str | None = None, last: str | None = None) -> float:
    """Return the instant, s on the trace's clock, that ends the `first` part or begins the `last` one.

    A part is a share of the jobs in order of submission ("70%") or a time ("14d"), counted from the first submission
    or back from the last one.
    """
    if (part := first or last) is None or (first and last):
        raise UserError("name one part of the trace: the first or the last, as a share (70%) or a time (14d)")
    arrivals = _arrivals(trace)
    if not part.strip().endswith("%"):
        seconds = parse_duration(part)
        return float(arrivals[0]) + seconds if first else float(arrivals[-1]) - seconds
    jobs = round(arrivals.len() * _share(part))
    return float(arrivals[min(jobs, arrivals.len() - 1) if first else min(arrivals.len() - jobs, arrivals.len() - 1)])


def instant(trace: Trace, text: str) -> float:
    """Return the instant, s on the trace's clock, that a time after the first submission (2d) or a date names."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return float(_arrivals(trace)[0]) + parse_duration(text)
    origin = trace.meta.origin_unix_seconds
    if trace.meta.clock != Clock.ABSOLUTE or origin is None:
        raise UserError(f"'{text}': the trace has no dates; name a time after its first submission, as in 2d")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo(trace.meta.zone))
    return moment.timestamp() - origin


def _arrivals(trace: Trace) -> pl.Series:
    """Return when jobs were submitted, or requests where the trace has no jobs, in order."""
    if trace.tasks.height or not trace.has("requests"):
        arrivals = trace.tasks.group_by("job_id").agg(ARRIVAL.min())["arrival_time"]
    else:
        arrivals = trace.requests["submit_time"]
    arrivals = arrivals.drop_nulls().sort()
    if arrivals.is_empty():
        raise UserError("nothing in the trace has a known submission, so it cannot be cut by time")
    return arrivals


def _share(text: str) -> float:
    try:
        share = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise UserError(f"'{text}' is not a part of a trace; write a share between 0% and 100%, or a time, as in 14d")
    return share


def before(trace: Trace, cut: float) -> Trace:
    """Return the trace as it was known at `cut` s: jobs submitted before, with what had happened to them by then."""
    tasks = _known_at(trace.tasks.filter((cut > _JOB_ARRIVAL) | _JOB_ARRIVAL.is_null()), cut)
    tables = {"tasks": tasks, "nodes": trace.nodes}
    of_jobs = tasks.select("job_id", "role")
    tables["instances"] = _known_at(trace.instances.join(of_jobs, on=["job_id", "role"], how="semi"), cut)
    tables["usage"] = trace.usage.filter(pl.col("end_time").fill_null(cut) <= cut)
    for name, time in _SAMPLES.items():
        tables[name] = trace.frame(name).filter(pl.col(time) < cut)
    return _part(trace, tables, "earlier part")


def since(trace: Trace, cut: float) -> Trace:
    """Return the jobs submitted at `cut` s or later, as they ended; jobs that ran already at the cut are left out."""
    tasks = trace.tasks.filter(cut <= _JOB_ARRIVAL)
    of_jobs = tasks.select("job_id", "role")
    tables = {"tasks": tasks, "nodes": trace.nodes}
    tables["instances"] = trace.instances.join(of_jobs, on=["job_id", "role"], how="semi")
    of_machine = (pl.col("scope") == "node") & (pl.col("start_time") >= cut)
    of_job = trace.usage.join(of_jobs, on=["job_id", "role"], how="semi").filter(pl.col("scope") != "node")
    tables["usage"] = pl.concat([of_job, trace.usage.filter(of_machine)])
    for name, time in _SAMPLES.items():
        tables[name] = trace.frame(name).filter(pl.col(time) >= cut)
    return _part(trace, tables, "later part")


def running_at(trace: Trace, cut: float) -> int:
    """Return how many jobs submitted before `cut` s had not ended then."""
    earlier = trace.tasks.filter((cut > _JOB_ARRIVAL) | _JOB_ARRIVAL.is_null())
    return earlier.filter(pl.col("is_running") | (_ended(earlier) > cut))["job_id"].n_unique()


def _ended(frame: pl.DataFrame) -> pl.Expr:
    """Return when each row of a task or instance table ended, s; null where it is not known."""
    if "duration_seconds" not in frame.columns:
        return pl.col("end_time")
    return pl.coalesce("end_time", pl.coalesce("start_time", "submit_time") + RUNTIME)


def _known_at(frame: pl.DataFrame, cut: float) -> pl.DataFrame:
    """Return rows of a task or instance table as they were known at `cut`."""
    begun = pl.coalesce("start_time", "submit_time").fill_null(cut) <= cut
    later = (_ended(frame) > cut).fill_null(False) | ~begun
    unknown = [c for c in ("end_time", "duration_seconds") if c in frame.columns]
    return frame.with_columns(
        *(pl.when(~later).then(pl.col(c)).alias(c) for c in unknown),
        pl.when(begun).then(pl.col("start_time")).alias("start_time"),
        ((pl.col("is_running") | later) & begun).alias("is_running"),
        pl.when(later)
        .then(pl.when(begun).then(pl.lit(Status.RUNNING.value)).otherwise(pl.lit(Status.WAITING.value)))
        .otherwise(pl.col("status").cast(pl.String))
        .cast(frame.schema["status"])
        .alias("status"),
    )


def _part(trace: Trace, tables: dict[str, pl.DataFrame], which: str) -> Trace:
    if tables["tasks"].is_empty() and tables["requests"].is_empty():
        raise UserError(f"the {which} of the trace has no jobs; cut it elsewhere")
    kept = {name: frame for name, frame in tables.items() if trace.has(name)}
    title = f"{trace.meta.title or trace.meta.source}, {which}"
    return Trace.from_frames(kept, replace(trace.meta, title=title))
