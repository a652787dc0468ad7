"""Goodput: throughput × statistical efficiency, and the batch size at which it is largest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gputwin.simulation.elasticity.throughput import Floats, StepTime

TRIES = 50
"""Batch sizes tried between the least and the most, in equal ratios."""
_SLACK = 1e-8


@dataclass(frozen=True)
class BatchLimits:
    """The batch a job starts with, the most it may have, and the least and most on a GPU at a time."""

    initial: int
    most: int
    least_local: int
    most_local: int


@dataclass(frozen=True)
class Goodput:
    """Progress a second, in samples of the initial batch (Qiao et al., Pollux, OSDI'21, section 3).

    `noise` is the gradient's variance over its square at the initial batch: the larger, the more a larger batch learns.
    """

    steps: StepTime
    limits: BatchLimits
    noise: float

    def efficiency(self, batch: Floats) -> Floats:
        """Return how much a sample of a larger batch is worth, against one of the initial batch."""
        return np.asarray((self.noise + 1.0) / (self.noise + np.asarray(batch, float) / self.limits.initial))

    def best(self, nodes: Floats, gpus: Floats) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return, for each pair of nodes and GPUs, the largest goodput, the batch on a GPU at a time, and how many of
        these are added up before a step besides the last. Goodput is 0 where the batch cannot be that large.
        """
        nodes, gpus = np.asarray(nodes, float), np.asarray(gpus, float)
        limits = self.limits
        low = np.maximum(limits.initial, limits.least_local * gpus)
        local = np.geomspace(low, np.full_like(low, limits.most), TRIES) / gpus
        added = np.ceil(local / limits.most_local - _SLACK) - 1
        # A single GPU needs two batches to see how noisy the gradient is.
        added = np.where((gpus == 1) & (local > limits.initial + _SLACK), np.maximum(added, 1), added)
        at_a_time = np.ceil(local / (added + 1) - _SLACK)
        batch = gpus * at_a_time * (added + 1)
        seconds = added * self.steps.compute_seconds(at_a_time) + self.steps.step_seconds(nodes, gpus, at_a_time)
        fits = (at_a_time >= limits.least_local) & (at_a_time <= limits.most_local) & (low <= limits.most)
        good = np.where(fits, batch / seconds * self.efficiency(batch), 0.0)
        choice = good.argmax(axis=0), np.arange(gpus.size)
        return good[choice], at_a_time[choice].astype(np.int64), added[choice].astype(np.int64)
