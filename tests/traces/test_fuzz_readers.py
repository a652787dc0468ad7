"""Whatever becomes of a file, each reader gives a sound trace or one line that says what is wrong."""

from __future__ import annotations

import importlib
import json
import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputwin.core.errors import UserError
from gputwin.traces.dataset import Trace
from gputwin.traces.describe import describe
from gputwin.traces.ingest import Options, ingest
from gputwin.traces.reader import READERS
from gputwin.traces.schema import TABLES
from tests.traces.mutation import damaged, strange_files

FUZZ = settings(max_examples=45, deadline=None, derandomize=True, database=None)
LONGEST_MESSAGE = 1000


@cache
def sample_files(reader: str) -> dict[str, bytes]:
    """Return the names and bytes of a reader's valid sample files."""
    module = importlib.import_module(f"tests.traces.samples.{reader}")
    with tempfile.TemporaryDirectory() as folder:
        return {path.name: path.read_bytes() for path in module.write(Path(folder))}


def assert_sound(trace: Trace) -> None:
    """Check what every trace promises, wherever it comes from."""
    meta = trace.meta
    assert meta.rows_read == meta.rows_kept + meta.rows_dropped
    assert 0 <= meta.rows_dropped <= meta.rows_read
    for name, rows in meta.tables.items():
        frame = trace.frame(name)
        assert frame.height == rows
        assert frame.schema == TABLES[name].schema
        for column in TABLES[name].columns:
            if not column.nullable:
                assert frame[column.name].null_count() == 0, (name, column.name)
            if column.dtype.is_float():
                assert frame[column.name].is_finite().all(), (name, column.name)
        if TABLES[name].key:
            assert not frame.select(TABLES[name].key).is_duplicated().any(), name
        for column_name in TABLES[name].time_columns:
            assert (frame[column_name].drop_nulls() >= 0).all(), (name, column_name)
    json.dumps(meta.to_json(), allow_nan=False)
    json.dumps(describe(trace).to_json(), allow_nan=False)


def trace_or_refusal(paths: list[Path], options: Options) -> Trace | str:
    try:
        return ingest(paths, options=options)
    except UserError as error:
        return str(error)


def assert_sound_or_refused(files: dict[str, bytes], options: Options) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in files]
        for path, data in zip(paths, files.values(), strict=True):
            path.write_bytes(data)
        outcome = trace_or_refusal(paths, options)
        if isinstance(outcome, Trace):
            assert_sound(outcome)
        else:
            assert "\n" not in outcome
            assert len(outcome) < LONGEST_MESSAGE


@pytest.mark.parametrize("reader", READERS.names())
@FUZZ
@given(data=st.data())
def test_a_damaged_file_gives_a_sound_trace_or_one_line(reader: str, data: st.DataObject) -> None:
    files = dict(sample_files(reader))
    name = data.draw(st.sampled_from(sorted(files)))
    files[name] = data.draw(damaged(files[name]))
    if data.draw(st.booleans()):
        files = {name: files[name]}
    format = data.draw(st.sampled_from([None, reader]))
    assert_sound_or_refused(files, Options(format=format, lenient=data.draw(st.booleans())))


@pytest.mark.parametrize("reader", READERS.names())
@settings(FUZZ, max_examples=15)
@given(data=strange_files(), lenient=st.booleans())
def test_a_strange_file_gives_a_sound_trace_or_one_line(reader: str, data: bytes, lenient: bool) -> None:
    name = min(sample_files(reader))
    assert_sound_or_refused({name: data}, Options(format=reader, lenient=lenient))


@settings(FUZZ, max_examples=60)
@given(data=strange_files())
def test_a_file_of_nobody_gives_a_sound_trace_or_one_line(data: bytes) -> None:
    assert_sound_or_refused({"file": data}, Options())
