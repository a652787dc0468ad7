"""Kubernetes' quantities ("500m", "2Gi") and durations ("1h30m") as numbers and back."""

from __future__ import annotations

import math
import re
from decimal import Decimal

_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal("1e3"),
    "M": Decimal("1e6"),
    "G": Decimal("1e9"),
    "T": Decimal("1e12"),
    "P": Decimal("1e15"),
    "E": Decimal("1e18"),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
_QUANTITY = re.compile(r"([+-]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][+-]?\d{1,3})?)([numkMGTPE]?|[KMGTPE]i)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)(ns|us|µs|ms|s|m|h)")


def quantity(text: object) -> float:
    """Return a Kubernetes quantity as a number; `ValueError` says what it should look like."""
    match = _QUANTITY.fullmatch(str(text).strip()) if isinstance(text, (str, int, float)) else None
    if match is None or isinstance(text, bool):
        raise ValueError("give a quantity as in 500m, 2 or 4Gi")
    return float(Decimal(match.group(1)) * _SUFFIXES[match.group(2)])


def quantity_text(value: float) -> str:
    """Return a number as a quantity that reads back as the same number."""
    if value == math.floor(value) and abs(value) < 1e15:
        return str(int(value))
    return repr(float(value))


def duration(text: object) -> float:
    """Return a duration of Go in seconds."""
    parts = _DURATION.findall(text) if isinstance(text, str) else []
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError("give a duration as in 30s, 5m or 1h30m")
    return float(sum(float(number) * _UNITS[unit] for number, unit in parts))


def duration_text(seconds: float) -> str:
    """Return seconds as a duration, to the nanosecond as Go has it."""
    return f"{f'{seconds:.9f}'.rstrip('0').rstrip('.')}s"
