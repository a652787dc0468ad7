"""Speeds of pairs of jobs on one GPU, as measured: read from a file in Gavel's format, or built in."""

from __future__ import annotations

import ast
import gzip
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from gputwin.core.errors import InputError, shorten
from gputwin.simulation.engine.state.records import Floats

BUILT_IN = "built-in"
TAKE_TURNS = 0.5
"""The speed of two jobs whose memory does not fit on the GPU together: each waits half of the time for the other."""
_ALONE = "null"
_REFERENCE = "v100"


@dataclass(frozen=True)
class PairTable:
    """Types of jobs, GPU models, and how fast each type runs beside each other: 1 is the speed it has alone."""

    types: tuple[str, ...]
    gpus: tuple[str, ...]
    speeds: Floats
    """[GPU, type, type of the neighbour]; 0: their memory does not fit together; not a number: not measured."""
    alone: Floats
    """[GPU, type]: steps a second without a neighbour; not a number: not known."""

    @property
    def reference(self) -> int:
        """Return the row of the GPU that stands for models which were not measured."""
        return self.gpus.index(_REFERENCE) if _REFERENCE in self.gpus else 0

    @property
    def excess(self) -> Floats:
        """Return by how much each type is slowed beside each other, in the shape of `speeds`: 1 is twice as slow."""
        speeds = np.where(
            self.speeds > 0, np.minimum(self.speeds, 1.0), np.where(np.isnan(self.speeds), np.nan, TAKE_TURNS)
        )
        return np.asarray(1.0 / speeds - 1.0)

    def row_of(self, model: str) -> int:
        """Return the row of the GPU whose name the model's begins with; the reference where there is none."""
        named = [g for g, name in enumerate(self.gpus) if model.lower().startswith(name.lower())]
        return max(named, key=lambda g: len(self.gpus[g]), default=self.reference)

    def for_models(self, models: Sequence[str]) -> Floats:
        """Return the excess slowdown by GPU model of a cluster, unmeasured pairs filled in by the model."""
        from gputwin.simulation.interference.model import filled

        complete = filled(self)
        return np.ascontiguousarray(complete.excess[[self.row_of(model) for model in models]])


@cache
def built_in() -> PairTable:
    """Return three classes of jobs, by how much they slow others.

    Means over the thirds of the 26 single-GPU job types that Gavel measured in pairs on V100 (`gputwin interference FILE`).
    """
    speeds = [[0.81, 0.79, 0.56], [0.75, 0.71, 0.51], [0.68, 0.62, 0.46]]
    return PairTable(("light", "medium", "heavy"), (_REFERENCE,), np.array([speeds]), np.full((1, 3), np.nan))


def read_table(name: str) -> PairTable:
    """Return the built-in table, or the one in a file."""
    return built_in() if name == BUILT_IN else _read(Path(name))


def _read(path: Path) -> PairTable:
    try:
        raw = path.read_bytes()
        data = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        return table_of(data)
    except (
        OSError,
        EOFError,
        UnicodeDecodeError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        SyntaxError,
    ) as error:
        raise InputError(
            f"not a table of pairs ({shorten(error, 100)})",
            file=path,
            remedy="give a file as in docs/sharing.md, or built-in",
        ) from None


def table_of(data: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> PairTable:
    """Return the table in Gavel's format: GPU → "('type', GPUs)" → steps a second alone ("null") and beside each other.

    Only types on one GPU are taken, and GPUs whose name does not end in "_unconsolidated".
    """
    gpus = tuple(name for name in data if not name.endswith("_unconsolidated"))
    types = tuple(dict.fromkeys(_type(key) for g in gpus for key in data[g] if _gpus(key) == 1))
    if not gpus or not types:
        raise ValueError("no GPU, or no type of job on one GPU")
    place = {name: t for t, name in enumerate(types)}
    speeds, alone = np.full((len(gpus), len(types), len(types)), np.nan), np.full((len(gpus), len(types)), np.nan)
    for g, gpu in enumerate(gpus):
        for key, beside in data[gpu].items():
            if _gpus(key) != 1:
                continue
            own, a = _number(beside[_ALONE]), place[_type(key)]
            alone[g, a] = own if own > 0 else np.nan
            for other, measured in beside.items():
                if other != _ALONE and _gpus(other) == 1 and _type(other) in place and own > 0:
                    speeds[g, a, place[_type(other)]] = _number(measured[0]) / own
    return PairTable(types, gpus, speeds, alone)


def _number(value: Any) -> float:
    number = float(value)
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"a speed is {value}")
    return number


@cache
def _parsed(key: str) -> tuple[str, int]:
    name, gpus = ast.literal_eval(key)
    return str(name), int(gpus)


def _type(key: str) -> str:
    return _parsed(key)[0]


def _gpus(key: str) -> int:
    return _parsed(key)[1]
