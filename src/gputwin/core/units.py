"""Integer units, so that sums are exact: milli-CPU, MiB, milli-GPU, percent of an RNIC; and their spellings."""

from __future__ import annotations

import math
import re

from gputwin.core.errors import UserError

WHOLE_GPU_MILLI = 1000
CORE_MILLI = 1000
MIB_PER_GIB = 1024
MINUTE = 60.0
HOUR = 3600.0
DAY = 86400.0
WEEK = 604800.0

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d|w)?")
_DURATION_SECONDS = {
    "ms": 0.001,
    "": 1.0,
    "s": 1.0,
    "m": MINUTE,
    "min": MINUTE,
    "h": HOUR,
    "d": DAY,
    "w": WEEK,
}


def parse_duration(text: str) -> float:
    """Return seconds for "90", "90s", "5m", "1.5h", "2d" or "1w"."""
    match = _DURATION.fullmatch(text.strip())
    if not match:
        raise UserError(f"'{text}' is not a duration; write a number and one of ms, s, m, h, d, w, as in 5m")
    return float(match[1]) * _DURATION_SECONDS[match[2] or ""]


def format_duration(seconds: float | None) -> str:
    """Return seconds as people say them: "3.2 s", "5 min 10 s", "2 h 05 min", "3 d 4 h"; "–" for none."""
    if seconds is None or math.isnan(seconds):
        return "–"
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if seconds < MINUTE:
        return f"{seconds:.3g} s"
    total = round(seconds)
    if total < HOUR:
        return f"{total // 60} min {total % 60:02d} s"
    if total < DAY:
        return f"{total // 3600} h {total % 3600 // 60:02d} min"
    return f"{total // 86400} d {total % 86400 // 3600} h"


def format_count(value: float | None) -> str:
    """Return a count with thousands separators; "–" for none."""
    return "–" if value is None else f"{value:,.0f}"
