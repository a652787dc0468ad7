"""A trace directory that is not as it was written is refused in one line, before anything is computed from it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputwin.core.errors import InputError
from gputwin.traces import dataset
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.describe import describe
from gputwin.traces.ingest import ingest
from tests.traces.mutation import mutated
from tests.traces.samples import openb2023


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("intact")
    ingest(openb2023.write(folder), folder / "trace")
    return folder / "trace"


@pytest.fixture
def trace(intact: Path, tmp_path: Path) -> Path:
    return shutil.copytree(intact, tmp_path / "trace")


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        describe(Trace.open(path))
    assert "again" in str(caught.value) or "gputwin ingest" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tables": None}, "damaged"),
        ({"tables": {"tasks": "three"}}, "tables: 'three' is not int"),
        ({"tables": {"tasks": 999, "nodes": 2}}, "tasks.parquet: 3 rows instead of 999"),
        ({"tables": {"../../etc/passwd": 1}}, "is missing"),
        ({"findings": [1]}, "damaged"),
        ({"inputs": 5}, "damaged"),
        ({"surplus": 1}, "surplus"),
        ({"source": 7}, "source: '7' is not str"),
        ({"zone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"clock": "sundial"}, "sundial"),
        ({"schema_version": 99}, "schema 99"),
    ],
)
def test_a_record_that_cannot_be_is_refused(change: dict[str, Any], says: str, trace: Path) -> None:
    record = json.loads((trace / "trace.json").read_text())
    (trace / "trace.json").write_text(json.dumps({**record, **change}))
    assert says in refusal(trace)


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"{", b"\xff\xfe\0", b"[" * 100_000])
def test_a_record_that_is_none_is_refused(text: bytes, trace: Path) -> None:
    (trace / "trace.json").write_bytes(text)
    assert "trace.json" in refusal(trace)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _with_other_columns(path: Path) -> None:
    pl.DataFrame({"a": [1, 2, 3]}).write_parquet(path)


def _with_other_types(path: Path) -> None:
    pl.read_parquet(path).with_columns(pl.col("submit_time").cast(pl.String)).write_parquet(path)


@pytest.mark.parametrize("damage", [_cut, _emptied, _with_other_columns, _with_other_types, Path.unlink])
@pytest.mark.parametrize("is_large", [False, True])
def test_a_damaged_table_is_refused(
    damage: Callable[[Path], None], is_large: bool, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_large:
        monkeypatch.setattr(dataset, "_QUICKLY_HASHED_BYTES", 0)
    damage(trace / "tasks.parquet")
    line = refusal(trace)
    assert str(trace) in line
    assert not is_large or "tasks" in line


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(at=st.integers(0), value=st.integers(1, 255))
def test_no_flipped_byte_of_a_table_goes_unnoticed(at: int, value: int, intact: Path) -> None:
    table = intact / "tasks.parquet"
    good = table.read_bytes()
    bad = bytearray(good)
    bad[at % len(bad)] ^= value
    table.write_bytes(bad)
    try:
        assert "damaged or was changed" in refusal(intact)
    finally:
        table.write_bytes(good)


@settings(max_examples=80, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_a_mutated_record_is_sound_or_refused(data: st.DataObject, intact: Path) -> None:
    record = json.loads((intact / "trace.json").read_text())
    changed = json.loads(json.dumps(data.draw(mutated(record))))
    try:
        meta = TraceMeta.from_json(changed)
    except (ValueError, TypeError, KeyError):
        return
    json.dumps(meta.to_json())
    assert all(isinstance(rows, int) for rows in meta.tables.values())


def test_a_trace_saved_again_has_the_fingerprint_of_its_bytes(trace: Path, tmp_path: Path) -> None:
    opened = Trace.open(trace)
    opened.meta = TraceMeta(**{**vars(opened.meta), "fingerprint": "of another version's bytes"})
    assert opened.save(tmp_path / "again").meta.fingerprint == Trace.open(trace).meta.fingerprint
