"""What is known of a job, and when: three types, so that a model cannot be handed what it could not have known.

`Submitted` holds what the scheduler sees at submit and is all that a prediction takes. `Early` adds what was measured
in the first minutes. `Outcomes` is known when a task has ended: how long it ran, and what it used over its life.
Start, end and duration are in `Outcomes` alone, so they are never features.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.errors import UserError
from gputwin.traces.dataset import Trace
from gputwin.traces.measures import ARRIVAL, RUNTIME
from gputwin.traces.schema import TASKS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NAMES = ("application", "group", "user", "tenant", "workload", "qos")
SHAPE = (
    "instances",
    "cpu_milli",
    "memory_mib",
    "gpu_count",
    "gpu_milli",
    "gpu_memory_mib",
    "disk_mib",
    "rdma_percent",
    "max_per_node",
    "gpu_models_allowed",
    "requested_seconds",
)
SUBMIT_COLUMNS = ("job_id", "role", "arrival_time", *NAMES, "priority", *SHAPE)
USE_COLUMNS = (
    "cpu_milli",
    "memory_mib",
    "memory_max_mib",
    "gpu_milli",
    "gpu_memory_mib",
    "gpu_memory_max_mib",
    "network_receive_bytes",
    "network_send_bytes",
)
SHORTEST_SECONDS = 1.0
"""s; what ran shorter counts as this long: logarithms and ratios need a floor."""


_BEGUN = pl.coalesce("start_time", "submit_time")
_RUNNING = pl.col("is_running") & RUNTIME.is_null()


@dataclass(frozen=True)
class Submitted:
    """Tasks as they are known at submit, one row each; no other column can get in."""

    frame: pl.DataFrame

    def __post_init__(self) -> None:
        if tuple(self.frame.columns) != SUBMIT_COLUMNS:
            odd = sorted(set(self.frame.columns) ^ set(SUBMIT_COLUMNS))
            raise TypeError(f"not what is known at submit: {', '.join(odd) or 'columns in another order'}")

    @classmethod
    def of(cls, tasks: pl.DataFrame) -> Submitted:
        """Return what the rows of a task table say at submit; a job arrives once, with the first of its tasks."""
        columns = [c for c in SUBMIT_COLUMNS if c != "arrival_time"]
        arrival = tasks.select(ARRIVAL.min().over("job_id"))["arrival_time"]
        return cls(tasks.select(columns).with_columns(arrival).select(SUBMIT_COLUMNS))

    @classmethod
    def of_rows(cls, rows: list[dict[str, object]]) -> Submitted:
        """Return jobs given as plain records of canonical task columns; what a record does not say is unknown."""
        types = TASKS.schema
        types["arrival_time"] = pl.Float64()
        unknown = {key for row in rows for key in row} - set(SUBMIT_COLUMNS)
        if unknown:
            raise UserError(f"not known at submit: {', '.join(sorted(unknown))}; known: {', '.join(SUBMIT_COLUMNS)}")
        defaults = {c.name: c.default for c in TASKS.columns if c.default is not None}
        columns = {c: [row.get(c, defaults.get(c)) for row in rows] for c in SUBMIT_COLUMNS}
        return cls(pl.DataFrame(columns, schema={c: types[c] for c in SUBMIT_COLUMNS}))

    @property
    def size(self) -> int:
        """Return the number of tasks."""
        return self.frame.height

    @property
    def arrival(self) -> Floats:
        """Return when each arrived, s; a task of unknown arrival comes after all others."""
        # Not by an expression of Polars: for a single job that would cost as much as the rest of a prediction.
        times = self.frame["arrival_time"].to_numpy()
        return np.where(np.isnan(times), np.inf, times)

    @property
    def job(self) -> Ints:
        """Return the number of each task's job, counted in order of appearance."""
        names = self.frame["job_id"]
        return (names.rank("dense").cast(pl.Int64) - 1).to_numpy()

    def take(self, rows: Ints | Flags) -> Submitted:
        """Return these rows, given by number or by mask."""
        return Submitted(self.frame[_numbers(rows)])


@dataclass(frozen=True)
class Early:
    """What tasks used in their first minutes, one row each (`USE_COLUMNS`, null where nothing was measured)."""

    frame: pl.DataFrame
    seconds: float

    @classmethod
    def of(cls, trace: Trace, tasks: pl.DataFrame, seconds: float = 300.0) -> Early:
        """Return mean use over the samples that end within `seconds` of the task's start."""
        begun = tasks.select("job_id", "role", pl.col("start_time").alias("begun"))
        usage = trace.usage.join(begun, on=["job_id", "role"], how="inner")
        early = usage.filter(pl.col("end_time") <= pl.col("begun") + seconds)
        return cls(_mean_use(early, tasks), seconds)


