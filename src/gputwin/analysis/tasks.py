"""The task table made ready: waits, runtimes, censoring and classes as columns, in any engine.

The quantities are those of `gputwin.traces.measures`, written against narwhals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw

from gputwin.analysis.clock import LocalClock
from gputwin.analysis.frames import Frame, codes, collect, lazy
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.traces.schema import Status

BINS = 200
"""How many equal bins of arrival time the bootstrap resamples."""
EARLY = 0.01
"""A trace may list what was there long before it began: this share of arrivals may lie before the busy part."""
MOST_DOUBLINGS = 10
GPU_BOUNDS = (0, WHOLE_GPU_MILLI - 1, *(WHOLE_GPU_MILLI * 2**k for k in range(MOST_DOUBLINGS + 1)))
GPU_LABELS = ("0", "<1", "1", *(f"≤{2**k:,}" for k in range(1, MOST_DOUBLINGS + 1)), f">{2**MOST_DOUBLINGS:,}")
GANG_BOUNDS = tuple(2**k for k in range(MOST_DOUBLINGS + 1))
GANG_LABELS = ("1", "2", *(f"≤{2**k:,}" for k in range(2, MOST_DOUBLINGS + 1)), f">{2**MOST_DOUBLINGS:,}")
JOB_LABELS = (
    *("short, no GPU", "short, up to one GPU", "short, several GPUs"),
    *("long, no GPU", "long, up to one GPU", "long, several GPUs"),
)
NO_LIMIT = -1

TEXTS = ("role", "application", "group", "user", "tenant", "workload", "qos", "gpu_model", "gpu_models_allowed")
_AMOUNTS = (
    *("cpu_milli", "memory_mib", "disk_mib", "rdma_percent"),
    *("cpu_limit_milli", "memory_limit_mib", "gpu_limit_milli", "disk_limit_mib", "rdma_limit_percent"),
)
_TIMES = ("submit_time", "start_time", "end_time")


@dataclass(frozen=True)
class TaskFacts:
    """What must be known of all tasks before each can be classed: span in s, median runtime in s, known values."""

    rows: int
    first: float
    last: float
    first_arrival: float
    last_arrival: float
    busy_from: float
    """s; where arrivals begin in earnest: the first, or the first percentile where that halves the span."""
    median_runtime: float | None
    known: dict[str, int]

    def knows(self, *columns: str) -> bool:
        """Return whether each column has a value in some row."""
        return all(self.known.get(column, 0) for column in columns)


def wait() -> nw.Expr:
    """Return s from submit to start; null unless both are known."""
    return nw.col("start_time") - nw.col("submit_time")


def runtime() -> nw.Expr:
    """Return s it ran; null while it runs."""
    return nw.coalesce("duration_seconds", nw.col("end_time") - nw.col("start_time"))


def arrival() -> nw.Expr:
    """Return s; when demand for it began, as far as the source tells."""
    return nw.coalesce("submit_time", "start_time")


def gpu_milli_of_instance() -> nw.Expr:
    """Return milli-GPU asked for by one instance."""
    return nw.col("gpu_count").cast(nw.Int64) * nw.col("gpu_milli").cast(nw.Int64).fill_null(WHOLE_GPU_MILLI)


def known_times(tasks: Any) -> Frame:
    """Return the tasks with times that are not finite made unknown."""
    times = (*_TIMES, "duration_seconds")
    return lazy(tasks).with_columns(**{c: nw.when(nw.col(c).is_finite()).then(nw.col(c)) for c in times})


def task_facts(tasks: Any) -> TaskFacts:
    """Return what must be known of the whole task table, in one pass over it."""
    frame = known_times(tasks).with_columns(
        **{"_arrival": arrival(), "_runtime": runtime(), "_wait": wait(), "_last": arrival() + runtime()}
    )
    counted = (*TEXTS, *_AMOUNTS, *_TIMES, "gpu_count", "max_per_node", "_arrival", "_runtime", "_wait")
    bounds = [nw.col(c).min().alias(f"low_{c}") for c in _TIMES] + [
        nw.col(c).max().alias(f"high_{c}") for c in (*_TIMES, "_last")
    ]
    row = collect(
        frame.select(
            nw.len().alias("rows"),
            *(nw.col(c).count().alias(c) for c in counted),
            *bounds,
            nw.col("_arrival").min().alias("first_arrival"),
            nw.col("_arrival").max().alias("last_arrival"),
            nw.col("_arrival").quantile(EARLY, "linear").alias("early"),
            nw.col("_runtime").quantile(0.5, "linear").alias("median_runtime"),
        )
    ).row(0, named=True)
    first_arrival, last_arrival = row["first_arrival"] or 0.0, row["last_arrival"] or 0.0
    early = first_arrival if row["early"] is None else row["early"]
    is_late = last_arrival - early < (last_arrival - first_arrival) / 2
    lows = [row[f"low_{c}"] for c in _TIMES if row[f"low_{c}"] is not None]
    highs = [row[f"high_{c}"] for c in (*_TIMES, "_last") if row[f"high_{c}"] is not None]
    return TaskFacts(
        rows=row["rows"],
        first=min(lows, default=0.0),
        last=max(highs, default=0.0),
        first_arrival=first_arrival,
        last_arrival=last_arrival,
        busy_from=early if is_late else first_arrival,
        median_runtime=row["median_runtime"],
        known={c.removeprefix("_"): row[c] for c in counted},
    )


def prepare(tasks: Any, facts: TaskFacts, clock: LocalClock | None = None) -> Frame:
    """Return the tasks with what analyses read, in SI units and integer classes.

    `wait`, `runtime`, `arrival`, `jct` in s; `at_risk` s it was seen running and `ended` 1 where that is its whole
    runtime, 0 where the trace ended first; `gpus` of the gang; `bin` of arrival; `gpu_class`, `gang_class`,
    `job_class` (numbers into the label tuples here), `hour`, `weekday`, `week` where the clock tells them.
    """
    frame = known_times(tasks)
    texts = {c: nw.col(c) for c in TEXTS}
    frame = frame.select(
        **texts,
        status=nw.col("status").cast(nw.String),
        submit=nw.col("submit_time"),
        start=nw.col("start_time"),
        end=nw.col("end_time"),
        arrival=arrival(),
        wait=wait(),
        runtime=runtime(),
        is_running=nw.col("is_running"),
        instances=nw.col("instances").cast(nw.Int64),
        gpu_milli=gpu_milli_of_instance(),
        limit=nw.col("max_per_node").cast(nw.Int64).fill_null(NO_LIMIT),
        **{c: nw.col(c).cast(nw.Int64) for c in _AMOUNTS},
    )
    # A pod deleted while it ran is over, whatever its last status says: censored is what has no end.
    alive = nw.col("is_running") | ((nw.col("status") == Status.RUNNING.value) & nw.col("runtime").is_null())
    seen = nw.coalesce(nw.col("runtime"), nw.lit(facts.last) - nw.col("start"))
    gang_milli = nw.col("gpu_milli") * nw.col("instances")
    frame = frame.with_columns(
        jct=nw.col("wait") + nw.col("runtime"),
        at_risk=nw.when(~nw.col("runtime").is_null() | alive).then(seen),
        ended=(~alive).cast(nw.Int64),
        gpus=gang_milli / WHOLE_GPU_MILLI,
        gpu_class=codes(gang_milli, GPU_BOUNDS),
        gang_class=codes(nw.col("instances"), GANG_BOUNDS),
        is_constrained=(~nw.col("gpu_models_allowed").is_null()).cast(nw.Int64),
        bin=_bin(facts),
        **_local(clock),
    )
    return frame.with_columns(job_class=_job_class(facts), gpu_seconds=nw.col("gpus") * nw.col("runtime"))


def _bin(facts: TaskFacts) -> nw.Expr:
    width = max(facts.last_arrival - facts.busy_from, 1e-9) / BINS
    return ((nw.col("arrival") - facts.busy_from) / width).floor().cast(nw.Int64).clip(0, BINS - 1)


def _local(clock: LocalClock | None) -> dict[str, nw.Expr]:
    if clock is None or not clock.has_time_of_day:
        return {}
    time = nw.col("arrival")
    return {"hour": clock.hour(time), "weekday": clock.weekday(time), "week": clock.week(time)}


def _job_class(facts: TaskFacts) -> nw.Expr:
    """Return 0 to 5: short or long (than the median runtime), and none, up to one or several GPUs."""
    is_long = (nw.col("runtime") > (facts.median_runtime or 0.0)).cast(nw.Int64)
    return is_long * 3 + (nw.col("gpus") > 0).cast(nw.Int64) + (nw.col("gpus") > 1).cast(nw.Int64)
