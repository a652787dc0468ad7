"""ThetaGPU: the real job log and the reading of its odd columns."""

from __future__ import annotations

import pytest

from gputwin.core.errors import InputError
from gputwin.traces.ingest import ingest
from gputwin.traces.measures import WAIT
from tests.traces.samples import thetagpu


def test_the_real_log(real_data):
    trace = ingest([real_data / "thetagpu" / "thetagpu_jobs.csv.gz"])
    tasks = trace.tasks
    assert tasks.height == trace.meta.rows_read == 15_824
    assert dict(tasks["status"].value_counts().rows()) == {"failed": 9_118, "completed": 3_991, "cancelled": 2_715}
    assert tasks.select((WAIT > 30 * 86_400).sum()).item() == 2
    assert tasks["duration_seconds"].max() < 43_300
    assert tasks["requested_seconds"].null_count() == 0
    assert trace.meta.origin_unix_seconds == 1_663_881_807


def test_a_unit_is_an_instance_with_one_gpu(tmp_path):
    task = ingest(thetagpu.write(tmp_path)).tasks.row(1, named=True)
    assert (task["instances"], task["gpu_count"]) == (4, 1)


def test_user_and_project_zero_are_unknown(tmp_path):
    tasks = ingest(thetagpu.write(tmp_path)).tasks
    assert tasks["user"].to_list() == [None, "83709710735692", None]
    assert tasks["tenant"].to_list() == [None, "59952278975375", None]


def test_a_strange_status_is_reported(tmp_path):
    (path,) = thetagpu.write(tmp_path)
    path.write_text(path.read_text().replace(",Pass", ",Paused"))
    trace = ingest([path])
    assert [(f.rule, f.count) for f in trace.meta.findings] == [("F08", 1)]
    assert trace.tasks["status"].to_list()[1] == "unknown"


def test_two_logs_are_one_too_many(tmp_path):
    (path,) = thetagpu.write(tmp_path)
    second = tmp_path / "second.csv"
    second.write_text(path.read_text())
    with pytest.raises(InputError, match="second job log"):
        ingest([path, second])
