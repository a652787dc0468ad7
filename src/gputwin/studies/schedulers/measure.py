"""The figures of one scheduler's run, small enough to come back from another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from gputwin.core.units import HOUR, WHOLE_GPU_MILLI
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.scenario_parts import PowerSpec
from gputwin.simulation.simulate import name_of, power_of, simulate_scenario
from gputwin.studies.schedulers.contenders import CHECKPOINTS, Contender
from gputwin.traces.dataset import Trace

Floats = npt.NDArray[np.float64]
Names = npt.NDArray[np.str_]


_ONE_TENANT = {"share_error": {"mean": 0.0}}


@dataclass(frozen=True)
class Figure:
    """A column of the table: its title with the unit, digits shown, and what one of it is in words."""

    title: str
    digits: int
    words: str


FIGURES = {
    "mean_completion_hours": Figure("mean completion h", 2, "mean completion time"),
    "p99_completion_hours": Figure("p99 completion h", 1, "p99 completion time"),
    "mean_wait_hours": Figure("mean wait h", 2, "mean wait"),
    "p99_wait_hours": Figure("p99 wait h", 1, "p99 wait"),
    "mean_slowdown": Figure("mean slowdown", 1, "mean bounded slowdown"),
    "makespan_hours": Figure("makespan h", 0, "makespan"),
    "utilisation": Figure("GPUs allocated %", 1, "share of GPUs allocated"),
    "fragmentation": Figure("fragmented %", 2, "share of GPUs that are free but too scattered"),
    "jain_fairness": Figure("Jain", 3, "Jain's index of tenants"),
    "share_error": Figure("share error %", 1, "share of GPUs that are with another tenant than due"),
    "preemptions": Figure("preemptions", 0, "number of preemptions"),
    "wasted_gpu_hours": Figure("wasted GPU-h", 0, "GPU time lost to saving, restarting and lost work"),
    "energy_mwh": Figure("energy MWh", 1, "energy"),
}


@dataclass(frozen=True)
class Measured:
    """One run: its figures, waits by cause (s), and per job, in order of submission, its parts (NaN: never)."""

    contender: Contender
    figures: Mapping[str, float]
    causes: Mapping[str, float]
    submit: Floats
    start: Floats
    completion: Floats
    duration: Floats
    gpus: Floats
    tenants: Names
    unfinished: int

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return {
            "policy": self.contender.name,
            "family": self.contender.family,
            **self.figures,
            "jobs_not_finished": self.unfinished,
            "wait_causes_seconds": dict(self.causes),
        }


def measure(contender: Contender, trace: Trace, cluster: Cluster, seed: int) -> Measured:
    """Return the figures of one scheduler on these jobs."""
    scenario = Scenario.model_validate(
        {"trace": name_of(trace), "checkpoints": CHECKPOINTS, "seed": seed, **contender.fields}
    )
    return measured(contender, simulate_scenario(scenario, trace, cluster))


def measured(contender: Contender, result: SimulationResult) -> Measured:
    """Return the figures of a run."""
    summary, jobs = result.summary, result.jobs
    gpus = jobs["gpu_milli"].to_numpy() / WHOLE_GPU_MILLI
    wasted = np.zeros(jobs.height)
    for column in ("lost_seconds", "overhead_seconds"):
        if column in jobs.columns:
            wasted += jobs[column].to_numpy()
    figures = {
        "mean_completion_hours": summary["jct_seconds"]["mean"] / HOUR,
        "p99_completion_hours": summary["jct_seconds"]["p99"] / HOUR,
        "mean_wait_hours": summary["wait_seconds"]["mean"] / HOUR,
        "p99_wait_hours": summary["wait_seconds"]["p99"] / HOUR,
        "mean_slowdown": summary["bounded_slowdown"]["mean"],
        "makespan_hours": summary["makespan_seconds"] / HOUR,
        "utilisation": 100.0 * summary["allocation"]["gpu"],
        "fragmentation": 100.0 * summary["fragmentation"],
        "jain_fairness": summary["jain_fairness"] or 1.0,
        "share_error": 100.0 * (summary["tenant_shares"] or _ONE_TENANT)["share_error"]["mean"],
        "preemptions": float(summary.get("stops", {}).get("preempted", 0)),
        "wasted_gpu_hours": float((wasted * gpus).sum()) / HOUR,
        "energy_mwh": power_of(result, PowerSpec())["energy_kwh"] / 1000.0,
    }
    submit, start, completion = (
        jobs[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
        for name in ("submit_time", "start_time", "jct_seconds")
    )
    return Measured(
        contender,
        figures,
        summary["wait_causes_seconds"] or {},
        submit,
        start,
        completion,
        jobs["duration_seconds"].to_numpy(),
        gpus,
        jobs["tenant"].to_numpy().astype(np.str_),
        jobs.height - summary["outcomes"].get("finished", 0),
    )
