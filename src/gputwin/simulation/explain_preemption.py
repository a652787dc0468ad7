"""Why a job had to yield to another, in words, from the rules of the run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gputwin.simulation.cause_words import has_rounds
from gputwin.simulation.policy import FAIRNESS, ORDERINGS
from gputwin.simulation.policy_parameters import parse_policy
from gputwin.simulation.priority_parts import points
from gputwin.simulation.quotas.admission import queues_of_tenants
from gputwin.simulation.quotas.kueue_yaml import read_local_queues, read_quotas
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.scenario import Scenario

_BY_RULE = {
    "priority": "which has a higher priority{}",
    "kube-scheduler": "which has a higher priority{}",
    "benefit": "which has a higher priority{}, and gained more than the stop cost",
    "remaining-time": "which had less predicted work left",
    "attained-service": "which had had less service",
    "service-index": "which had a higher Gittins index",
    "time-slice": "as its time slice was over",
}
"""Rule of preemption → what the job that took the place had; {}: where priorities stand."""
PLANNED = "as the plan of a round gave its GPUs to others"
RECLAIMED = "whose tenant took back GPUs of its guarantee"


def why_preempted(result: SimulationResult, loser: dict[str, Any], winner: dict[str, Any] | None) -> str:
    """Return why the job `loser` yielded to `winner` (None: to no job), rows of the run's jobs; "" where that is unknown."""
    if "scenario" not in result.manifest:
        return ""
    scenario = result.scenario
    if winner is None:
        return PLANNED if has_rounds(result) else ""
    fairness = scenario.fairness
    if fairness is not None and FAIRNESS.get(fairness.policy.name).queues and fairness.queues:
        return "" if queues_missing(result) else _by_queues(scenario, loser["tenant"], winner["tenant"])
    if fairness is not None and fairness.policy.name == "quota":
        return RECLAIMED
    rule, _ = parse_policy(scenario.preemption)
    said = _BY_RULE.get(rule or ORDERINGS.get(scenario.order.name).preemption, "")
    return said.format(_priorities(loser, winner))


def _priorities(loser: dict[str, Any], winner: dict[str, Any]) -> str:
    """Return the priorities of both; "" where the run does not have them."""
    has_them = "priority" in winner and "priority" in loser
    return f" ({points(winner['priority'])} against {points(loser['priority'])})" if has_them else ""


def queues_missing(result: SimulationResult) -> str:
    """Return the file of queues that the run was made with, where it is not there any more; else ""."""
    fairness = result.scenario.fairness if "scenario" in result.manifest else None
    file = "" if fairness is None else fairness.queues or ""
    return str(file) if file and not Path(file).is_file() else ""


def _by_queues(scenario: Scenario, loser: str, winner: str) -> str:
    fairness = scenario.fairness
    assert fairness is not None
    path = Path(str(fairness.queues))
    tree = read_quotas(path)
    own, other = queues_of_tenants((loser, winner), tree, read_local_queues(path), path, fairness.default_queue)
    name = tree.nodes[int(other)].name
    if own == other:
        return f"which goes before it in ClusterQueue {name}"
    took = "took back quota" if fairness.policy.name == "kueue-classical" else "took back quota or had a lower share"
    return f"whose ClusterQueue {name} {took} in the cohort"
