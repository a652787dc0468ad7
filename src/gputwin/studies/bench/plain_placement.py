"""Where a job goes, in plain Python: what is free on a node, and the scores of first fit, best fit and FGD."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gputwin.core.units import WHOLE_GPU_MILLI

Devices = Sequence[int]


class Ask(NamedTuple):
    """What one job asks for; `milli` is of each of its GPUs, `models` are those it may run on."""

    cpu: int
    memory: int
    gpus: int
    milli: int
    models: frozenset[int]


@dataclass
class Node:
    """What is free on one node: `share` is the milli-GPU free of each device, `gpu` their sum."""

    cpu: int
    memory: int
    share: list[int]
    gpu: int
    model: int

    def fits(self, ask: Ask) -> bool:
        """Return whether the job can run here now."""
        return (
            self.gpu >= ask.gpus * ask.milli
            and self.cpu >= ask.cpu
            and self.memory >= ask.memory
            and (ask.gpus == 0 or (self.model in ask.models and len(self.fitting(ask)) >= ask.gpus))
        )

    def fitting(self, ask: Ask) -> list[int]:
        """Return the devices with share enough."""
        milli = ask.milli
        return [d for d, free in enumerate(self.share) if free >= milli]

    def fullest(self, ask: Ask) -> Devices:
        """Return the devices with least free share that fit, the lowest index among equals."""
        return sorted(self.fitting(ask), key=lambda d: self.share[d])[: ask.gpus]

    def take(self, ask: Ask, devices: Devices, sign: int = 1) -> None:
        """Take what the job asks for (sign 1), or give it back (sign -1)."""
        self.cpu -= sign * ask.cpu
        self.memory -= sign * ask.memory
        self.gpu -= sign * ask.milli * len(devices)
        for d in devices:
            self.share[d] -= sign * ask.milli


class Typical(NamedTuple):
    """A kind of the typical workload: the fields of an engine's TYPICAL record."""

    cpu: int
    milli: int
    gpus: int
    models: int
    popularity: float


class Fleet(NamedTuple):
    """What scores look at besides the node: CPU and milli-GPU of the largest, and the typical workload."""

    cpu: float
    gpu: float
    typical: Sequence[Typical]


def first_fit(node: Node, ask: Ask, fleet: Fleet) -> tuple[float, Devices]:
    """Return the same score for every node, and the devices."""
    return 0.0, node.fullest(ask)


def best_fit(node: Node, ask: Ask, fleet: Fleet) -> tuple[float, Devices]:
    """Return 100 minus half the CPU and half the GPU left, in % of the largest node's, and the devices."""
    cpu, gpu = (node.cpu - ask.cpu) / fleet.cpu, (node.gpu - ask.gpus * ask.milli) / fleet.gpu
    return int(100.0 * (1.0 - 0.5 * cpu - 0.5 * gpu)), node.fullest(ask)


def fgd(node: Node, ask: Ask, fleet: Fleet) -> tuple[float, Devices]:
    """Return 100 × sigmoid of the fall of fragmentation in GPUs, and the devices that give it (Weng et al., ATC'23)."""
    shares_one = ask.gpus == 1 and ask.milli < WHOLE_GPU_MILLI
    choices: list[Devices] = [(d,) for d in node.fitting(ask)] if shares_one else [node.fullest(ask)]
    before = _fragmentation(node, fleet)
    top, best = -1, choices[0]
    tried: set[int] = set()
    for devices in choices:
        if shares_one and node.share[devices[0]] in tried:
            continue
        tried.update(node.share[d] for d in devices)
        node.take(ask, devices)
        points = int(1.0 / (1.0 + math.exp(-(before - _fragmentation(node, fleet)) / 1000.0)) * 100.0)
        node.take(ask, devices, -1)
        if points > top:
            top, best = points, devices
    return top, best


def _fragmentation(node: Node, fleet: Fleet) -> float:
    """Return the milli-GPU of the node that the typical workload could not use, in expectation.

    Summed by what a kind lacks, as the engine does: both, GPUs, CPU; without GPUs, with room and without; the model.
    """
    lacks = [0.0] * 6
    for cpu, milli, gpus, models, popularity in fleet.typical:
        short = node.cpu < cpu
        if gpus == 0:
            lacks[3 + short] += popularity * node.gpu
        elif not models >> node.model & 1:
            lacks[5] += popularity * node.gpu
        else:
            below = [free for free in node.share if free < milli]
            if len(node.share) - len(below) < gpus:
                lacks[0 if short else 1] += popularity * node.gpu
            else:
                lacks[2 if short else 1] += popularity * (node.gpu if short else sum(below))
    total = 0.0
    for lack in lacks:
        total += lack
    return total


Score = Callable[[Node, Ask, Fleet], tuple[float, Devices]]
SCORES: dict[str, Score] = {"first-fit": first_fit, "best-fit": best_fit, "fgd": fgd}
