"""kube-scheduler's choice of victims: which pods of which node must go for a pod of higher priority.

On a node: take away all pods of lower priority; if the pod then fits, put back as many as possible, those whose going
would break a disruption budget first, then by importance (higher priority, then earlier start). Among nodes: fewest
broken budgets, lowest highest priority of a victim, lowest sum of priorities, fewest victims, latest start of the
earliest-started victim of highest priority, and the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

SHIFT = 2**31
"""Added to each priority in a sum, so that more victims never weigh less because their priorities are negative."""


@dataclass(frozen=True)
class Pod:
    """A pod on a node, or one that wants in."""

    name: str
    priority: int
    request: Mapping[str, float]
    start: float = 0.0


class Budget(NamedTuple):
    """A disruption budget: how many of these pods may go."""

    pods: frozenset[str]
    allowed: int


class Candidate(NamedTuple):
    """A node on which preemption helps: its victims, the most important first, and how many break a budget."""

    node: str
    victims: tuple[Pod, ...]
    violations: int


def victims_on(
    node: str, capacity: Mapping[str, float], pods: Sequence[Pod], preemptor: Pod, budgets: Sequence[Budget] = ()
) -> Candidate | None:
    """Return the victims on this node; None if no pods of lower priority are in the way or their going does not help."""
    lower = sorted((p for p in pods if p.priority < preemptor.priority), key=_importance)
    kept = [p for p in pods if p.priority >= preemptor.priority]
    if not lower or not _fits(capacity, [*kept, preemptor]):
        return None
    breaking = _breaking(lower, budgets)
    victims: list[Pod] = []
    violations = 0
    for pod in [*(p for p in lower if p.name in breaking), *(p for p in lower if p.name not in breaking)]:
        if _fits(capacity, [*kept, pod, preemptor]):
            kept.append(pod)
        else:
            victims.append(pod)
            violations += pod.name in breaking
    return Candidate(node, tuple(sorted(victims, key=_importance)), violations) if victims else None


def candidates(
    nodes: Mapping[str, Sequence[Pod]],
    capacity: Mapping[str, Mapping[str, float]],
    preemptor: Pod,
    budgets: Sequence[Budget] = (),
    *,
    at_least_percent: int = 10,
    at_least: int = 100,
    offset: int = 0,
) -> list[Candidate]:
    """Return nodes where preemption helps, starting with number `offset` and going around, until enough are found.

    Enough is `at_least_percent` of the nodes, but not below `at_least`. The scheduler draws the offset at random.
    """
    names = list(nodes)
    enough = min(len(names), max(len(names) * at_least_percent // 100, at_least))
    found: list[Candidate] = []
    broken: list[Candidate] = []
    for i in range(len(names)):
        name = names[(offset + i) % len(names)]
        candidate = victims_on(name, capacity[name], nodes[name], preemptor, budgets)
        if candidate is not None:
            (broken if candidate.violations else found).append(candidate)
            # A search that has only found broken budgets goes on for a node without.
            if found and len(found) + len(broken) >= enough:
                break
    return [*found, *broken]


def best(found: Sequence[Candidate]) -> Candidate | None:
    """Return the node whose victims are the least loss; None if there is none."""
    return min(found, key=_loss, default=None)


def _loss(candidate: Candidate) -> tuple[int, int, int, int, float]:
    priorities = [pod.priority for pod in candidate.victims]
    highest = max(priorities)
    earliest = min(pod.start for pod in candidate.victims if pod.priority == highest)
    return candidate.violations, highest, sum(p + SHIFT for p in priorities), len(priorities), -earliest


def _importance(pod: Pod) -> tuple[int, float]:
    return -pod.priority, pod.start


def _fits(capacity: Mapping[str, float], pods: Sequence[Pod]) -> bool:
    return all(sum(p.request.get(resource, 0.0) for p in pods) <= most for resource, most in capacity.items())


def _breaking(pods: Sequence[Pod], budgets: Sequence[Budget]) -> set[str]:
    """Return the pods whose going, after that of the more important ones before them, breaks a budget."""
    left = [budget.allowed for budget in budgets]
    broken = set()
    for pod in pods:
        for b, budget in enumerate(budgets):
            if pod.name in budget.pods:
                left[b] -= 1
                if left[b] < 0:
                    broken.add(pod.name)
    return broken
