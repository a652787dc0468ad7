"""The jobs of a trace as they were known at a time: who ran, who waited, and who had ended."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.profiling.jobs import Flags, Floats, Ints
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.machines import cluster_models
from gputwin.simulation.workload import Workload, workload_of
from gputwin.traces.dataset import Trace
from gputwin.traces.lifetimes import observed, with_lives
from gputwin.traces.schema import STATUS, Status


@dataclass(frozen=True)
class Moment:
    """A time (s of the trace's clock) and the rows of the record's jobs that ran and that waited then."""

    at: float
    running: Ints
    pending: Ints


@dataclass(frozen=True)
class Record:
    """A trace's jobs in order of submission; times in s, infinite where nothing of the kind was seen.

    `left` is when a job left the queue without having started. `limit` is the time asked for (NaN: none).
    """

    tasks: pl.DataFrame
    """The tasks of these jobs, sorted by job."""
    job_of_task: Ints
    workload: Workload
    """The same jobs as the engine takes them; their times and durations mean nothing."""
    submit: Floats
    start: Floats
    end: Floats
    left: Floats
    limit: Floats
    users: Ints
    """A number for each job's user, or tenant where no user is given."""
    first: float
    last: float

    @classmethod
    def of(cls, trace: Trace, cluster: Cluster, share: str = "fraction") -> Record:
        """Return the jobs of the trace whose arrival is known."""
        if trace.tasks.is_empty():
            raise UserError("the trace has no tasks, so nothing waits in it")
        window = observed(trace.tasks)
        lives = with_lives(trace.tasks, window).filter(pl.col("asked_from").is_not_null())
        if lives.is_empty():
            raise UserError("the trace has no arrival times, so who waited when is unknown")
        waited = pl.col("start_time").is_null() & ~pl.col("was_running")
        never = waited & (pl.col("held_seconds").is_null() | (pl.col("status") == Status.WAITING.value))
        ended = pl.col("held_from") + pl.col("held_seconds")
        lives = lives.with_columns(
            pl.when(never).then(np.inf).otherwise("held_from").alias("_start"),
            pl.when(never | pl.col("is_alive")).then(np.inf).otherwise(ended).fill_null(np.inf).alias("_end"),
            pl.when(never).then(pl.col("end_time")).fill_null(np.inf).alias("_left"),
        )
        workload = workload_of(_timeless(trace, lives), cluster_models(cluster), share=share)
        jobs = lives.group_by("job_id").agg(
            pl.col("asked_from", "_start").min(),
            pl.col("_end", "_left", "requested_seconds").max(),
            pl.coalesce("user", "tenant").first().alias("user"),
        )
        order = pl.DataFrame({"job_id": workload.job_ids}).with_row_index("job")
        jobs = order.join(jobs, on="job_id", how="left", maintain_order="left")
        tasks = trace.tasks.join(order, on="job_id", how="inner").sort("job", "role")
        limit = jobs["requested_seconds"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        return cls(
            tasks.drop("job"),
            tasks["job"].to_numpy().astype(np.int64),
            workload,
            jobs["asked_from"].to_numpy(),
            jobs["_start"].to_numpy(),
            jobs["_end"].to_numpy(),
            jobs["_left"].to_numpy(),
            np.where(limit > 0, limit, np.nan),
            jobs["user"].fill_null("").rank("dense").cast(pl.Int64).to_numpy() - 1,
            window.first,
            window.last,
        )

    @property
    def size(self) -> int:
        """Return the number of jobs."""
        return self.submit.size

    @property
    def instances(self) -> Ints:
        """Return the gang size of each job."""
        return np.asarray(self.workload.shapes["instances"][self.workload.jobs["shape"]], np.int64)

    @property
    def kind(self) -> Ints:
        """Return a number for each job's request: that of its only group; jobs of several groups differ by shape."""
        shapes, shape = self.workload.shapes, self.workload.jobs["shape"]
        request = self.workload.groups["request"][shapes["first_group"]].astype(np.int64)
        of_shape = np.where(shapes["groups"] == 1, request, -1 - np.arange(shapes.size))
        return np.asarray(of_shape[shape])

    @cached_property
    def starts_of(self) -> dict[int, tuple[Floats, Floats]]:
        """Return when jobs of each user started, in order, and how long each of them had waited."""
        order = np.lexsort((self.start, self.users))
        order = order[np.isfinite(self.start[order])]
        edges = np.searchsorted(self.users[order], np.arange(self.users.max() + 2))
        wait = self.start - self.submit
        parts = [order[a:b] for a, b in pairwise(edges)]
        return {user: (self.start[rows], wait[rows]) for user, rows in enumerate(parts)}

    def moment(self, at: float) -> Moment:
        """Return who ran and who waited at a time, the latter in order of submission."""
        here = self.submit <= at
        running = here & (self.start <= at) & (self.end > at)
        pending = here & (self.start > at) & (self.left > at)
        return Moment(at, np.flatnonzero(running), np.flatnonzero(pending))

    def ran_by(self, at: float) -> Floats:
        """Return how long each job ran, s; NaN where it had not ended by a time."""
        ended = self.ended_by(at)
        ran: Floats = np.subtract(self.end, self.start, out=np.full(self.size, np.nan), where=ended)
        return ran

    def ended_by(self, at: float) -> Flags:
        """Return which jobs had ended by a time."""
        return self.end <= at


def _timeless(trace: Trace, lives: pl.DataFrame) -> Trace:
    """Return the tasks as if each ran for a second on arrival, so that the workload has every one of them."""
    nothing = pl.lit(None, pl.Float64)
    tasks = trace.tasks.join(
        lives.select("job_id", "role", "asked_from"), on=["job_id", "role"], how="inner", maintain_order="left"
    )
    timeless = tasks.with_columns(
        pl.col("asked_from").alias("submit_time"),
        nothing.alias("start_time"),
        nothing.alias("end_time"),
        pl.lit(1.0).alias("duration_seconds"),
        pl.lit(False).alias("is_running"),
        pl.lit(False).alias("was_running"),
        pl.lit(Status.COMPLETED.value, STATUS).alias("status"),
    ).drop("asked_from")
    return Trace(trace.meta, {"tasks": timeless})
