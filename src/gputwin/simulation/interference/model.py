"""Speeds of pairs that were not measured: each type is measured beside two probes, and the rest follows from that.

As in Bubble-Up (Mars et al., MICRO'11): what a type suffers beside a probe is its sensitivity, what the probe suffers
beside it its pressure. The slowdown of a beside b grows with a's sensitivities and b's pressures; the weights are fitted to
measured pairs and never negative.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from gputwin.simulation.engine.state.records import Flags, Floats, Ints
from gputwin.simulation.interference.table import PairTable

_SLOWEST = 0.05
"""No neighbour is predicted to leave less speed than this."""
_PEAKS = {"k80": (4.1, 240.0), "p100": (9.3, 732.0), "v100": (14.0, 900.0)}
"""Peak TFLOP/s (single precision) and GB/s, from the data sheets (K80: one of its two GPUs)."""


@dataclass(frozen=True)
class LeftOut:
    """How well the speeds beside a family of types are predicted without ever seeing it beside others than the probes."""

    family: str
    pairs: int
    error: float
    """Mean absolute error of the speed."""
    error_of_mean: float
    """That of the mean speed of all other pairs."""
    error_by_alone: float
    """That of a model which knows only how fast types run alone on several GPUs; not a number: not known."""
    probes: tuple[str, str]


def filled(table: PairTable) -> PairTable:
    """Return the table with the pairs that were not measured; where no probes are known, with the mean measured speed."""
    speeds = table.speeds.copy()
    for g in range(len(table.gpus)):
        missing = np.isnan(speeds[g])
        if not missing.any():
            continue
        excess = _clipped_excess(speeds[g])
        known = ~missing & (speeds[g] > 0)
        probes = _best_probes(table, excess, known)
        if probes is None:
            rest = speeds[g][known]
            speeds[g][missing] = rest.mean() if rest.size else table.speeds[table.reference][missing]
        else:
            features = _features(excess, probes)
            guess = _predicted(features, _fit(features, excess, known & ~np.isnan(features).any(axis=2)))
            mean = float(speeds[g][known].mean())
            speeds[g][missing] = np.where(np.isnan(guess), mean, guess)[missing]
    return replace(table, speeds=speeds)


def left_out_errors(table: PairTable, gpu: int) -> list[LeftOut]:
    """Return the error for each family of types (the name up to " ("), the model being fitted without its pairs.

    The probes are chosen without them too. Pairs with a probe do not count: they are measured.
    """
    speeds = table.speeds[gpu]
    excess, known = _clipped_excess(speeds), speeds > 0
    families = family_of(table)
    alone = _alone_features(table)
    found = []
    for family in dict.fromkeys(families):
        mine = families == family
        apart = mine[:, None] | mine[None, :]
        seen, probes = known & ~apart, _best_probes(table, excess, known & ~apart)
        if probes is None:
            continue
        features = _features(excess, probes)
        is_probe = np.zeros(len(table.types), np.bool_)
        is_probe[list(probes)] = True
        tested = known & apart & ~is_probe[:, None] & ~is_probe[None, :] & ~np.isnan(features).any(axis=2)
        if not tested.any():
            continue
        actual = speeds[tested]
        guess = _predicted(features, _fit(features, excess, seen & ~np.isnan(features).any(axis=2)))[tested]
        by_alone = np.full(actual.size, np.nan)
        if alone is not None:
            by_alone = _predicted(alone, _fit(alone, excess, seen))[tested]
        found.append(
            LeftOut(
                str(family),
                int(tested.sum()),
                float(np.abs(guess - actual).mean()),
                float(np.abs(speeds[seen].mean() - actual).mean()),
                float(np.abs(by_alone - actual).mean()),
                (table.types[probes[0]], table.types[probes[1]]),
            )
        )
    return found


def family_of(table: PairTable) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    """Return the family of each type: its name without the batch size."""
    return np.array([name.partition(" (")[0] for name in table.types])


def thirds(table: PairTable, gpu: int) -> tuple[Ints, Floats]:
    """Return the third that each type is in by how much it slows others, and the mean speeds between thirds."""
    excess = _clipped_excess(table.speeds[gpu])
    order = np.argsort(np.nanmean(excess, axis=0), kind="stable")
    third = np.zeros(order.size, np.int64)
    for k, part in enumerate(np.split(order, [order.size // 3, 2 * order.size // 3])):
        third[part] = k
    speeds = 1.0 / (1.0 + table.excess[gpu])
    means = [[np.nanmean(speeds[np.ix_(third == a, third == b)]) for b in range(3)] for a in range(3)]
    return third, np.array(means)


def _clipped_excess(speeds: Floats) -> Floats:
    return np.asarray(1.0 / np.clip(speeds, _SLOWEST, 1.0) - 1.0)


def _features(excess: Floats, probes: tuple[int, int]) -> Floats:
    """Return for each pair (a, b): 1, the sensitivities of a, the pressures of b, and their products."""
    size = len(excess)
    pair = list(probes)
    sensitivity = np.repeat(excess[:, pair][:, None, :], size, axis=1)
    pressure = np.repeat(excess[pair, :].T[None, :, :], size, axis=0)
    products = (sensitivity[..., :, None] * pressure[..., None, :]).reshape(size, size, 4)
    return np.concatenate([np.ones((size, size, 1)), sensitivity, pressure, products], axis=2)


def _fit(features: Floats, excess: Floats, pairs: Flags) -> Floats:
    from scipy.optimize import nnls

    weights: Floats = nnls(features[pairs], excess[pairs])[0]
    return weights


def _predicted(features: Floats, weights: Floats) -> Floats:
    return np.asarray(np.clip(1.0 / (1.0 + features @ weights), _SLOWEST, 1.0))


def _best_probes(table: PairTable, excess: Floats, known: Flags) -> tuple[int, int] | None:
    """Return the two types beside which all were measured that predict the known pairs best, a family left out at a time."""
    families = family_of(table)
    able = [t for t in range(len(table.types)) if not np.isnan(excess[:, t]).any() and not np.isnan(excess[t, :]).any()]
    able = [t for t in able if (table.speeds[:, :, t] > 0).any()]
    best, least = None, np.inf
    for probes in _fitting_probes(able, excess):
        features = _features(excess, probes)
        total = 0.0
        for family in dict.fromkeys(families):
            apart = (families == family)[:, None] | (families == family)[None, :]
            seen, tested = known & ~apart, known & apart
            if seen.any() and tested.any():
                guess = _predicted(features, _fit(features, excess, seen))
                total += float(np.abs(guess - 1.0 / (1.0 + excess))[tested].sum())
        if total < least:
            best, least = probes, total
    return best


def _fitting_probes(able: list[int], excess: Floats) -> Iterator[tuple[int, int]]:
    """Yield pairs of types beside which no other runs out of memory."""
    most = 1.0 / _SLOWEST - 1.0
    fitting = [t for t in able if excess[:, t].max() < most and excess[t, :].max() < most]
    yield from combinations(fitting, 2)


def _alone_features(table: PairTable) -> Floats | None:
    """Return for each pair the products of the shares of time that its types spend on latency, compute and memory.

    A roofline with a constant: seconds a step = latency + work / peak + bytes / bandwidth, fitted over the GPUs of known
    peaks. None where fewer than three were measured.
    """
    from scipy.optimize import nnls

    rows = [g for g, name in enumerate(table.gpus) if name in _PEAKS]
    if len(rows) < 3 or np.isnan(table.alone[rows]).any():
        return None
    costs = np.array([[1.0, 1.0 / _PEAKS[table.gpus[g]][0], 1.0 / _PEAKS[table.gpus[g]][1]] for g in rows])
    shares = []
    for t in range(len(table.types)):
        speed = table.alone[rows, t]
        parts = nnls(costs * speed[:, None], np.ones(len(rows)))[0] * costs[-1]
        shares.append(parts / parts.sum())
    share = np.array(shares)
    return np.asarray((share[:, None, :, None] * share[None, :, None, :]).reshape(len(share), len(share), 9))
