"""One battery for every registered reader."""

from __future__ import annotations

import gzip
import importlib
import tarfile
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gputwin.core.errors import InputError
from gputwin.traces.dataset import Trace
from gputwin.traces.ingest import Options, ingest
from gputwin.traces.reader import READERS
from gputwin.traces.schema import TABLES

NAMES = READERS.names()


@pytest.fixture(params=NAMES)
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, list[Path], dict[str, int]]:
    module = importlib.import_module(f"tests.traces.samples.{request.param}")
    folder = tmp_path / "raw"
    folder.mkdir()
    return request.param, module.write(folder), module.ROWS


def frames(trace: Trace) -> dict[str, pl.DataFrame]:
    return {name: trace.frame(name) for name in trace.meta.tables}


def assert_same(a: Trace, b: Trace) -> None:
    assert list(a.meta.tables) == list(b.meta.tables)
    for name in a.meta.tables:
        assert_frame_equal(a.frame(name), b.frame(name), check_exact=True)


def test_is_detected_and_gives_the_rows_it_should(sample):
    name, paths, rows = sample
    trace = ingest(paths)
    assert trace.meta.source == name
    assert dict(trace.meta.tables) == rows


def test_tables_have_the_canonical_schema_and_no_null_where_none_is_allowed(sample):
    _, paths, _ = sample
    for name, frame in frames(ingest(paths)).items():
        assert frame.schema == TABLES[name].schema
        for column in TABLES[name].columns:
            if not column.nullable:
                assert frame[column.name].null_count() == 0, (name, column.name)


def test_rows_read_are_kept_or_dropped(sample):
    _, paths, _ = sample
    meta = ingest(paths).meta
    assert meta.rows_read == meta.rows_kept + meta.rows_dropped
    assert meta.rows_read > 0


def test_times_are_ordered_where_known(sample):
    _, paths, _ = sample
    for name, frame in frames(ingest(paths)).items():
        if {"submit_time", "start_time", "end_time"} <= set(frame.columns):
            assert not (frame["start_time"] < frame["submit_time"]).any(), name
            assert not (frame["end_time"] < frame["start_time"]).any(), name
        for column in TABLES[name].time_columns:
            assert (frame[column].drop_nulls() >= 0).all(), (name, column)


def test_what_runs_has_no_duration(sample):
    _, paths, _ = sample
    tasks = ingest(paths).tasks
    assert tasks.filter(pl.col("is_running") & pl.col("end_time").is_not_null()).is_empty()


def test_ingesting_twice_gives_the_same_bytes(sample, tmp_path):
    _, paths, _ = sample
    first = ingest(paths, tmp_path / "trace")
    content = {p.name: p.read_bytes() for p in (tmp_path / "trace").iterdir()}
    again = ingest(paths, tmp_path / "trace")
    assert first.meta.fingerprint == again.meta.fingerprint
    assert content == {p.name: p.read_bytes() for p in (tmp_path / "trace").iterdir()}


def test_saved_and_opened_is_the_same_trace(sample, tmp_path):
    _, paths, _ = sample
    trace = ingest(paths)
    saved = trace.save(tmp_path / "saved")
    assert saved.meta == trace.meta
    assert_same(trace, saved)


def test_gzip_and_tar_make_no_difference(sample, tmp_path):
    _, paths, _ = sample
    plain = ingest(paths)
    zipped = []
    for path in paths:
        zipped.append(tmp_path / f"{path.name}.gz")
        zipped[-1].write_bytes(gzip.compress(path.read_bytes()))
    assert_same(plain, ingest(zipped))
    archive = tmp_path / "all.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for path in paths:
            tar.add(path, path.name)
    assert_same(plain, ingest([archive]))


def test_a_cut_gzip_is_one_clear_error_and_leaves_nothing(sample, tmp_path):
    _, paths, _ = sample
    packed = gzip.compress(paths[0].read_bytes())
    cut = tmp_path / f"{paths[0].name}.gz"
    cut.write_bytes(packed[: len(packed) * 2 // 3])
    with pytest.raises(InputError, match=r"cut short|damaged"):
        ingest([cut], tmp_path / "trace")
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["raw", cut.name])


def test_strict_refuses_what_it_would_report(sample, tmp_path):
    _, paths, _ = sample
    if ingest(paths).meta.findings:
        with pytest.raises(InputError, match="--strict"):
            ingest(paths, tmp_path / "trace", Options(strict=True))
        assert not (tmp_path / "trace").exists()
    else:
        assert ingest(paths, options=Options(strict=True)).meta.findings == ()
