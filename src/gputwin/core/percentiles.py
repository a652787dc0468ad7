"""Percentiles as every verb prints them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def percentile(values: NDArray[np.float64], share: float) -> float:
    """Return the value at `share` of the sorted values, interpolated linearly between two of them; NaN for none.

    Type 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996: what NumPy's and Polars' linear
    quantiles are as well. Here a value may be infinite, as the wait of a job that never starts: where the upper one of
    the two is, so is the percentile. No value that grows makes it smaller.
    """
    if not values.size:
        return math.nan
    position = share * (values.size - 1)
    below, above = math.floor(position), math.ceil(position)
    parted = np.partition(values, (below, above))
    low, high = float(parted[below]), float(parted[above])
    # Infinity less infinity is no number.
    return low if low == high else low + (high - low) * (position - below)
