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

from gputwin.core.atomic import atomic_directory
from gputwin.core.errors import InputError, UserError, shorten
from gputwin.profiling.alignment import Recording
from gputwin.profiling.calibration import Calibrated, Calibration
from gputwin.profiling.classes.classes import Classes, Classifier
from gputwin.profiling.classes.clustering import Settings, Trial
from gputwin.profiling.classes.description import JobClass
from gputwin.profiling.distribution import Grid
from gputwin.profiling.evaluation.scores import Scores
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
from gputwin.traces.schema import SCHEMA_VERSION, TASKS

MODEL_FILE = "model.json"
FORMAT = 3
_TYPES: dict[str, type] = {
    t.__name__: t
    for t in (Boosted, ByClass, Classes, Classifier, Encoding, Features, Forest, Grid, JobClass, KeyTable, Medians)
} | {
    t.__name__: t for t in (Calibrated, Calibration, Memory, Online, Recording, Scores, Settings, Single, Stack, Trial)
}
_PARTS: dict[str, Any] = {
    "model": DurationModel,
    "classes": Classes | None,
    "recording": Recording,
    "baseline": DurationModel,
    "promised": Scores | None,
}
_LONG_TEXT = 200
_REMEDY = "make a model with: gputwin profile TRACE -o DIR"


@dataclass(frozen=True)
class Saved:
    """A model with what it was made from: its kind, its history's recording and the columns that carried information.

    `baseline` is what its predictions are compared with, and `promised` how it did in the profile's test.
    """

    kind: str
    model: DurationModel
    classes: Classes | None
    recording: Recording
    columns: tuple[str, ...]
    baseline: DurationModel
    promised: Scores | None

    def check(self, jobs: Submitted) -> None:
        """Raise a user error where jobs have nothing of what the model goes by."""
        told = telling_columns(jobs)
        if self.columns and not set(self.columns) & set(told):
            raise UserError(
                f"the model goes by {', '.join(self.columns)}, and this trace has none of them; "
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
            "columns": list(saved.columns),
            "kind": saved.kind,
            **{name: _pack(getattr(saved, name), folder, files) for name in _PARTS},
        }
        (folder / MODEL_FILE).write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return path


def load(path: Path) -> Saved:
    """Return the model saved in the folder `path`; an InputError where it is none, or was made for other columns."""
    try:
        data = json.loads((path / MODEL_FILE).read_text(encoding="utf-8"))
        _check_version(data, path)
        parts = {name: _unpack(data[name], path) for name in _PARTS}
        if not all(isinstance(parts[name], wanted) for name, wanted in _PARTS.items()):
            raise InputError("not a duration model", file=path, remedy=_REMEDY)
        return Saved(kind=data["kind"], columns=tuple(data["columns"]), **parts)
    except FileNotFoundError:
        raise InputError(f"not a saved model (it has no {MODEL_FILE})", file=path, remedy=_REMEDY) from None
    except (OSError, ValueError, KeyError, TypeError, IndexError, pl.exceptions.PolarsError) as error:
        raise InputError(f"not a saved model ({shorten(error, 120)})", file=path, remedy=_REMEDY) from None


def _check_version(data: dict[str, Any], path: Path) -> None:
    """Raise an InputError where a model was saved for other columns or by another version."""
    problem = None
    if data["schema_version"] != SCHEMA_VERSION:
        problem = f"version {data['schema_version']} of the trace schema, this is {SCHEMA_VERSION}"
    elif data["format"] != FORMAT:
        problem = f"version {data['format']} of saved models, this is {FORMAT}"
    elif data["submit_columns"] != _schema():
        problem = "other submit-time columns"
    if problem is not None:
        raise InputError(f"the model was made for {problem}", file=path, remedy="train it again: gputwin profile")


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
