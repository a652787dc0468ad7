"""The priority settings of a slurm.conf."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gputwin.core.errors import InputError, shorten
from gputwin.core.units import DAY, HOUR, MINUTE
from gputwin.simulation.slurm.priority import PrioritySettings


def read_priority_settings(path: Path) -> PrioritySettings:
    """Return the priority settings in a slurm.conf; lines about other things are passed over."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise InputError("no such file", file=path, remedy="give a slurm.conf") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error}", file=path) from None
    found: dict[str, Any] = {}
    kind: str | None = None
    others: list[str] = []
    for row, line in _lines(text):
        name, equals, value = (part.strip() for part in line.partition("="))
        if name.lower() == "prioritytype":
            kind = value
        elif name.lower() in _READ:
            if not equals or not value:
                raise InputError("no value", file=path, row=row, field=name, remedy=f"write {name}=VALUE")
            try:
                found |= _READ[name.lower()](value)
            except ValueError as error:
                raise InputError(str(error), file=path, row=row, field=name) from None
        elif name.lower() in _NOT_SIMULATED:
            others += [name] if value.upper() not in ("", "NONE") else []
        elif name.lower().startswith("priority"):
            raise InputError("unknown", file=path, row=row, field=name, remedy=_meant(name))
    if kind is not None and kind != "priority/multifactor":
        raise InputError(
            f"PriorityType is '{shorten(kind)}', so jobs go in order of submission",
            file=path,
            remedy="use --order fifo, or set PriorityType=priority/multifactor",
        )
    if not found:
        raise InputError("no Priority… line in it", file=path, remedy="give a slurm.conf with PriorityWeight… lines")
    others += [f"PriorityFlags {flag}" for flag in found.pop("not_simulated", ())]
    return dataclasses.replace(PrioritySettings(), **found, not_simulated=tuple(others))


def _meant(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), _NAMES, n=1)
    return f"write {_NAMES[near[0]]}" if near else "see Slurm's documentation of slurm.conf"


def _lines(text: str) -> list[tuple[int, str]]:
    """Return row and content of each line, without comments, with continued lines joined."""
    lines: list[tuple[int, str]] = []
    held = ""
    start = 0
    for row, raw in enumerate(text.splitlines(), start=1):
        line = re.sub(r"(?<!\\)#.*", "", raw).strip()
        if not held:
            start = row
        if line.endswith("\\"):
            held += line[:-1]
            continue
        if held + line:
            lines.append((start, held + line))
        held = ""
    return [*lines, (start, held)] if held else lines


def _weight(name: str) -> Callable[[str], dict[str, Any]]:
    return lambda value: {name: _number(value)}


def _time(name: str) -> Callable[[str], dict[str, Any]]:
    return lambda value: {name: _seconds(value)}


def _number(value: str) -> float:
    if not re.fullmatch(r"\d{1,10}(\.\d+)?", value):
        raise ValueError(f"'{shorten(value)}' is not a weight; write a whole number from 0")
    return float(value)


_TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")


def _seconds(value: str) -> float:
    """Return seconds for min, min:s, h:min:s, days-h, days-h:min or days-h:min:s; UNLIMITED is without end."""
    if value.upper() in ("UNLIMITED", "INFINITE"):
        return float("inf")
    match = _TIME.fullmatch(value)
    if not match:
        raise ValueError(f"'{shorten(value)}' is not a time; write one like 14-0 (days-hours) or 12:30:00")
    days, *rest = match.groups()
    numbers = [int(x) for x in rest if x is not None]
    if days is not None:
        units = (HOUR, MINUTE, 1.0)
    else:
        units = (HOUR, MINUTE, 1.0) if len(numbers) == 3 else (MINUTE, 1.0, 0.0)
    return int(days or 0) * DAY + sum(n * u for n, u in zip(numbers, units, strict=False))


