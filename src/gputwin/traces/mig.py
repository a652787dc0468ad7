"""MIG instances by name: "1g.5gb" of a resource list is a part of a GPU, not a GPU."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from gputwin.core.units import MIB_PER_GIB, WHOLE_GPU_MILLI

_NAME = re.compile(r"(?:(.*)[._:-])?(\d)g\.(\d{1,4})gb(?:[.+].*)?", re.IGNORECASE)
_SLICES = 7
_A30_PROFILES = {("1", "6"), ("2", "12"), ("4", "24")}
_A30_SLICES = 4


class MigInstance(NamedTuple):
    """One kind of MIG instance: its share of the GPU's compute slices and its memory."""

    model: str | None
    """The GPU it is cut from, where the name says so: "a100_1g.5gb"."""
    share: Fraction
    memory_gb: int


@dataclass(frozen=True)
class Gpus:
    """GPUs asked for: how many, the share of each, and the memory of each where the kind gives it."""

    count: int
    milli: int | None
    memory_mib: int | None


def mig_instance(name: str) -> MigInstance | None:
    """Return the MIG instance of that name, None where it is the name of something else.

    A profile of g compute slices is g/7 of its GPU (g/4 on an A30).
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    model = re.sub(r"(^|[._:-])mig$", "", match[1] or "", flags=re.IGNORECASE)
    slices = _A30_SLICES if match.groups()[1:] in _A30_PROFILES else _SLICES
    return MigInstance(model or None, Fraction(int(match[2]), slices), int(match[3]))


def gpus_of(whole: int, parts: Iterable[tuple[int, MigInstance]]) -> Gpus:
    """Return whole GPUs and counts of MIG instances as so many equal shares of a GPU.

    Mixed sizes are averaged, so that the total share stays right.
    """
    counted = list(parts)
    count = whole + sum(n for n, _ in counted)
    if not counted:
        return Gpus(count, WHOLE_GPU_MILLI if count else None, None)
    total = whole + sum(n * part.share for n, part in counted)
    memory = min(part.memory_gb for _, part in counted) * MIB_PER_GIB
    return Gpus(count, math.ceil(total * WHOLE_GPU_MILLI / count), memory)
