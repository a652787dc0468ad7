"""From arrays to columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray


def as_rows(index: NDArray[np.integer[Any]]) -> pl.Series:
    """Return row numbers in the type Polars gathers by."""
    return pl.Series(index.astype(np.uint32))


def known(values: NDArray[Any], where: NDArray[np.bool_]) -> pl.Series:
    """Return values as floats, null where they are not known."""
    return pl.Series(np.where(where, values, np.nan)).fill_nan(None)
