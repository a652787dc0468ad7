"""Runs of the simulator that several tests need, and intervals of their means."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gputwin.autoscaling.serving.simulator import Simulator
from gputwin.autoscaling.serving.system import Engine, Load, Slots
from gputwin.core.rng import stream

Floats = NDArray[np.float64]
BATCHES = 40
WIDTH = 3.6
"""Standard errors: one true value in a thousand lies outside by chance, with 40 batches."""


@dataclass(frozen=True)
class Interval:
    mean: float
    half: float

    def holds(self, value: float) -> bool:
        return abs(self.mean - value) <= self.half


def interval(values: Floats) -> Interval:
    """Return the mean of a stationary series with its interval by batch means."""
    values = values[len(values) % BATCHES :]
    means = values.reshape(BATCHES, -1).mean(axis=1)
    return Interval(float(means.mean()), WIDTH * float(means.std(ddof=1)) / BATCHES**0.5)


def served(load: Load, system: Slots | Engine, replicas: int, **more: object) -> Simulator:
    """Return a finished run on a fixed number of replicas."""
    run = Simulator(load, system, replicas=replicas, most_replicas=replicas, **more)  # type: ignore[arg-type]
    run.finish()
    return run


def poisson(rate: float, count: int, *purpose: str | int) -> Floats:
    return np.cumsum(stream(1, "arrivals", *purpose).exponential(1 / rate, count))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))