def _yes(name: str) -> Callable[[str], dict[str, Any]]:
    def read(value: str) -> dict[str, Any]:
        if value.lower() not in ("yes", "no", "true", "false", "1", "0"):
            raise ValueError(f"'{shorten(value)}' is neither YES nor NO")
        return {name: value.lower() in ("yes", "true", "1")}

    return read


def _tres(value: str) -> dict[str, Any]:
    weights = {}
    for part in value.split(","):
        name, equals, weight = part.partition("=")
        if not equals or not name:
            raise ValueError(f"'{shorten(part)}' is not a weight of a resource; write one like GRES/gpu=3000")
        weights[name.strip().lower()] = _number(weight.strip())
    return {"tres": weights}


_NOT_NORMAL = {
    "NO_NORMAL_ASSOC": "assoc",
    "NO_NORMAL_PART": "partition",
    "NO_NORMAL_QOS": "qos",
    "NO_NORMAL_TRES": "tres",
}


def _flags(value: str) -> dict[str, Any]:
    flags = {flag.strip().upper() for flag in value.split(",")} - {""}
    if unknown := flags - _FLAGS:
        raise ValueError(f"'{shorten(min(unknown))}' is unknown; write one of {', '.join(sorted(_FLAGS))}")
    raw = {name for flag, name in _NOT_NORMAL.items() if flag in flags or "NO_NORMAL_ALL" in flags}
    return {
        "fair_tree": not flags & {"NO_FAIR_TREE", "DEPTH_OBLIVIOUS"},
        "max_tres": "MAX_TRES" in flags,
        "size_per_time": "SMALL_RELATIVE_TO_TIME" in flags,
        "not_normal": frozenset(raw),
        "not_simulated": tuple(sorted(flags & _FLAGS_NOT_SIMULATED)),
    }


_FLAGS_NOT_SIMULATED = {
    "ACCRUE_ALWAYS",
    "CALCULATE_RUNNING",
    "INCR_ONLY",
    "MAX_TRES",
    "MAX_TRES_GRES",
    "NO_NORMAL_ALL",
    "NO_NORMAL_QOS",
    "NO_NORMAL_TRES",
}
"""Flags without which a run goes on: a note says so."""
_FLAGS = {
    *_NOT_NORMAL,
    *_FLAGS_NOT_SIMULATED,
    "FAIR_TREE",
    "NO_FAIR_TREE",
    "DEPTH_OBLIVIOUS",
    "SMALL_RELATIVE_TO_TIME",
}
_NOT_SIMULATED = {
    "priorityparameters",
    "prioritysitefactorparameters",
    "prioritysitefactorplugin",
    "priorityusageresetperiod",
}
_READ: dict[str, Callable[[str], dict[str, Any]]] = {
    "priorityweightage": _weight("age"),
    "priorityweightassoc": _weight("assoc"),
    "priorityweightfairshare": _weight("fairshare"),
    "priorityweightjobsize": _weight("job_size"),
    "priorityweightpartition": _weight("partition"),
    "priorityweightqos": _weight("qos"),
    "priorityweighttres": _tres,
    "prioritymaxage": _time("max_age"),
    "prioritydecayhalflife": _time("decay_half_life"),
    "prioritycalcperiod": _time("calc_period"),
    "fairsharedampeningfactor": _weight("dampening"),
    "priorityfavorsmall": _yes("favor_small"),
    "priorityflags": _flags,
}
_NAMES = {
    name.lower(): name
    for name in (
        "PriorityType",
        "PriorityWeightAge",
        "PriorityWeightAssoc",
        "PriorityWeightFairshare",
        "PriorityWeightJobSize",
        "PriorityWeightPartition",
        "PriorityWeightQOS",
        "PriorityWeightTRES",
        "PriorityMaxAge",
        "PriorityDecayHalfLife",
        "PriorityCalcPeriod",
        "FairShareDampeningFactor",
        "PriorityFavorSmall",
        "PriorityFlags",
    )
}
"""How Slurm's documentation writes them."""
