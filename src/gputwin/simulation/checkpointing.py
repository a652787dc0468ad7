"""How often to checkpoint, and how long work then takes when failures come at random (exponential times between them).

Work of `work_seconds` is cut into intervals; after each, saving takes `save_seconds`; a failure loses what was done since
the last save, and `restart_seconds` pass before work goes on (failures may come then, too). All times in s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gputwin.core.errors import UserError

RULES = ("young", "daly", "exact")


@dataclass(frozen=True)
class CheckpointCosts:
    """What a checkpoint and a restart cost, and how often failures come."""

    save_seconds: float
    restart_seconds: float
    mtbf_seconds: float

    def __post_init__(self) -> None:
        if not self.mtbf_seconds > 0:
            raise UserError(f"mean time between failures is {self.mtbf_seconds:g} s; give more than 0")
        if not (self.save_seconds >= 0 and self.restart_seconds >= 0):
            raise UserError("checkpoint costs are times; give 0 or more seconds to save and to restart")


def interval(rule: str, costs: CheckpointCosts) -> float:
    """Return the seconds of work between two checkpoints by 'young', 'daly' or 'exact'."""
    if rule not in RULES:
        raise UserError(f"unknown rule of checkpoint intervals '{rule}'; known: {', '.join(RULES)}")
    chosen = {"young": young, "daly": daly, "exact": exact}[rule]
    return chosen(costs.save_seconds, costs.mtbf_seconds)


def young(save_seconds: float, mtbf_seconds: float) -> float:
    """Return √(2 · save · MTBF), s (Young, A First Order Approximation to the Optimum Checkpoint Interval, 1974)."""
    return math.sqrt(2.0 * save_seconds * mtbf_seconds)


def daly(save_seconds: float, mtbf_seconds: float) -> float:
    """Return Daly's higher-order interval, s (A higher order estimate of the optimum checkpoint interval, 2006, eq. 37)."""
    if save_seconds >= 2.0 * mtbf_seconds:
        return mtbf_seconds
    ratio = save_seconds / (2.0 * mtbf_seconds)
    return math.sqrt(2.0 * save_seconds * mtbf_seconds) * (1.0 + math.sqrt(ratio) / 3.0 + ratio / 9.0) - save_seconds


def exact(save_seconds: float, mtbf_seconds: float) -> float:
    """Return the interval of least expected time, s: τ with (1 − τ / MTBF) · e^((τ + save) / MTBF) = 1.

    By Lambert's function, τ = MTBF · (1 + W₀(−e^(−save / MTBF − 1))).
    """
    from scipy.special import lambertw

    return mtbf_seconds * (1.0 + float(lambertw(-math.exp(-save_seconds / mtbf_seconds - 1.0)).real))


def expected_seconds(work_seconds: float, interval_seconds: float, costs: CheckpointCosts) -> float:
    """Return the expected time until the work is done, s, exact for exponential failures (Daly 2006, eq. 20).

    An interval with its save takes MTBF · e^(restart / MTBF) · (e^((interval + save) / MTBF) − 1) on average; the last may
    be shorter, and nothing is saved at the end.
    """
    if not interval_seconds > 0:
        raise UserError(f"checkpoint interval is {interval_seconds:g} s; give more than 0")
    if not work_seconds > 0:
        return 0.0
    saves = max(math.ceil(work_seconds / interval_seconds * (1.0 - 1e-12)) - 1, 0)
    last = work_seconds - saves * interval_seconds
    return saves * _attempts_seconds(interval_seconds + costs.save_seconds, costs) + _attempts_seconds(last, costs)


def _attempts_seconds(seconds: float, costs: CheckpointCosts) -> float:
    """Return how long it takes on average until `seconds` pass without a failure; each failure costs a restart."""
    mtbf = costs.mtbf_seconds
    return mtbf * math.exp(costs.restart_seconds / mtbf) * math.expm1(seconds / mtbf)


def effective_training_ratio(interval_seconds: float, costs: CheckpointCosts) -> float:
    """Return the share of time that advances the work for good, in the long run."""
    return interval_seconds / _attempts_seconds(interval_seconds + costs.save_seconds, costs)


def job_mtbf_seconds(node_mtbf_seconds: float, nodes: int) -> float:
    """Return the mean time between failures of a job on several nodes, each of which stops it."""
    return node_mtbf_seconds / nodes
