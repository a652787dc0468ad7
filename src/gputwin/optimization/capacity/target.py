"""What a plan must achieve: a figure of waits or completion times, and how many seconds it may have."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputwin.core.errors import UserError, shorten
from gputwin.core.percentiles import percentile
from gputwin.core.units import parse_duration, short_duration

Floats = NDArray[np.float64]
_TARGET = re.compile(r"(mean|p(\d{1,2}(?:\.\d{1,3})?))_(wait|jct)\s*=\s*(.+)")


@dataclass(frozen=True)
class Target:
    """At most `seconds` for a quantile (None: the mean) of jobs' waits or completion times."""

    of: str
    """'wait' or 'jct'."""
    share: float | None
    seconds: float

    @property
    def name(self) -> str:
        """Return the figure's name, as in p95_wait."""
        return f"{'mean' if self.share is None else f'p{100 * self.share:g}'}_{self.of}"

    @property
    def words(self) -> str:
        """Return the figure as people say it, as in p95 wait."""
        return f"{self.name.removesuffix(self.of).replace('_', ' ')}{'JCT' if self.of == 'jct' else self.of}"

    def __str__(self) -> str:
        return f"{self.words} ≤ {short_duration(self.seconds)}"

    def value(self, times: Floats) -> float:
        """Return the figure of these times; infinite where jobs that never ran decide it."""
        if times.size == 0:
            return 0.0
        if self.share is None:
            return float(times.mean())
        return percentile(times, self.share)

    def met(self, value: float) -> bool:
        """Return whether a value of the figure meets the target."""
        return value <= self.seconds


def parse_target(text: str) -> Target:
    """Return the target "p95_wait=600", "mean_wait=5m" or "p99_jct=2h" names."""
    match = _TARGET.fullmatch(text.strip())
    if not match:
        raise UserError(f"'{shorten(text)}' is not a target; write one like p95_wait=600, mean_wait=5m or p99_jct=2h")
    which, percent, of, amount = match.groups()
    share = None if which == "mean" else float(percent) / 100
    if share is not None and not 0 < share < 1:
        raise UserError(f"'{shorten(text)}': a percentile lies between 0 and 100, as in p95")
    return Target(of, share, parse_duration(amount))
