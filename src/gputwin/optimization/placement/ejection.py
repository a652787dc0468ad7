"""Room made for tasks that found none: one placed task moves to another node, and the new one takes its place.

Ejection chains of length one (Glover 1996) on a packing of single-instance tasks with GPU devices; a move is made only
where both tasks end up placed, so what is allocated never falls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputwin.optimization.placement.fleet import Fleet
from gputwin.optimization.placement.problem import Ints

MOST_TRIES = 400
"""Placed tasks tried for one that is not, the smallest first."""


@dataclass(frozen=True)
class Requests:
    """What each task asks for: whole or shared GPUs, other amounts, and the nodes it may go to (None: all)."""

    gpus: Ints
    milli: Ints
    amounts: Ints
    allowed: Sequence[Any]

    @property
    def takes(self) -> Ints:
        """Return the GPU milli of each task."""
        return self.gpus * self.milli


def make_room(ask: Requests, placed: Ints, held: list[tuple[int, ...]], fleet: Fleet) -> None:
    """Place tasks of a packing that are not placed yet, in place, the largest first, by moving one other each."""
    wide = fleet.devices.shape[1]
    back = np.zeros((len(placed), wide), np.int64)
    for task in np.flatnonzero(placed >= 0).tolist():
        back[task, list(held[task])] = ask.milli[task]
    size = (ask.amounts / np.maximum(fleet.capacity.max(axis=0), 1)).sum(axis=1) + ask.takes / fleet.gpu_capacity.max()
    missing = np.flatnonzero(placed < 0)
    for task in missing[np.lexsort((size[missing], -ask.takes[missing]))].tolist():
        for other in _movable(ask, placed, back, fleet, task, size):
            if _swap(ask, placed, held, fleet, task, other):
                for moved in (task, other):
                    back[moved] = 0
                    back[moved, list(held[moved])] = ask.milli[moved]
                break


def _movable(
    ask: Requests, placed: Ints, back: NDArray[np.int64], fleet: Fleet, task: int, size: NDArray[np.float64]
) -> list[int]:
    """Return the placed tasks without which the new one fits on their node, the smallest first."""
    there = np.flatnonzero(placed >= 0)
    node = placed[there]
    fits = (fleet.free[node] + ask.amounts[there] >= ask.amounts[task]).all(axis=1)
    if ask.gpus[task]:
        fits &= (fleet.devices[node] + back[there] >= ask.milli[task]).sum(axis=1) >= ask.gpus[task]
    if ask.allowed[task] is not None:
        fits &= ask.allowed[task][node]
    found = there[fits]
    return [int(t) for t in found[np.argsort(size[found], kind="stable")][:MOST_TRIES]]


def _swap(ask: Requests, placed: Ints, held: list[tuple[int, ...]], fleet: Fleet, task: int, other: int) -> bool:
    """Move `other` to another node and put `task` where it was; return whether that was possible."""
    node = int(placed[other])
    able = np.ones(len(fleet.free), np.bool_) if ask.allowed[other] is None else ask.allowed[other].copy()
    able[node] = False
    target = fleet.best(ask.amounts[other], int(ask.gpus[other]), int(ask.milli[other]), able)
    if target is None:
        return False
    fleet.take_back(node, ask.amounts[other], held[other], int(ask.milli[other]))
    held[other] = fleet.put(target, ask.amounts[other], int(ask.gpus[other]), int(ask.milli[other]))
    held[task] = fleet.put(node, ask.amounts[task], int(ask.gpus[task]), int(ask.milli[task]))
    placed[other], placed[task] = target, node
    return True
