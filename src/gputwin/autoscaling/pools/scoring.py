"""Whether a consolidation is worth the disruption: Karpenter's eviction costs, savings ratio, score and churn chains.

Source: Karpenter, designs/balanced-consolidation.md and pkg/utils/disruption.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gputwin.autoscaling.pools.interface import Task


class Score(NamedTuple):
    """The share of cost saved per share of disruption, and whether that is enough."""

    approved: bool
    score: float | None
    """None where there is no such ratio: no cost, or neither savings nor disruption."""

    @property
    def is_infinite(self) -> bool:
        """Return whether something is saved without any disruption."""
        return self.score == math.inf


def eviction_cost(task: Task) -> float:
    """Return 1 + deletion cost ÷ 2²⁷ + priority ÷ 2²⁵, within −10 and 10."""
    return min(max(1.0 + task.deletion_cost / 2**27 + task.priority / 2**25, -10.0), 10.0)


def disruption_cost(tasks: Iterable[Task]) -> float:
    """Return 1 for the node and the eviction cost of each task on it, where that is above 0."""
    return 1.0 + sum(max(0.0, eviction_cost(task)) * task.instances for task in tasks)


def savings_ratio(price: float, tasks: Iterable[Task]) -> float:
    """Return the node's price per unit of disruption; candidates with the highest come first."""
    return price / disruption_cost(tasks)


def score_move(savings: float, disruption: float, pool_cost: float, pool_disruption: float, k: float = 2.0) -> Score:
    """Return (savings ÷ pool's cost) ÷ (disruption ÷ pool's disruption), approved from 1/k on."""
    if pool_cost <= 0:
        return Score(False, None)
    if disruption <= 0:
        return Score(True, math.inf) if savings > 0 else Score(False, None)
    if savings <= 0:
        return Score(False, 0.0)
    score = savings / pool_cost * pool_disruption / disruption
    # The boundary counts as approved; float noise must not decide it.
    return Score(score >= 1.0 / k or math.isclose(score, 1.0 / k, rel_tol=1e-9), score)


class Churn(NamedTuple):
    """Replacements a threshold allows among some prices, and the longest chain of them."""

    pairs: int
    longest: int


def churn_of(prices: Sequence[float], k: float) -> Churn:
    """Return how many replacements by a cheaper node a uniform pool approves at `k`, and the longest chain of them.

    In a uniform pool the score of a replacement is 1 − new price ÷ old price.
    """
    kinds = sorted(set(prices))
    allowed = {old: [new for new in kinds if new < old and _approved(old, new, k)] for old in kinds}

    @functools.cache
    def chain(price: float) -> int:
        return max((1 + chain(new) for new in allowed[price]), default=0)

    return Churn(sum(len(targets) for targets in allowed.values()), max(map(chain, kinds), default=0))


def _approved(old: float, new: float, k: float) -> bool:
    return score_move(old - new, 1.0, old, 1.0, k).approved
