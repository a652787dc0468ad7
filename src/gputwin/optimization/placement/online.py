"""Online rules, each instance placed as it comes: best fit, and fragmentation gradient descent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.optimization.placement.heuristics import Floats
from gputwin.optimization.placement.problem import Ints, Problem
from gputwin.optimization.placement.standing import Rule, Standing

_MOST_KINDS = 16
"""Kinds of requests that stand for the typical workload, the most frequent ones."""


def best_fit(weights: Floats, capacities: Ints) -> Rule:
    """Return best fit: the node whose free capacity is least afterwards, resources weighted by how scarce they are."""
    largest = np.maximum(capacities.max(axis=0), 1).astype(float)

    def score(standing: Standing, rows: Ints, group: int) -> Floats:
        left = (standing.free[rows] - standing.problem.sizes[group]) / largest
        return np.asarray(-(left @ weights))

    return Rule("best fit", score, fullest_devices)


def fullest_devices(standing: Standing, row: int, group: int) -> tuple[int, ...]:
    """Return the devices that an instance takes: the fullest that have room."""
    asked, free = standing.problem.groups[group], standing.devices[row]
    order = np.argsort(free, kind="stable").tolist()
    return tuple(d for d in order if free[d] >= asked.gpu_milli)[: asked.gpus]


@dataclass(frozen=True)
class Typical:
    """The typical workload: share, CPU, GPUs and share of a GPU of its kinds, and the node types each may run on."""

    share: Floats
    cpu: Ints
    gpus: Ints
    milli: Ints
    allowed: np.ndarray
    """kinds × node types"""

    def fragmentation(self, cpu: Ints, devices: Ints, types: Ints) -> Floats:
        """Return per node the milli-GPU that the typical workload could not use, in expectation.

        A kind that does not fit can use nothing; one that fits leaves the devices with less than its share.
        """
        idle = devices.sum(axis=1)
        total = np.zeros(len(idle))
        for k in range(len(self.share)):
            enough = devices >= self.milli[k]
            fits = (cpu >= self.cpu[k]) & self.allowed[k, types] & (self.gpus[k] > 0)
            fits &= enough.sum(axis=1) >= self.gpus[k]
            total += self.share[k] * np.where(fits, np.where(enough, 0, devices).sum(axis=1), idle)
        return total


def typical_of(problem: Problem, counts: Ints) -> Typical:
    """Return the typical workload of so many instances of each group."""
    cpu = problem.sizes[:, problem.resources.index("cpu_milli")]
    kinds: dict[tuple[int, int, int, tuple[bool, ...]], int] = {}
    for g in np.flatnonzero(counts).tolist():
        group = problem.groups[g]
        key = (int(cpu[g]), group.gpus, group.gpu_milli, tuple((problem.most[:, g] > 0).tolist()))
        kinds[key] = kinds.get(key, 0) + int(counts[g])
    kept = sorted(kinds, key=lambda k: (-kinds[k], k))[:_MOST_KINDS]
    share = np.array([kinds[k] for k in kept], float)
    return Typical(
        share / max(share.sum(), 1.0),
        np.array([k[0] for k in kept], np.int64),
        np.array([k[1] for k in kept], np.int64),
        np.array([k[2] for k in kept], np.int64),
        np.array([k[3] for k in kept], np.bool_).reshape(len(kept), len(problem.types)),
    )


def fgd(typical: Typical, problem: Problem) -> Rule:
    """Return FGD: the node and device where the expected fragmentation grows least (Weng et al., ATC'23, section 4).

    Nodes on which it grows alike, such as those without GPUs, are taken in the order they were opened.
    """
    column = problem.resources.index("cpu_milli")

    def growth(standing: Standing, rows: Ints, group: int) -> tuple[Floats, Ints]:
        """Return per node the least growth and, for a share of one GPU, the device it is found on."""
        idle = standing.devices[rows].sum(axis=1) > 0
        if not idle.all():
            least, chosen = np.zeros(len(rows)), np.full(len(rows), -1)
            if idle.any():
                least[idle], chosen[idle] = growth(standing, rows[idle], group)
            return least, chosen
        asked, types = problem.groups[group], standing.kinds[rows]
        cpu, devices = standing.free[rows, column], standing.devices[rows]
        before = typical.fragmentation(cpu, devices, types)
        cpu = cpu - problem.sizes[group, column]
        if asked.gpus != 1 or asked.gpu_milli == WHOLE_GPU_MILLI:
            taken = devices.copy()
            for i, row in enumerate(rows.tolist()):
                taken[i, list(fullest_devices(standing, row, group))] -= asked.gpu_milli
            return typical.fragmentation(cpu, taken, types) - before, np.full(len(rows), -1)
        least, chosen = np.full(len(rows), np.inf), np.full(len(rows), -1)
        for d in range(devices.shape[1]):
            able = devices[:, d] >= asked.gpu_milli
            taken = devices.copy()
            taken[:, d] -= asked.gpu_milli
            grown = np.where(able, typical.fragmentation(cpu, np.maximum(taken, 0), types) - before, np.inf)
            better = grown < least
            least, chosen = np.where(better, grown, least), np.where(better, d, chosen)
        return least, chosen

    def score(standing: Standing, rows: Ints, group: int) -> Floats:
        return -growth(standing, rows, group)[0]

    def devices(standing: Standing, row: int, group: int) -> tuple[int, ...]:
        chosen = int(growth(standing, np.array([row]), group)[1][0])
        return (chosen,) if chosen >= 0 else fullest_devices(standing, row, group)

    return Rule("FGD", score, devices)
