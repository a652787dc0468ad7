"""Replica counts of the applications behind demand in force, for the roll-out aware model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from gputwin.forecasting.series import Floats, Integers, Replicas

AGES_SECONDS = (3600.0, 21_600.0, 86_400.0)
MOST_GROUPS = 600
"""Groups beyond which replica counts per bin would take too much memory; such traces have no services."""


def replicas(frame: pl.DataFrame, resources: Sequence[str], start: float, width: float, bins: int) -> Replicas | None:
    """Return replica counts per bin; None where tasks have no application, or too many kinds of them.

    `frame` has the tasks' `begin` (null: before the first bin) and `end` (null: not yet), s, and the resources.
    """
    frame = frame.select("begin", "end", "application", "role", *resources)
    kinds = frame.select("application", "role", *resources).unique().sort("application", "role", *resources)
    if kinds["application"].null_count() or not 0 < kinds.height <= MOST_GROUPS:
        return None
    kinds = kinds.with_row_index("group")
    frame = frame.join(kinds, on=["application", "role", *resources], how="left")
    group = frame["group"].to_numpy().astype(np.int64)
    begin = _bin_of(frame["begin"], start, width, -1)
    end = _bin_of(frame["end"], start, width, bins)
    shape = (bins, kinds.height)
    arrived = _counts(begin, group, (begin >= 0) & (begin < bins), shape)
    departed = _counts(end, group, (end >= 0) & (end < bins), shape)
    older = np.bincount(group[begin < 0], minlength=kinds.height)
    return Replicas(
        alive=older.astype(np.float64) + np.cumsum(arrived - departed, axis=0),
        arrived=arrived,
        departed=departed,
        young={age: _young(begin, end, group, age, shape) for age in ages(width)},
        requests=kinds.select(resources).to_numpy().astype(np.float64),
        application=kinds["application"].rank("dense").to_numpy().astype(np.int64) - 1,
    )


def ages(width: float) -> tuple[int, ...]:
    """Return the ages, in bins, below which instances count as young."""
    return tuple(sorted({max(1, round(age / width)) for age in AGES_SECONDS}))


def _bin_of(times: pl.Series, start: float, width: float, missing: int) -> Integers:
    at = np.floor((times.to_numpy() - start) / width)
    return np.asarray(np.where(np.isnan(at), missing, np.maximum(at, 0)), dtype=np.int64)


def _counts(at: Integers, group: Integers, chosen: np.ndarray, shape: tuple[int, int]) -> Floats:
    flat = np.bincount(at[chosen] * shape[1] + group[chosen], minlength=shape[0] * shape[1])
    return np.asarray(flat.reshape(shape), dtype=np.float64)


def _young(begin: Integers, end: Integers, group: Integers, age: int, shape: tuple[int, int]) -> Floats:
    """Return how many of those alive at each bin's end came within the last `age` bins."""
    until = np.minimum(begin + age, end)
    came = (begin >= 0) & (begin < shape[0]) & (until > begin)
    went = came & (until < shape[0])
    return np.cumsum(_counts(begin, group, came, shape) - _counts(until, group, went, shape), axis=0)
