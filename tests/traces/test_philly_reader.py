"""Philly: the publisher's job log, and the tables others made from it."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gputwin.core.errors import InputError
from gputwin.traces.dataset import Trace
from gputwin.traces.ingest import Options, ingest
from gputwin.traces.measures import GPU_MILLI_TOTAL
from gputwin.traces.readers.philly import _gang
from tests.traces.mutation import mutated
from tests.traces.samples import philly

EASTERN_SUMMER = 4 * 3600
EASTERN_WINTER = 5 * 3600


def counts(trace: Trace) -> dict[str, int]:
    return {f.rule: f.count for f in trace.meta.findings}


def log_of(folder: Path, jobs: object) -> Trace:
    path = folder / "cluster_job_log"
    path.write_text(json.dumps(jobs))
    return ingest([path])


def test_jobs_by_virtual_cluster_are_all_there(real_data):
    trace = ingest([real_data / "philly" / "philly_jobs_by_vc.csv.gz"])
    assert trace.tasks.height == trace.meta.rows_read == trace.meta.rows_kept == 82_247
    assert trace.tasks["tenant"].n_unique() == 15
    found = counts(trace)
    assert found["F05"] == 65
    assert found["F09"] == 7
    # 2017-09-04 10:30:41 in New York.
    assert trace.meta.origin_unix_seconds == 1_504_521_041 + EASTERN_SUMMER
    assert trace.meta.zone == "America/New_York"


def test_gpus_of_a_job_stay_exact(real_data):
    path = real_data / "philly" / "philly_jobs_by_vc.csv.gz"
    raw = pl.read_csv(path)["num_gpus"].sum()
    tasks = ingest([path]).tasks
    assert tasks.select(GPU_MILLI_TOTAL.sum()).item() == raw * 1000
    assert tasks["gpu_count"].max() == 8


def test_attempts_leave_out_the_simulated_wait(real_data):
    trace = ingest([real_data / "philly" / "philly_attempts_run_times.csv.gz"])
    assert trace.tasks.height == 151_816
    assert trace.tasks["start_time"].null_count() == 151_816
    assert counts(trace)["F04"] == 1


def test_both_tables_put_the_same_job_at_the_same_time(real_data):
    """The publisher's example job, submitted 2017-10-07 01:11:39 with 8 GPUs, is in both."""
    folder = real_data / "philly"
    submitted = 1_507_338_699 + EASTERN_SUMMER
    for name, runtimes in (("philly_jobs_by_vc", {193_256.0}), ("philly_attempts_run_times", {74.0, 193_182.0})):
        trace = ingest([folder / f"{name}.csv.gz"])
        time = submitted - trace.meta.origin_unix_seconds
        job = trace.tasks.filter((pl.col("submit_time") == time) & (pl.col("gpu_count") == 8))
        assert set(job["duration_seconds"]) == runtimes, name


def test_node_sequence_is_a_series_with_its_gap(real_data):
    trace = ingest([real_data / "philly" / "philly_node_sequence.csv.gz"])
    assert trace.meta.rows_read == 105_644
    assert trace.series["metric"].value_counts().sort("metric").rows() == [
        ("active_nodes", 105_644),
        ("total_nodes", 105_644),
    ]
    assert counts(trace)["Q17"] == 2
    assert counts(trace)["F09"] == 60
    assert trace.series["time"].max() > 70 * 86_400


def test_runtimes_are_tasks_that_know_nothing_else(real_data):
    trace = ingest([real_data / "philly" / "philly_runtime.csv.gz"])
    assert trace.tasks.height == 83_154
    assert trace.meta.clock == "relative"
    assert trace.tasks["duration_seconds"].null_count() == 0
    assert trace.tasks["gpu_count"].null_count() == 83_154


def test_tables_that_count_the_same_jobs_are_not_added_up(real_data):
    with pytest.raises(InputError, match="count the same jobs"):
        ingest([real_data / "philly"])


