"""How well GPUs are used: speed against cost, scaling efficiency, and whether one more is worth it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gputwin.core.errors import UserError
from gputwin.simulation.elasticity.throughput import StepTime

Speed = Callable[[int], float]
"""Work a second on n GPUs; 0 on none."""
GPUS_PER_NODE = 4


def strong_scaling(speed: Speed, gpus: int) -> float:
    """Return speed on n GPUs over n times the speed on one, for the same total batch."""
    return speed(gpus) / (gpus * speed(1))


def weak_scaling(model: StepTime, gpus: int, batch_per_gpu: float, gpus_per_node: int = GPUS_PER_NODE) -> float:
    """Return the step time on one GPU over that on n, each with the same batch."""
    one, many = np.array([1.0]), np.array([float(gpus)])
    batch = np.array([batch_per_gpu])
    return float(
        (model.step_seconds(one, one, batch) / model.step_seconds(np.ceil(many / gpus_per_node), many, batch))[0]
    )


def worth_of_gpus(speed: Speed, gpus: int, price: float = 1.0) -> float:
    """Return E(n) = P(n) / C(n): work a second for its cost."""
    return speed(gpus) / (gpus * price)


def marginal_gain(speed: Speed, gpus: int, more: int = 1) -> float:
    """Return the work a second that each of `more` further GPUs would add."""
    return (speed(gpus + more) - speed(gpus)) / more


@dataclass(frozen=True)
class ScaleRule:
    """Scale up while a further GPU adds at least `up` of what the first gave; down when the last adds less than `down`.

    `down` below `up` is a hysteresis: a job is not resized back and forth. A resize must pay for itself: the time it
    saves is more than `resize_seconds`.
    """

    up: float = 0.5
    down: float = 0.3
    least: int = 1
    most: int = 64
    resize_seconds: float = 30.0

    def __post_init__(self) -> None:
        if not 0 <= self.down <= self.up:
            raise UserError(f"scale rule: down is {self.down:g} and up {self.up:g}; give down at most up, 0 or more")
        if not 1 <= self.least <= self.most:
            raise UserError(f"scale rule: least is {self.least} and most {self.most}; give 1 <= least <= most")

    def size(self, speed: Speed, gpus: int, work_left: float, free: int) -> int:
        """Return how many GPUs the job should have next: one more, one fewer or as many as now."""
        first = speed(1)
        if gpus > self.least and marginal_gain(speed, gpus - 1) < self.down * first:
            return gpus - 1
        if free > 0 and gpus < self.most and marginal_gain(speed, gpus) >= self.up * first:
            saved = work_left / speed(gpus) - work_left / speed(gpus + 1) if gpus else np.inf
            return gpus + 1 if saved > self.resize_seconds else gpus
        return gpus
