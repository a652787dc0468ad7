"""Integer units, so that sums are exact: milli-CPU, MiB, milli-GPU, percent of an RNIC; and their spellings."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import SupportsFloat

from gputwin.core.errors import UserError, shorten

WHOLE_GPU_MILLI = 1000
CORE_MILLI = 1000
MIB_PER_GIB = 1024
WHOLE_RNIC_PERCENT = 100
RESOURCE_UNITS = {
    "gpu_milli": (WHOLE_GPU_MILLI, "GPUs"),
    "cpu_milli": (CORE_MILLI, "cores"),
    "memory_mib": (MIB_PER_GIB, "GiB"),
    "disk_mib": (MIB_PER_GIB, "GiB"),
    "rdma_percent": (WHOLE_RNIC_PERCENT, "RNICs"),
}
"""The unit in which people are shown each resource, and how many of ours make one."""
MINUTE = 60.0
HOUR = 3600.0
DAY = 86400.0
WEEK = 604800.0

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d|w)?")
_ZERO_PART = re.compile(r" 0+ (?:s|min|h)$")
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
    if math.isinf(seconds):
        return "unlimited" if seconds > 0 else "-unlimited"
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


def short_duration(seconds: float) -> str:
    """Return a duration without a last part that is zero: "30 min" rather than "30 min 00 s"."""
    return _ZERO_PART.sub("", format_duration(seconds))


def signed_duration(seconds: float) -> str:
    """Return a difference of times with its sign: "+5 min 10 s", "-56 s"; none has no sign: "0 s"."""
    return ("+" if seconds > 0 else "") + format_duration(seconds)


NO_BREAK = "\u00a0"
"""A blank at which no line is broken."""
_WITH_UNIT = re.compile(
    r"\d[\d.,]* (?:%|(?:d|h|min|s|ms|GPUs?|GPU-hours?|nodes?)\b)(?:(?<=[dhn]) \d+ (?:h|min|s)\b)?",
)


def together(text: str) -> str:
    """Return a text in which no line breaks inside a quantity, as in 2 min 16 s or 69.1 %."""
    return _WITH_UNIT.sub(lambda found: found[0].replace(" ", NO_BREAK), text)


def percent(share: SupportsFloat | None, digits: int = 0, *, signed: bool = False) -> str:
    """Return a share as a percentage, the same everywhere: "97 %", "+2.5 %"; "–" for none."""
    if share is None:
        return "–"
    # What rounds to zero is neither above nor below it.
    shown = round(100 * float(share), digits) or 0.0
    return f"{shown:{'+' if signed and shown else ''},.{digits}f} %"


def format_count(value: float | None) -> str:
    """Return a count with thousands separators; "–" for none."""
    return "–" if value is None else f"{value:,.0f}"


def format_bytes(size: int | None) -> str:
    """Return bytes as people say them: "900 B", "2.1 MiB", "1.4 GiB"; "–" for none."""
    if size is None:
        return "–"
    amount, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1000:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"


_QUANTITY = re.compile(r"([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30}))(?:[eE]([+-]?\d{1,2})|([KMGTPE]i|[numkMGTPE]))?")
_QUANTITY_SCALE = {
    **{unit + "i": Fraction(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
    **{unit: Fraction(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{unit: Fraction(1, 1000**power) for power, unit in enumerate("mun", start=1)},
}


@lru_cache(maxsize=4096)
def parse_quantity(text: str) -> Fraction:
    """Return the exact amount of a Kubernetes quantity ("500m", "2", "1.5Gi", "1G", "1e3") in its base unit."""
    match = _QUANTITY.fullmatch(text.strip())
    if not match:
        raise UserError(f"'{shorten(text)}' is not a Kubernetes quantity; write one like 500m, 2, 1Gi or 1e3")
    number, exponent, suffix = match.groups()
    scale = Fraction(10) ** int(exponent) if exponent else _QUANTITY_SCALE.get(suffix, Fraction(1))
    return Fraction(number) * scale


_SLURM_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)([KMGTPE]?)")
_SLURM_SIZE_POWER = {"K": -1, "M": 0, "G": 1, "T": 2, "P": 3, "E": 4}
_SLURM_PER = {"c": "cpu", "n": "node"}


def parse_slurm_size(text: str) -> Fraction:
    """Return MiB for a size as Slurm prints it: "500G", "4000M", "1.50T"; a bare number is in MiB."""
    match = _SLURM_SIZE.fullmatch(text.strip())
    if not match:
        raise UserError(f"'{shorten(text)}' is not a Slurm size; write one like 4000M or 16G")
    return Fraction(match[1]) * Fraction(1024) ** _SLURM_SIZE_POWER[match[2] or "M"]


def parse_slurm_memory(text: str) -> tuple[Fraction, str]:
    """Return MiB and what they are for ("cpu", "node" or "job") of a ReqMem cell: "4000Mc", "4Gn", "16G".

    Slurm before 21.08 marks the request as per CPU (c) or per node (n); later ones print the job's total.
    """
    text = text.strip()
    per = _SLURM_PER.get(text[-1:], "job")
    return parse_slurm_size(text if per == "job" else text[:-1]), per


def parse_slurm_tres(text: str) -> dict[str, Fraction]:
    """Return the amount of each resource in a TRES string like "cpu=64,mem=500G,node=2,gres/gpu:a100=8".

    Memory is in MiB, everything else is a count; Slurm shortens large counts with K or M (1024 each).
    """
    amounts: dict[str, Fraction] = {}
    for part in text.strip().split(","):
        name, equals, amount = part.partition("=")
        if not equals or not name:
            raise UserError(f"'{shorten(text)}' is not a list of resources; write one like cpu=4,mem=16G,node=1")
        size = parse_slurm_size(amount)
        shortened = name not in ("mem", "vmem") and not amount[-1:].isdigit()
        amounts[name] = size * 1024**2 if shortened else size
    return amounts


_SLURM_DURATION = re.compile(r"(?:(?:(\d{1,6})-)?(\d{1,6}):)?(\d{1,6}):(\d{1,2}(?:\.\d{1,9})?)")
_SLURM_NO_DURATION = {"", "UNLIMITED", "PARTITION_LIMIT", "INVALID", "NONE", "UNKNOWN"}


def parse_slurm_duration(text: str) -> float | None:
    """Return seconds for "[days-]hours:minutes:seconds" or "minutes:seconds"; None for UNLIMITED and the like."""
    if text.strip().upper() in _SLURM_NO_DURATION:
        return None
    match = _SLURM_DURATION.fullmatch(text.strip())
    if not match:
        raise UserError(f"'{shorten(text)}' is not a Slurm duration; write one like 1-12:00:00")
    days, hours, minutes, seconds = match.groups()
    return int(days or 0) * DAY + int(hours or 0) * HOUR + int(minutes) * MINUTE + float(seconds)
