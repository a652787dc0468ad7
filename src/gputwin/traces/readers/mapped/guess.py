"""A proposal of what the columns of an unknown table mean, with the reason for each and every doubt spelled out.

A column is proposed for a field when its name is a usual one for it and its cells can be read as the field's kind. Two
columns for one field, a GPU count that may be the job's or one instance's where no row shows which, and a size without
a unit are doubts: the proposal names a choice, but it is not to be used without somebody confirming it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

import polars as pl

from gputwin.core.errors import UserError, shorten
from gputwin.traces.cells import Column, Kind, amounts, known, times
from gputwin.traces.quality import QualityLog
from gputwin.traces.readers.mapped.dates import date_forms, dated_columns
from gputwin.traces.readers.mapped.fields import FIELDS, Field
from gputwin.traces.readers.mapped.mapping import Mapping, Meaning, checked
from gputwin.traces.readers.mapped.tables import sample_cells
from gputwin.traces.sources import Source

_READABLE_SHARE = 0.8
_GPUS_OF_A_NODE = 8
_MOST_COLUMNS = 12
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_UNIT_WORDS = {
    Kind.DURATION: {
        **{"s": "s", "sec": "s", "secs": "s", "seconds": "s", "ms": "ms", "us": "us", "min": "min", "mins": "min"},
        **{"minutes": "min", "h": "h", "hours": "h", "hrs": "h", "days": "d"},
    },
    Kind.TIME: {"ms": "ms", "us": "us", "ns": "ns", "millis": "ms"},
    Kind.BYTES: {
        **{"bytes": "B", "b": "B", "kb": "KB", "mb": "MB", "gb": "GB", "tb": "TB"},
        **{"kib": "KiB", "mib": "MiB", "gib": "GiB", "tib": "TiB"},
    },
    Kind.CORES: {"milli": "milli", "percent": "%", "pct": "%"},
    Kind.GPUS: {"milli": "milli", "percent": "%", "pct": "%"},
}


@dataclass(frozen=True)
class Reason:
    """Why a column is proposed for a field."""

    field: str
    column: str
    why: str
    example: str


@dataclass(frozen=True)
class Guess:
    """The proposed mapping of one table. It may be used as it is only where there are no doubts."""

    mapping: Mapping
    reasons: tuple[Reason, ...]
    doubts: tuple[str, ...]
    unused: tuple[str, ...]


def plain_name(column: str) -> str:
    """Return a column's name in lower case with underscores: "Submitted At" and "submittedAt" are submitted_at."""
    return re.sub(r"[^a-z0-9]+", "_", _CAMEL.sub("_", column.strip()).lower()).strip("_")


def unit_in_name(column: str, kind: Kind) -> str:
    """Return the unit a column's name ends in ("mem_gb", "duration_ms"), or an empty text."""
    head, _, last = plain_name(column).rpartition("_")
    return _UNIT_WORDS.get(kind, {}).get(last, "") if head else ""


def guess(source: Source, zone: str | None = None, table: str | None = None) -> Guess:
    """Return what the columns of a table probably mean; a UserError where nothing can be proposed."""
    cells = sample_cells(source)
    tables = [table] if table else list(FIELDS)
    found = {name: _candidates(FIELDS[name], cells) for name in tables}
    if table is None:
        serving = found["requests"]
        table = "requests" if {"input_tokens", "output_tokens"} & set(serving) and "submit" in serving else "tasks"
    chosen, doubts = _choose(found[table], cells)
    if table == "tasks":
        doubts += _complete(chosen, cells)
    fields = {name: meaning for name, (meaning, _) in chosen.items()}
    mapping = checked(Mapping(fields, table, zone))
    reasons = tuple(
        Reason(name, meaning.column, why, shorten(next(iter(cells[meaning.column]), ""), 30))
        for name, (meaning, why) in chosen.items()
    )
    unused = tuple(c for c in cells if c not in mapping.columns)
    return Guess(mapping, reasons, tuple(doubts), unused)


def _candidates(fields: tuple[Field, ...], cells: dict[str, list[str]]) -> dict[str, list[tuple[Meaning, str]]]:
    """Return the columns whose names and cells suit each field, and why."""
    found: dict[str, list[tuple[Meaning, str]]] = {}
    forms = date_forms(cells)
    for field in fields:
        for column, values in cells.items():
            name, unit = plain_name(column), unit_in_name(column, field.kind)
            bare = name.rpartition("_")[0] if unit else name
            if field.kind == Kind.TIME:
                unit = forms.get(column) or unit
            if name not in field.names and bare not in field.names:
                continue
            readable = _readable_share(field.kind, unit, values)
            if readable >= _READABLE_SHARE:
                why = "its own name" if name in _own_names(field) else f"a usual name for {field.meaning}"
                found.setdefault(field.name, []).append((Meaning(column, unit), why))
    return found


