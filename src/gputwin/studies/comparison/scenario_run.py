"""One run of a comparison, and the jobs over which it is compared: those that run under every scenario.

A scenario under which the hardest jobs never run would otherwise have the shortest waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from gputwin.simulation.metrics import spread, wait_causes
from gputwin.simulation.result import SimulationResult

_RAN = ("finished", "running")


@dataclass(frozen=True)
class ScenarioRun:
    """One run of a scenario; runs of different scenarios with the same replicate had the same jobs."""

    label: str
    replicate: str
    result: SimulationResult
    run_by_all: pl.DataFrame | None = None
    """Ids of the jobs that run under every scenario of the replicate; None where all jobs do."""

    @property
    def not_run(self) -> int:
        """Return how many jobs never ran, or gave up."""
        return sum(n for outcome, n in self.result.summary["outcomes"].items() if outcome not in _RAN)

    @property
    def jobs(self) -> pl.DataFrame:
        """Return the jobs over which the run is compared."""
        jobs = self.result.jobs
        return jobs if self.run_by_all is None else jobs.join(self.run_by_all, on="job_id", how="semi")

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Return the run's summary, its figures of jobs over those that are compared."""
        if self.run_by_all is None:
            return self.result.summary
        jobs = self.jobs
        finished = jobs.filter(pl.col("outcome") == "finished")
        return {
            **self.result.summary,
            "jobs_with_wait": jobs.height - jobs["wait_seconds"].null_count(),
            "wait_seconds": spread(jobs["wait_seconds"]),
            "jct_seconds": spread(finished["jct_seconds"]),
            "bounded_slowdown": spread(finished["bounded_slowdown"]),
            "wait_causes_seconds": wait_causes(jobs),
        }


def over_the_same_jobs(runs: Sequence[ScenarioRun]) -> list[ScenarioRun]:
    """Return the runs, each compared over the jobs that all runs of its replicate ran."""
    common: dict[str, pl.DataFrame] = {}
    for replicate in {run.replicate for run in runs if run.not_run}:
        for run in (run for run in runs if run.replicate == replicate):
            ran = run.result.jobs.filter(pl.col("outcome").is_in(_RAN)).select("job_id")
            common[replicate] = common[replicate].join(ran, on="job_id", how="semi") if replicate in common else ran
    return [replace(run, run_by_all=common.get(run.replicate)) for run in runs]
