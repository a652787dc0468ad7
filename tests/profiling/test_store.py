"""Saved models: the same predictions back, and clear words where a folder is not what it should be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gputwin.core.errors import InputError, UserError
from gputwin.profiling.alignment import Recording
from gputwin.profiling.evaluation.scores import LEVELS, score
from gputwin.profiling.jobs import History, Submitted
from gputwin.profiling.model import MODELS, fit
from gputwin.profiling.store import MODEL_FILE, Saved, load, save, telling_columns
from gputwin.traces.dataset import TraceMeta
from tests.profiling.workloads import history


def saved(name: str, past: History) -> Saved:
    recording = Recording.of(TraceMeta("test", fingerprint="abc", origin_unix_seconds=5.0), past)
    model, baseline = fit(name, past), fit("median", past)
    seconds, quantiles, _ = baseline.forecast(past.jobs, LEVELS)
    promised = score(past.outcomes.duration, seconds, quantiles)
    return Saved(name, model, None, recording, telling_columns(past.jobs), baseline, promised)


@pytest.mark.parametrize("name", MODELS.names())
def test_a_saved_model_predicts_the_same(name: str, tmp_path: Path) -> None:
    past = history(150)
    model = fit(name, past)
    given = saved(name, past)
    save(replace(given, model=model), tmp_path / "model")
    back = load(tmp_path / "model")
    assert (back.kind, back.recording, back.promised) == (name, given.recording, given.promised)
    new = history(40, seed=8).jobs
    for ours, theirs in zip(model.forecast(new), back.model.forecast(new), strict=True):
        assert np.array_equal(ours, theirs)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save(saved("online", history(60)), tmp_path / "model")


def test_nothing_in_the_folder_is_code(folder: Path) -> None:
    assert {path.suffix for path in folder.iterdir()} <= {".json", ".parquet", ".txt"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema_version": 99}, "version 99 of the trace schema"),
        ({"format": 1}, "version 1 of saved models"),
        ({"submit_columns": {"user": "String"}}, "other submit-time columns"),
        ({"model": {"type": "os.system", "fields": {}}}, "not a saved model"),
        ({"model": 5}, "not a duration model"),
    ],
)
def test_a_model_for_another_schema_is_refused(folder: Path, change: dict[str, object], said: str) -> None:
    data = json.loads((folder / MODEL_FILE).read_text())
    (folder / MODEL_FILE).write_text(json.dumps({**data, **change}))
    with pytest.raises(InputError, match=said):
        load(folder)


def test_no_model_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gputwin profile"):
        load(tmp_path)


def test_jobs_that_tell_nothing_the_model_goes_by_are_refused(folder: Path) -> None:
    nothing = Submitted.of_rows([{"qos": "high"}])
    with pytest.raises(UserError, match="has none of them"):
        load(folder).check(nothing)
    load(folder).check(Submitted.of_rows([{"user": "u1"}]))


def test_a_file_name_cannot_lead_out_of_the_folder(folder: Path) -> None:
    data = json.loads((folder / MODEL_FILE).read_text())
    pl.DataFrame({"values": [1.0]}).write_parquet(folder.parent / "outside.parquet")
    data["model"]["fields"]["overall"]["array"] = "../outside.parquet"
    (folder / MODEL_FILE).write_text(json.dumps(data))
    with pytest.raises(InputError):
        load(folder)
