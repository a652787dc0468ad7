"""Numbers as sentences say them."""

from __future__ import annotations

from gputwin.core.errors import shorten
from gputwin.core.units import format_duration


def duration(seconds: float | None) -> str:
    """Return a duration as every table shows it: "3 min 08 s", "2 h 17 min", "9 d 4 h"; "–" for none."""
    return format_duration(seconds)


def share(value: float | None) -> str:
    """Return a share as a percentage; one that is not nothing and not all is never rounded to it."""
    if value is None:
        return "–"
    if 0 < value < 0.001:
        return "under 0.1 %"
    if 0.999 < value < 1:
        return "over 99.9 %"
    return f"{value * 100:.1f} %"


def times(ratio: float) -> str:
    """Return a ratio as "6.5 times"."""
    return f"{ratio:.1f} times" if ratio < 20 else f"{ratio:,.0f} times"


def label(group: str) -> str:
    """Return a group's name as it stands in a sentence."""
    name = shorten(group, 24)
    return name if name.replace(" ", "").isalpha() else f"“{name}”"