def _complete(chosen: dict[str, tuple[Meaning, str]], cells: dict[str, list[str]]) -> list[str]:
    """Add times found by their cells where no column is named like one; return the doubts this leaves."""
    doubts = []
    if not {"submit", "start", "end"} & set(chosen):
        free = {name: values for name, values in cells.items() if all(name != m.column for m, _ in chosen.values())}
        dated = dated_columns(free, "duration" in chosen)
        if not dated:
            columns = ", ".join(f"'{shorten(name, 30)}'" for name in list(cells)[:_MOST_COLUMNS])
            raise UserError(
                "no column looks like a time; say which, and how dates are written, with "
                f"--map 'submit=COLUMN:%d/%m/%Y %H:%M,...' (columns: {columns})"
            )
        chosen |= dated
        words = ", ".join(f"'{shorten(m.column)}' {name}" for name, (m, _) in dated.items())
        doubts.append(f"no column is named like a time; by its dates {words}")
    if not {"gpus", "total_gpus"} & set(chosen):
        doubts.append("no column is named like a number of GPUs (total_gpus=COLUMN), so jobs would have none")
    return doubts


def _own_names(field: Field) -> tuple[str, ...]:
    suffix = {Kind.TIME: "_time", Kind.DURATION: "_seconds"}.get(field.kind)
    return (field.name, field.name + suffix) if suffix else (field.name,)


def _readable_share(kind: Kind, unit: str, values: list[str]) -> float:
    """Return the share of sampled cells that can be read as the kind; 1 where all are empty."""
    if kind in (Kind.TEXT, Kind.STATUS) or not values:
        return 1.0
    frame = known(
        pl.DataFrame({"_row": range(len(values)), "cell": values}, schema={"_row": pl.UInt32, "cell": pl.String})
    )
    column = Column(frame, "cell", "", QualityLog(lenient=True))
    read = times(column, unit, None).seconds if kind == Kind.TIME else amounts(column, kind, unit)
    present = int(frame["cell"].is_not_null().sum())
    return float(read.is_not_null().sum()) / present if present else 1.0


def _choose(
    found: dict[str, list[tuple[Meaning, str]]], cells: dict[str, list[str]]
) -> tuple[dict[str, tuple[Meaning, str]], list[str]]:
    """Return one column for each field, and the doubts about them."""
    chosen: dict[str, tuple[Meaning, str]] = {}
    doubts: list[str] = []
    for name, candidates in found.items():
        own = [c for c in candidates if c[1] == "its own name"]
        chosen[name] = (own or candidates)[0]
        if len(own) != 1 and len(candidates) > 1:
            columns = " or ".join(f"'{shorten(m.column)}'" for m, _ in candidates)
            doubts.append(f"{name} may be {columns}")
    if "gpus" in chosen and "total_gpus" in chosen:
        doubts.append(
            f"'{shorten(chosen['gpus'][0].column)}' and '{shorten(chosen['total_gpus'][0].column)}' both look like GPUs"
        )
        del chosen["gpus"]
    gpus = chosen.get("gpus") or chosen.get("total_gpus")
    if gpus and "instances" in chosen:
        whose = _whose_gpus(cells[gpus[0].column], cells[chosen["instances"][0].column])
        if whose is None:
            doubts.append(
                f"'{shorten(gpus[0].column)}' may be the GPUs of the job (total_gpus) or of one instance (gpus)"
            )
        else:
            chosen = {name: c for name, c in chosen.items() if name not in ("gpus", "total_gpus")}
            chosen[whose[0]] = (gpus[0], whose[1])
    elif gpus and (most := max((n for c in cells[gpus[0].column] if (n := _bare(c))), default=0.0)) > _GPUS_OF_A_NODE:
        doubts.append(
            f"'{shorten(gpus[0].column)}' goes up to {most:g}, more GPUs than most nodes have, and no column says how many "
            "nodes (instances) a job has"
        )
    for name in ("memory", "gpu_memory", "disk"):
        if name in chosen and not chosen[name][0].unit:
            column = chosen[name][0].column
            if any(_bare(cell) for cell in cells[column]):
                chosen[name] = (replace(chosen[name][0], unit="GiB"), chosen[name][1])
                doubts.append(f"'{shorten(column)}' has numbers without a unit (GiB is a guess)")
    return chosen, doubts


def _whose_gpus(gpus: list[str], instances: list[str]) -> tuple[str, str] | None:
    """Return whether a count of GPUs is the job's or one instance's, and the rows that show it; None where none do."""
    if len(gpus) != len(instances):
        return None
    gangs = [(g, n) for a, b in zip(gpus, instances, strict=True) if (g := _bare(a)) and (n := _bare(b)) > 1]
    if any(g < n for g, n in gangs):
        g, n = next(pair for pair in gangs if pair[0] < pair[1])
        return "gpus", f"of one instance: a job of {n:g} instances has {g:g}"
    per_instance = [g / n for g, n in gangs]
    if any(g > _GPUS_OF_A_NODE for g, _ in gangs) and all(p % 1 == 0 and p <= _GPUS_OF_A_NODE for p in per_instance):
        g, n = max(gangs)
        return "total_gpus", f"of the job: {g:g} with {n:g} instances, {g / n:g} each; no node has {g:g}"
    return None


def _bare(cell: str) -> float:
    """Return a cell that is a plain positive number; 0 for any other."""
    try:
        number = float(cell)
    except ValueError:
        return 0.0
    return number if 0 < number < math.inf else 0.0


def proposal(source: Source, zone: str | None = None, table: str | None = None) -> Guess | None:
    """Return the guess, or None where the file is no table whose columns suggest anything."""
    try:
        return guess(source, zone, table)
    except UserError:
        return None