@dataclass(frozen=True)
class Outcomes:
    """How tasks went, in the rows' order of their `Submitted`: known only once they have ended."""

    start: Floats
    """s; when it began."""
    duration: Floats
    """s it ran; where it is still running, s it has run so far."""
    finished: Flags
    """False where the duration is right-censored."""

    @property
    def end(self) -> Floats:
        """Return when each outcome became known, s; infinite where it is not known yet."""
        return np.where(self.finished, self.start + self.duration, np.inf)

    def take(self, rows: Ints | Flags) -> Outcomes:
        """Return these rows."""
        rows = _numbers(rows)
        return Outcomes(self.start[rows], self.duration[rows], self.finished[rows])

    def as_of(self, moment: float) -> Outcomes:
        """Return what was known at `moment`: tasks that still ran are censored there. All must have begun by then."""
        over = self.start + self.duration > moment
        ran = np.maximum(moment - self.start, SHORTEST_SECONDS)
        return replace(self, duration=np.where(over, ran, self.duration), finished=self.finished & ~over)


@dataclass(frozen=True)
class History:
    """Tasks with their outcomes, row by row."""

    jobs: Submitted
    outcomes: Outcomes

    @classmethod
    def of(cls, trace: Trace) -> History:
        """Return the trace's tasks whose arrival is known and that have run, or still run, for a known time."""
        return cls.of_tasks(trace.tasks)

    @classmethod
    def of_tasks(cls, tasks: pl.DataFrame) -> History:
        """Return the tasks of a task table that have run, in order of arrival."""
        tasks = tasks.with_columns(
            _BEGUN.alias("_begun"),
            pl.when(_RUNNING).then(_so_far(tasks)).otherwise(RUNTIME).clip(SHORTEST_SECONDS).alias("_ran"),
            (~_RUNNING).alias("_finished"),
        )
        tasks = tasks.filter(pl.col("_ran").is_finite() & pl.col("_begun").is_not_null())
        if tasks.is_empty():
            raise UserError(
                "the trace has no task with a known arrival and duration, so there is nothing to learn from"
            )
        order = tasks.select(pl.arg_sort_by(ARRIVAL.min().over("job_id"), "job_id", "role")).to_series()
        tasks = tasks[order]
        outcomes = Outcomes(tasks["_begun"].to_numpy(), tasks["_ran"].to_numpy(), tasks["_finished"].to_numpy())
        return cls(Submitted.of(tasks), outcomes)

    @property
    def size(self) -> int:
        """Return the number of tasks."""
        return self.jobs.size

    def take(self, rows: Ints | Flags) -> History:
        """Return these rows."""
        return History(self.jobs.take(rows), self.outcomes.take(rows))

    def as_of(self, moment: float) -> History:
        """Return what a scheduler knew at `moment`: tasks begun by then, those still running censored."""
        begun = self.outcomes.start < moment
        return History(self.jobs.take(begun), self.outcomes.take(begun).as_of(moment))


def ran_so_far(tasks: pl.DataFrame) -> Floats:
    """Return how long each task that still runs had run when the trace ends, s; 0 for all others."""
    return tasks.select(pl.when(_RUNNING).then(_so_far(tasks)).fill_null(0.0).clip(0.0).alias("ran"))["ran"].to_numpy()


def actual_seconds(tasks: pl.DataFrame) -> Floats:
    """Return how long each task ran, s, as `Outcomes` counts it; NaN where it has not ended or that is not known."""
    ended = ~_RUNNING & _BEGUN.is_not_null()
    ran = pl.when(ended).then(RUNTIME.clip(SHORTEST_SECONDS)).alias("ran")
    return tasks.select(ran)["ran"].fill_null(float("nan")).to_numpy()


def has_outcome(tasks: pl.DataFrame) -> bool:
    """Return whether any task has ended after a known time."""
    return bool(np.isfinite(actual_seconds(tasks)).any())


def _so_far(tasks: pl.DataFrame) -> pl.Expr:
    last = tasks.select(pl.max_horizontal(pl.col("end_time").max(), (ARRIVAL + RUNTIME).max())).item()
    # In a merged trace it may have been seen for the last time before the end.
    return pl.coalesce("end_time", pl.lit(last, pl.Float64)) - _BEGUN


def life_use(trace: Trace, jobs: Submitted) -> pl.DataFrame:
    """Return what each task used over its life (`USE_COLUMNS`, mean over its instances): known after its end."""
    return _mean_use(trace.usage, jobs.frame)


def _mean_use(usage: pl.DataFrame, tasks: pl.DataFrame) -> pl.DataFrame:
    means = (
        usage.filter(pl.col("scope") == "instance")
        .group_by("job_id", "role", maintain_order=True)
        .agg(pl.col(USE_COLUMNS).mean())
    )
    whose = tasks.select("job_id", "role")
    return whose.join(means, on=["job_id", "role"], how="left", maintain_order="left").select(USE_COLUMNS)


def _numbers(rows: Ints | Flags) -> Ints:
    return np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64)
