"""Lower priorities yield as kube-scheduler chooses: the node on which that is the least loss."""

from __future__ import annotations

from gputwin.simulation.engine.state.records import Knobs, Records
from gputwin.simulation.engine.world import ON_BEST_NODE
from gputwin.simulation.policy import preemption
from gputwin.simulation.preemption.priority import STEP, claim


@preemption(
    "kube-scheduler",
    "a job may take the place of jobs of lower priority, on the node where that is the least loss: the lowest highest "
    "priority of who goes, then the lowest sum of priorities, the fewest jobs, those that started last",
    source="kube-scheduler's DefaultPreemption: a tenth of the nodes, at least 100, are looked at",
    claim=claim,
    apart="priority",
    orders=("priority:aging=0",),
    victims=ON_BEST_NODE,
)
def rank(jobs: Records, j: int, now: float, knobs: Knobs) -> float:
    """Return the start of the running job j, behind all of higher priority, s."""
    return jobs[j].start - jobs[j].priority * STEP
