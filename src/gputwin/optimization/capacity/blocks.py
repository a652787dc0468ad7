"""Records like the one at hand: its days drawn with replacement, and what demand they would have brought."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gputwin.core.rng import stream
from gputwin.core.units import DAY
from gputwin.optimization.capacity.target import Floats
from gputwin.simulation.workload import Workload

Draws = NDArray[np.int64]
_FEWEST, _FEWEST_DAYS = 8, 5
_OF_LONG = range(16, 31)
DRAWS = 200


def block_count(submit: Floats) -> int:
    """Return into how many equal blocks a record is cut.

    Jobs of one day share its crowds, and days have a rhythm: so days are drawn, not jobs, and of records longer than a
    month stretches of several days, as nearly whole ones as can be. A record of less than five days is cut into eight.
    """
    days = float(submit[-1] - submit[0]) / DAY
    if days < _FEWEST_DAYS:
        return _FEWEST
    if days < _OF_LONG[-1]:
        return round(days)
    return min(_OF_LONG, key=lambda count: (abs(days / count - round(days / count)), -count))


def block_of(submit: Floats) -> NDArray[np.int64]:
    """Return the block each job is submitted in."""
    span = float(submit[-1] - submit[0])
    if span <= 0:
        return np.zeros(submit.size, np.int64)
    count = block_count(submit)
    blocks: NDArray[np.int64] = np.minimum(((submit - submit[0]) / span * count).astype(np.int64), count - 1)
    return blocks


def draws_of(submit: Floats) -> Draws:
    """Return the blocks of each drawn record, one row each: always the same ones for as many blocks."""
    count = block_count(submit)
    return stream(0, "blocks").integers(0, count, (DRAWS, count))


def drawn(workload: Workload, blocks: NDArray[np.int64]) -> Workload:
    """Return the workload whose blocks of arrivals are these, in this order (the block bootstrap of Künsch, 1989).

    Jobs keep their time within the block and how long they run, across its end if need be. What arrives at the first
    instant of the record was running when it began: it stays there and is not drawn.
    """
    jobs, shapes = workload.jobs, workload.shapes
    submit = jobs["submit"]
    first, length = submit[0], (submit[-1] - submit[0]) / blocks.size
    standing = int(np.searchsorted(submit, first, side="right"))
    begins = np.searchsorted(block_of(submit), np.arange(blocks.size + 1))
    begins = np.maximum(begins, standing)
    parts = [np.arange(begins[b], begins[b + 1]) for b in blocks]
    chosen = np.concatenate([np.arange(standing), *parts])
    shift = np.repeat((np.arange(blocks.size) - blocks) * length, [part.size for part in parts])
    taken = jobs[chosen].copy()
    taken["submit"][standing:] += shift
    taken = taken[np.argsort(taken["submit"], kind="stable")]
    instances = shapes["instances"][taken["shape"]].astype(np.int64)
    taken["first_slot"] = np.cumsum(instances) - instances
    return replace(workload, jobs=taken)
