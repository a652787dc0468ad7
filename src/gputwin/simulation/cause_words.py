"""What jobs wait for, in words, as they stand after "waits" or "waiting"."""

from __future__ import annotations

from collections.abc import Iterable

from gputwin.simulation.result import SimulationResult
from gputwin.simulation.scenario_settings import elastic_plan_of

CAUSE_WORDS = {
    "behind_other_job": "behind another job",
    "quota_or_fairness": "for quota or fairness",
    "gpu_shortage": "for free GPUs",
    "gpu_model": "for GPUs of the model they need",
    "cpu_or_memory": "for CPU or memory, while GPUs are free",
    "fragmentation": "for GPUs that are free but scattered over nodes",
    "max_per_node": "for nodes below their limit of instances",
    "rdma": "for RDMA",
    "node_startup": "for nodes that start",
    "outage": "for nodes that are down",
}
_BY_ROUNDS = "for GPUs in the plan of a round"
_BY_EITHER = "for quota, fairness or the plan of a round"


def cause_words(cause: str, has_rounds: bool | None = False) -> str:
    """Return what a job waits for: "for free GPUs", "behind another job".

    `has_rounds`: plans of rounds say who has GPUs, instead of quotas or fairness; None: in some of several runs.
    """
    if cause == "quota_or_fairness" and has_rounds is not False:
        return _BY_ROUNDS if has_rounds else _BY_EITHER
    return CAUSE_WORDS.get(cause, cause.replace("_", " "))


def has_rounds(result: SimulationResult) -> bool:
    """Return whether a planner, or a policy of sizes, says at rounds who has GPUs."""
    return "scenario" in result.manifest and (
        result.scenario.planner is not None or elastic_plan_of(result.scenario.elasticity) is not None
    )


def have_rounds(results: Iterable[SimulationResult]) -> bool | None:
    """Return whether all of the runs have rounds, or none; None: some have."""
    found = {has_rounds(result) for result in results}
    return found.pop() if len(found) == 1 else None
