"""The task table made ready: waits, runtimes, censoring and classes as columns, in any engine.

Lives and the window that averages over time are taken over follow `gputwin.traces.lifetimes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw

from gputwin.analysis.clock import LocalClock
from gputwin.analysis.frames import Frame, codes, collect
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.traces import lifetimes
from gputwin.traces.lifetimes import Window, arrival, known_times, runtime, wait

BINS = 200
"""How many equal bins of arrival time the bootstrap resamples."""
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
    window: Window
    first_arrival: float
    last_arrival: float
    median_runtime: float | None
    known: dict[str, int]

    def knows(self, *columns: str) -> bool:
        """Return whether each column has a value in some row."""
        return all(self.known.get(column, 0) for column in columns)


def gpu_milli_of_instance() -> nw.Expr:
    """Return milli-GPU asked for by one instance."""
    return nw.col("gpu_count").cast(nw.Int64) * nw.col("gpu_milli").cast(nw.Int64).fill_null(WHOLE_GPU_MILLI)


def task_facts(tasks: Any) -> TaskFacts:
    """Return what must be known of the whole task table, in one pass over it."""
    frame = known_times(tasks).with_columns(_arrival=arrival(), _runtime=runtime(), _wait=wait())
    counted = (*TEXTS, *_AMOUNTS, *_TIMES, "gpu_count", "max_per_node", "_arrival", "_runtime", "_wait")
    row = collect(
        frame.select(
            nw.len().alias("rows"),
            *(nw.col(c).count().alias(c) for c in counted),
            nw.col("_arrival").min().alias("first_arrival"),
            nw.col("_arrival").max().alias("last_arrival"),
            nw.col("_runtime").quantile(0.5, "linear").alias("median_runtime"),
        )
    ).row(0, named=True)
    return TaskFacts(
        rows=row["rows"],
        window=lifetimes.observed(tasks),
        first_arrival=row["first_arrival"] or 0.0,
        last_arrival=row["last_arrival"] or 0.0,
        median_runtime=row["median_runtime"],
        known={c.removeprefix("_"): row[c] for c in counted},
    )


def prepare(tasks: Any, facts: TaskFacts, clock: LocalClock | None = None) -> Frame:
    """Return the tasks with what analyses read, in SI units and integer classes.

    `wait`, `runtime`, `arrival`, `jct` in s; `at_risk` s it was seen running since its start and `ended` 1 where that is
    its whole runtime, 0 where the trace ended first; `held_from` s and `held_seconds`, also of what ran when the trace
    began; `gpus` of the gang and `gpu_seconds` held; `bin` of arrival; `gpu_class`, `gang_class`, `job_class` (numbers
    into the label tuples here), `hour`, `weekday`, `week` where the clock gives them.
    """
    frame = known_times(tasks)
    window = facts.window
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
        is_alive=lifetimes.is_alive(),
        held_from=lifetimes.held_from(window),
        held_seconds=lifetimes.held_seconds(window),
        instances=nw.col("instances").cast(nw.Int64),
        gpu_milli=gpu_milli_of_instance(),
        limit=nw.col("max_per_node").cast(nw.Int64).fill_null(NO_LIMIT),
        **{c: nw.col(c).cast(nw.Int64) for c in _AMOUNTS},
    )
    seen = nw.coalesce(nw.col("runtime"), nw.lit(window.last) - nw.col("start"))
    gang_milli = nw.col("gpu_milli") * nw.col("instances")
    frame = frame.with_columns(
        jct=nw.col("wait") + nw.col("runtime"),
        at_risk=nw.when(~nw.col("runtime").is_null() | nw.col("is_alive")).then(seen),
        ended=(~nw.col("is_alive")).cast(nw.Int64),
        gpus=gang_milli / WHOLE_GPU_MILLI,
        gpu_class=codes(gang_milli, GPU_BOUNDS),
        gang_class=codes(nw.col("instances"), GANG_BOUNDS),
        is_constrained=(~nw.col("gpu_models_allowed").is_null()).cast(nw.Int64),
        bin=_bin(facts),
        **_local(clock),
    )
    return frame.with_columns(job_class=_job_class(facts), gpu_seconds=nw.col("gpus") * nw.col("held_seconds"))


def _bin(facts: TaskFacts) -> nw.Expr:
    window = facts.window
    width = max(window.seconds, 1e-9) / BINS
    return ((nw.col("arrival") - window.begin) / width).floor().cast(nw.Int64).clip(0, BINS - 1)


def _local(clock: LocalClock | None) -> dict[str, nw.Expr]:
    if clock is None or not clock.has_time_of_day:
        return {}
    time = nw.col("arrival")
    return {"hour": clock.hour(time), "weekday": clock.weekday(time), "week": clock.week(time)}


def _job_class(facts: TaskFacts) -> nw.Expr:
    """Return 0 to 5: short or long (than the median runtime), and none, up to one or several GPUs.

    What was cut off at either end of the trace is long if it was seen for longer than the median, else not known.
    """
    median = facts.median_runtime or 0.0
    seen_long = nw.when(nw.col("held_seconds") > median).then(nw.lit(True))
    is_long = nw.coalesce(nw.col("runtime") > median, seen_long).cast(nw.Int64)
    return is_long * 3 + (nw.col("gpus") > 0).cast(nw.Int64) + (nw.col("gpus") > 1).cast(nw.Int64)
