"""Equal bins of time with round widths."""

from __future__ import annotations

import math
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.units import DAY, HOUR, MINUTE, WEEK

MOST_BINS = 250
_WIDTHS = (
    *(0.001, 0.01, 0.1, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0),
    *(MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(HOUR * n for n in (1, 2, 3, 6, 12)),
    *(DAY, 2 * DAY, WEEK),
)


@dataclass(frozen=True)
class Bins:
    """Equal intervals of time: `start` s, `width` s each, `count` of them."""

    start: float
    width: float
    count: int

    @classmethod
    def covering(cls, first: float, last: float, most: int = MOST_BINS, zero: float = 0.0) -> Bins:
        """Return at most `most` bins of a round width that cover [first, last] s, aligned to `zero`."""
        width = next((w for w in _WIDTHS if (last - first) / w <= most - 1), None)
        if width is None:
            width = WEEK * 2.0 ** math.ceil(math.log2((last - first) / WEEK / (most - 1)))
        start = math.floor((first - zero) / width) * width + zero
        return cls(start, width, max(math.floor((last - start) / width) + 1, 1))

    def number(self, time: pl.Expr) -> pl.Expr:
        """Return the number of the bin a time falls into."""
        return ((time - self.start) / self.width).floor().cast(pl.Int64).clip(0, self.count - 1)

    def number_of(self, time: nw.Expr) -> nw.Expr:
        """Return the number of the bin a time falls into, in any engine."""
        return ((time - self.start) / self.width).floor().cast(nw.Int64).clip(0, self.count - 1)

    def begins(self) -> NDArray[np.float64]:
        """Return when each bin begins, s."""
        return self.start + self.width * np.arange(self.count, dtype=np.float64)

    def frame(self) -> pl.DataFrame:
        """Return one row per bin: `bin`, `begin` and `end` in s."""
        number = pl.int_range(self.count, dtype=pl.Int64)
        return pl.select(
            number.alias("bin"),
            (self.start + number * self.width).alias("begin"),
            (self.start + (number + 1) * self.width).alias("end"),
        )
