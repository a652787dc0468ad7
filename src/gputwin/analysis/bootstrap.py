"""Confidence intervals of means that respect dependence in time: the circular block bootstrap.

Tasks that arrive together wait together, so single tasks must not be resampled. Arrival time is cut into 200 equal
bins; blocks of six neighbouring bins (the cube root of their number: Hall, Horowitz and Jing, Biometrika 1995) are
drawn with replacement, around the end back to the start (Politis and Romano, "A circular block-resampling procedure",
1992; after Künsch, Annals of Statistics 1989). A replicate's mean is the sum over the drawn bins over their count.
"""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.analysis.frames import Frame, aggregate
from gputwin.analysis.tasks import BINS
from gputwin.core.rng import stream

REPLICATES = 1000
LEVEL = 0.95
_FEWEST_BINS = 12
"""With values in fewer bins than this an interval would be a pretence."""
_MOST_CELLS = 4_000_000


def block_weights(bins: int, replicates: int, seed: int) -> NDArray[np.float64]:
    """Return how often each replicate draws each bin: replicates × bins."""
    rng = stream(seed, "block bootstrap", bins)
    length = max(round(bins ** (1 / 3)), 1)
    blocks = -(-bins // length)
    begins = rng.integers(0, bins, size=(replicates, blocks))
    drawn = ((begins[:, :, None] + np.arange(length)) % bins).reshape(replicates, -1)[:, :bins]
    weights = np.zeros((replicates, bins))
    np.add.at(weights, (np.arange(replicates)[:, None], drawn), 1.0)
    return weights


def mean_intervals(frame: Frame, value: str, by: Sequence[str] = (), *, seed: int = 0, most: int = 60) -> pl.DataFrame:
    """Return 95 % intervals of the mean by group: `low` and `high`, null where the values lie in too few bins.

    Only the `most` groups with most values get a row. `frame` is one of `prepare`, with its `bin`.
    """
    x = nw.col(value)
    known = frame.filter(~x.is_null() & ~nw.col("bin").is_null())
    for column in by:
        known = known.filter(~nw.col(column).is_null())
    cells = aggregate(known, [*by, "bin"], x.sum().alias("sum"), nw.len().alias("count"))
    if not by and cells.is_empty():
        # Nobody knows when they arrived, so there is no time to resample.
        return pl.DataFrame({"low": [None], "high": [None]}, schema={"low": pl.Float64, "high": pl.Float64})
    if not by:
        cells = cells.with_columns(pl.lit(0).alias("_all"))
    keys = list(by) or ["_all"]
    groups = (
        cells.group_by(keys).agg(pl.col("count").sum()).sort(["count", *keys], descending=[True] + [False] * len(keys))
    )
    groups = groups.head(most).drop("count").with_row_index("_group")
    cells = cells.join(groups, on=keys)
    shape = (BINS, groups.height)
    sums, counts = np.zeros(shape), np.zeros(shape)
    at = (cells["bin"].to_numpy(), cells["_group"].to_numpy())
    sums[at], counts[at] = cells["sum"].to_numpy(), cells["count"].to_numpy()
    low, high = _percentiles(sums, counts, seed)
    found = groups.sort("_group").drop("_group").with_columns(pl.Series("low", low), pl.Series("high", high))
    found = found.with_columns(pl.col("low", "high").fill_nan(None))
    return found if by else found.drop("_all")


def _percentiles(
    sums: NDArray[np.float64], counts: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    weights = block_weights(len(sums), REPLICATES, seed)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (weights @ sums) / (weights @ counts)
    edge = (1 - LEVEL) / 2
    enough = (counts > 0).sum(axis=0) >= _FEWEST_BINS
    low, high = np.full(sums.shape[1], np.nan), np.full(sums.shape[1], np.nan)
    for g in np.flatnonzero(enough):
        drawn = means[:, g][np.isfinite(means[:, g])]
        low[g], high[g] = np.quantile(drawn, [edge, 1 - edge])
    return low, high
