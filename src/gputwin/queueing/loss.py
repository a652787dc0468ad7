"""Jobs of several sizes that are turned away when they do not fit: one resource or several at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from gputwin.core.errors import UserError

_MOST_STATES = 2_000_000


def kaufman_roberts(units: int, loads: Mapping[int, float]) -> dict[int, float]:
    """Return the share of jobs lost of each size, where a job of size b takes b of the units; loads are in erlangs.

    Kaufman, "Blocking in a Shared Resource Environment", 1981; Roberts, 1981. Poisson arrivals, any distribution of
    service, complete sharing: n·q(n) = Σ a(b)·b·q(n − b).
    """
    if any(b < 1 for b in loads) or units < 1:
        raise UserError("sizes and units must be at least 1")
    occupied = np.zeros(units + 1)
    occupied[0] = 1.0
    for n in range(1, units + 1):
        occupied[n] = sum(load * b * occupied[n - b] for b, load in loads.items() if b <= n) / n
        if occupied[n] > 1e200:
            # Only ratios matter; without this, thousands of erlangs overflow.
            occupied[: n + 1] /= occupied[n]
    total = occupied.sum()
    return {b: float(occupied[max(units - b + 1, 0) :].sum() / total) for b in loads}


def multi_resource_loss(
    capacities: Sequence[int], needs: Sequence[Sequence[int]], loads: Sequence[float]
) -> list[float]:
    """Return the share lost of each class, where a job takes `needs[k]` of several resources at once.

    The recursion of Kaufman and Roberts holds for each resource by itself (Ross, Multiservice Loss Models for Broadband
    Telecommunication Networks, 1995, section 2.7): n_r·q(n) = Σ a(k)·b(k, r)·q(n − b(k)), n being what is taken of
    every resource. Exact for a node with GPUs, cores and memory that jobs of these classes arrive at.
    """
    shape = tuple(c + 1 for c in capacities)
    if np.prod(shape, dtype=float) > _MOST_STATES:
        raise UserError(f"more than {_MOST_STATES:,} states; use coarser units of the resources")
    if any(len(need) != len(capacities) or min(need) < 0 or sum(need) < 1 for need in needs):
        raise UserError("every class must need something, and not less than nothing, of each resource")
    taken = np.zeros(shape)
    taken[(0,) * len(shape)] = 1.0
    for n in product(*(range(size) for size in shape)):
        r = next((i for i, amount in enumerate(n) if amount), None)
        if r is None:
            continue
        total = 0.0
        for need, load in zip(needs, loads, strict=True):
            if need[r] and all(a >= b for a, b in zip(n, need, strict=True)):
                total += load * need[r] * taken[tuple(a - b for a, b in zip(n, need, strict=True))]
        taken[n] = total / n[r]
    taken /= taken.sum()
    lost = []
    for need in needs:
        fits = tuple(slice(0, max(size - b, 0)) for size, b in zip(shape, need, strict=True))
        lost.append(1 - float(taken[fits].sum()))
    return lost
