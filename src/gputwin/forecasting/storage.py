"""Saved forecasts and models: a folder of JSON, NumPy arrays and LightGBM's text; nothing in it runs when read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gputwin.core.atomic import atomic_directory
from gputwin.core.errors import InputError, shorten
from gputwin.forecasting.models._model import MODELS, Model
from gputwin.forecasting.series import DemandSeries

MODEL_FILE = "model.json"
_ARRAYS = "arrays.npz"
_ARRAY, _TUPLE = "__array__", "__tuple__"


def save_model(model: Model, name: str, path: Path) -> None:
    """Write a fitted model to the directory `path`, all or nothing; `name` is the one it is registered under."""
    with atomic_directory(path, marker=MODEL_FILE) as folder:
        write_model(model, name, folder)


def write_model(model: Model, name: str, folder: Path) -> None:
    """Write a fitted model into a folder that is there."""
    arrays: dict[str, Any] = {}
    record = {
        "model": name,
        "parameters": model.parameters(),
        "series": list(model.series_.names),
        "bins": len(model.series_),
        "state": _packed(model.state(), arrays, "state"),
    }
    (folder / MODEL_FILE).write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    np.savez_compressed(folder / _ARRAYS, **arrays)


def open_model(path: Path, series: DemandSeries) -> Model:
    """Return the model saved in `path`, ready to go on from `series`, which must have the same names."""
    try:
        record = json.loads((path / MODEL_FILE).read_text(encoding="utf-8"))
        if tuple(record["series"]) != series.names:
            raise InputError(
                f"the model was fitted on {', '.join(record['series'])}, not on {', '.join(series.names)}", file=path
            )
        with np.load(path / _ARRAYS, allow_pickle=False) as arrays:
            state = _unpacked(record["state"], arrays)
        model = MODELS.get(record["model"]).make()
        vars(model).update(record["parameters"])
        return model.restore(state, series)
    except FileNotFoundError:
        raise InputError("not a saved model", file=path, remedy="make one with: gputwin forecast -o") from None
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise InputError(f"damaged ({shorten(error, 200)})", file=path, remedy="forecast again") from None


def _packed(value: Any, arrays: dict[str, Any], key: str) -> Any:
    """Return plain data for JSON; arrays go to `arrays` under `key`."""
    if isinstance(value, np.ndarray):
        arrays[key] = value
        return {_ARRAY: key}
    if isinstance(value, Mapping):
        return {str(k): _packed(v, arrays, f"{key}.{k}") for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_packed(v, arrays, f"{key}.{i}") for i, v in enumerate(value)]
        return {_TUPLE: items} if isinstance(value, tuple) else items
    return value.item() if isinstance(value, np.generic) else value


def _unpacked(value: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        if _ARRAY in value:
            return arrays[value[_ARRAY]]
        if _TUPLE in value:
            return tuple(_unpacked(v, arrays) for v in value[_TUPLE])
        return {k: _unpacked(v, arrays) for k, v in value.items()}
    return [_unpacked(v, arrays) for v in value] if isinstance(value, list) else value