@pytest.mark.parametrize(
    ("total", "gang"),
    [(0, (1, 0)), (1, (1, 1)), (5, (1, 5)), (8, (1, 8)), (16, (2, 8)), (12, (2, 6)), (28, (4, 7)), (11, (11, 1))],
)
def test_a_job_of_many_gpus_is_split_evenly(total, gang):
    assert _gang(float(total)) == gang


@given(st.integers(0, 10_000))
def test_a_split_keeps_the_total_and_fits_a_machine(total):
    instances, each = _gang(float(total))
    assert instances * each == total
    assert each <= 8


def test_a_job_runs_for_the_sum_of_its_attempts(tmp_path):
    job = log_of(tmp_path, philly.JOBS[:1]).tasks.row(0, named=True)
    assert job["attempts"] == 2
    assert job["start_time"] - job["submit_time"] == 30
    assert job["duration_seconds"] == 193_256
    assert job["end_time"] - job["start_time"] == 193_263
    assert job["status"] == "completed"


def test_every_attempt_says_where_it_ran(tmp_path):
    trace = log_of(tmp_path, philly.JOBS[:1])
    assert trace.instances["node_id"].to_list() == ["m47", "m12"]
    assert "Q32" not in counts(trace)


def test_an_uneven_job_is_made_of_equal_shares(tmp_path):
    trace = log_of(tmp_path, philly.JOBS[1:2])
    assert trace.tasks.select("instances", "gpu_count").row(0) == (3, 2)
    assert trace.instances["node_id"].value_counts().sort("node_id").rows() == [("m12", 1), ("m47", 2)]


def test_a_job_whose_last_attempt_has_no_end_still_runs(tmp_path):
    job = log_of(tmp_path, philly.JOBS[3:]).tasks.row(0, named=True)
    assert (job["status"], job["is_running"], job["duration_seconds"]) == ("running", True, None)


def test_an_attempt_without_times_makes_the_runtime_unknown(tmp_path):
    jobs = copy.deepcopy(philly.JOBS[:1])
    jobs[0]["attempts"][0]["end_time"] = "None"
    job = log_of(tmp_path, jobs).tasks.row(0, named=True)
    assert job["duration_seconds"] is None
    assert job["end_time"] is not None


def test_a_job_listed_twice_is_dropped_once(tmp_path):
    trace = log_of(tmp_path, [*philly.JOBS[:2], philly.JOBS[0]])
    assert trace.tasks.height == 2
    assert trace.meta.rows_dropped == counts(trace)["Q02"] == 1
    assert trace.instances.height == 5


def test_a_winter_job_is_an_hour_further_from_utc(tmp_path):
    jobs = copy.deepcopy(philly.JOBS[2:3])
    jobs[0]["submitted_time"] = "2017-12-01 12:00:00"
    assert log_of(tmp_path, jobs).meta.origin_unix_seconds == 1_512_129_600 + EASTERN_WINTER


@pytest.mark.parametrize(
    ("jobs", "message"),
    [
        ({}, "not a file of any known format"),
        ([{"jobid": "a", "attempts": 3}], r"\[0\].attempts'.*expected a list, found a number"),
        ([{"jobid": "a", "attempts": [{"detail": [{"ip": "m1", "gpus": "gpu0"}]}]}], r"detail\[0\].gpus"),
        ([{"jobid": 7, "attempts": []}], r"\[0\].jobid'.*expected text"),
        ([{"jobid": "a", "attempts": [], "submitted_time": "yesterday"}], "row 1, field 'submit_time'.*not a time"),
        (["jobid", "attempts"], r"\[0\]'.*expected an object"),
    ],
)
def test_a_log_of_another_shape_is_one_clear_error(tmp_path, jobs, message):
    with pytest.raises(InputError, match=message):
        log_of(tmp_path, jobs)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_no_damage_to_a_log_is_more_than_an_input_error(tmp_path, data):
    path = tmp_path / "cluster_job_log"
    path.write_text(json.dumps(data.draw(mutated(philly.JOBS))))
    try:
        meta = ingest([path], options=Options(format="philly", lenient=data.draw(st.booleans()))).meta
    except InputError:
        return
    assert meta.rows_read == meta.rows_kept + meta.rows_dropped
    assert 0 <= meta.rows_dropped <= meta.rows_read
