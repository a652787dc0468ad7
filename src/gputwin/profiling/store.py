"""Saved models: a folder of JSON, Parquet and text that opens without running any code from it.

A value is stored by what it is: numbers and names in `model.json`, arrays and frames in Parquet files, LightGBM models in
text files. Only the types listed here are ever made when a folder is opened.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.errors import InputError, UserError, shorten
from gputwin.profiling.classes.classes import Classes, Classifier
from gputwin.profiling.classes.clustering import Settings, Trial
from gputwin.profiling.classes.description import JobClass
from gputwin.profiling.distribution import Grid
from gputwin.profiling.features import Encoding, Features
from gputwin.profiling.jobs import SUBMIT_COLUMNS, Submitted
from gputwin.profiling.keys import KEYS, KeyTable
from gputwin.profiling.memory import Memory
from gputwin.profiling.model import DurationModel
from gputwin.profiling.models.boosted import Boosted
from gputwin.profiling.models.cluster import ByClass
from gputwin.profiling.models.forest import Forest
from gputwin.profiling.models.medians import Medians
from gputwin.profiling.models.online import Online
from gputwin.profiling.models.requested import Single
from gputwin.profiling.models.stack import Stack
from gputwin.traces.atomic import atomic_directory
from gputwin.traces.schema import SCHEMA_VERSION, TASKS

MODEL_FILE = "model.json"
FORMAT = 1
_TYPES: dict[str, type] = {
    t.__name__: t
    for t in (Boosted, ByClass, Classes, Classifier, Encoding, Features, Forest, Grid, JobClass, KeyTable, Medians)
} | {t.__name__: t for t in (Memory, Online, Settings, Single, Stack, Trial)}
_LONG_TEXT = 200
_REMEDY = "make a model with: gputwin profile TRACE -o DIR"


@dataclass(frozen=True)
class Saved:
    """A model with what it was made from: its kind, the trace's fingerprint, and the columns that told it something."""

    kind: str
    model: DurationModel
    classes: Classes | None
    fingerprint: str
    columns: tuple[str, ...]

    def check(self, jobs: Submitted) -> None:
        """Raise a user error where jobs tell nothing of what the model goes by."""
        told = telling_columns(jobs)
        if self.columns and not set(self.columns) & set(told):
            raise UserError(
                f"the model goes by {', '.join(self.columns)}, and this trace tells none of them; "
                "train one on this trace with: gputwin profile"
            )


def telling_columns(jobs: Submitted) -> tuple[str, ...]:
    """Return the names and request columns that are known of some job."""
    columns = dict.fromkeys(c for key in KEYS.values() for c in key if c not in ("role", "instances"))
    return tuple(c for c in columns if jobs.frame[c].null_count() < jobs.size)


def save(saved: Saved, path: Path) -> Path:
    """Write the model to the folder `path`, all or nothing, and return the path."""
    with atomic_directory(path, marker=MODEL_FILE) as folder:
        files: list[str] = []
        data = {
            "format": FORMAT,
            "schema_version": SCHEMA_VERSION,
            "submit_columns": _schema(),
            "trace_fingerprint": saved.fingerprint,
            "columns": list(saved.columns),
            "kind": saved.kind,
            "model": _pack(saved.model, folder, files),
            "classes": _pack(saved.classes, folder, files),
        }
        (folder / MODEL_FILE).write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return path


def load(path: Path) -> Saved:
    """Return the model saved in the folder `path`; an InputError where it is none, or was made for other columns."""
    try:
        data = json.loads((path / MODEL_FILE).read_text(encoding="utf-8"))
        found = (data["format"], data["schema_version"])
        if found != (FORMAT, SCHEMA_VERSION) or data["submit_columns"] != _schema():
            raise InputError(
                f"the model was made for version {found[1]} of the trace schema, this is {SCHEMA_VERSION}"
                if found[1] != SCHEMA_VERSION
                else "the model was made for other submit-time columns",
                file=path,
                remedy="train it again",
            )
        model, classes = _unpack(data["model"], path), _unpack(data["classes"], path)
        if not isinstance(model, DurationModel) or not isinstance(classes, Classes | None):
            raise InputError("not a duration model", file=path, remedy=_REMEDY)
        return Saved(data["kind"], model, classes, data["trace_fingerprint"], tuple(data["columns"]))
    except (OSError, ValueError, KeyError, TypeError, IndexError, pl.exceptions.PolarsError) as error:
        raise InputError(f"not a saved model ({shorten(error, 120)})", file=path, remedy=_REMEDY) from None


def _schema() -> dict[str, str]:
    types = TASKS.schema
    return {c: str(types.get(c, pl.Float64)) for c in SUBMIT_COLUMNS}


def _pack(value: Any, folder: Path, files: list[str]) -> Any:
    """Return `value` as JSON; what does not belong there is written to a file of the folder."""

    def put(suffix: str, write: Callable[[Path], None]) -> str:
        files.append(f"{len(files):03d}.{suffix}")
        write(folder / files[-1])
        return files[-1]

    if dataclasses.is_dataclass(value) and type(value).__name__ in _TYPES:
        fields = {f.name: _pack(getattr(value, f.name), folder, files) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, "fields": fields}
    if isinstance(value, np.ndarray):
        frame = pl.DataFrame({"values": value.ravel()})
        return {"array": put("parquet", frame.write_parquet), "shape": list(value.shape), "dtype": str(value.dtype)}
    if isinstance(value, pl.Series):
        return {"series": put("parquet", value.to_frame("values").write_parquet)}
    if isinstance(value, pl.DataFrame):
        return {"frame": put("parquet", value.write_parquet)}
    if isinstance(value, str) and len(value) > _LONG_TEXT:
        return {"text": put("txt", lambda path: _write_text(path, value))}
    if isinstance(value, dict):
        return {"dict": [[k, _pack(v, folder, files)] for k, v in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_pack(v, folder, files) for v in value]}
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else {"float": str(value)}
    raise TypeError(f"cannot save a {type(value).__name__}")


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _unpack(value: Any, folder: Path) -> Any:
    """Return what `_pack` stored."""
    if not isinstance(value, dict):
        return value
    if "type" in value:
        return _TYPES[value["type"]](**{k: _unpack(v, folder) for k, v in value["fields"].items()})
    if "array" in value:
        flat = _frame(folder, value["array"])["values"].to_numpy()
        return flat.astype(np.dtype(value["dtype"])).reshape(value["shape"])
    if "series" in value:
        return _frame(folder, value["series"])["values"]
    if "frame" in value:
        return _frame(folder, value["frame"])
    if "text" in value:
        return (folder / Path(value["text"]).name).read_text(encoding="utf-8")
    if "dict" in value:
        return {k: _unpack(v, folder) for k, v in value["dict"]}
    if "float" in value:
        return float(value["float"])
    return tuple(_unpack(v, folder) for v in value["tuple"])


def _frame(folder: Path, name: str) -> pl.DataFrame:
    # A name is taken for a file of this folder, whatever path it spells.
    return pl.read_parquet(folder / Path(name).name)
