"""Slurm accounting: ids, steps, arrays, requeues, and requests per node."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gputwin.core.errors import InputError, UserError
from gputwin.traces.dataset import Trace
from gputwin.traces.describe import describe
from gputwin.traces.ingest import Options, ingest
from gputwin.traces.lifetimes import held
from gputwin.traces.readers.slurm.names import expand_array, expand_hosts
from tests.traces.samples import slurm


def text_of(folder: Path, header: str, *lines: str, lenient: bool = False) -> Trace:
    path = folder / "sacct.txt"
    path.write_text("\n".join((header, *lines)) + "\n")
    return ingest([path], options=Options(lenient=lenient))


def task_of(trace: Trace, job_id: str, role: str = "main") -> dict[str, object]:
    return trace.tasks.row(by_predicate=(pl.col("job_id") == job_id) & (pl.col("role") == role), named=True)


def counts(trace: Trace) -> dict[str, int]:
    return {f.rule: f.count for f in trace.meta.findings}


@pytest.fixture
def sample(tmp_path: Path) -> Trace:
    return ingest(slurm.write(tmp_path))


def test_steps_are_folded_into_their_job(sample):
    assert sample.tasks.filter(pl.col("job_id") == "101").height == 1
    assert (sample.meta.rows_read, sample.meta.rows_kept) == (11, 11)


def test_a_step_without_its_job_is_dropped_and_counted(tmp_path):
    trace = text_of(tmp_path, "JobID|State", "1|COMPLETED", "1.batch|COMPLETED", "2.0|COMPLETED")
    assert trace.tasks["job_id"].to_list() == ["1"]
    assert counts(trace)["F07"] == trace.meta.rows_dropped == 1


def test_a_request_is_per_node(sample):
    job = task_of(sample, "101")
    assert (job["instances"], job["cpu_milli"], job["memory_mib"], job["gpu_count"]) == (2, 32_000, 256_000, 8)
    assert (job["gpu_models_allowed"], job["gpu_model"]) == ("a100", "a100")
    assert job["requested_seconds"] == 86_400
    assert sample.instances.filter(pl.col("job_id") == "101")["node_id"].to_list() == ["gpu01", "gpu02"]


def test_instances_are_counted_whether_they_ran_or_not_and_their_records_apart(sample):
    facts = describe(sample)
    # 101 and 106 have two each, the other eight tasks one; five tasks never ran, and one ran twice.
    assert (facts.tasks, facts.instances, facts.instance_records) == (10, 12, 7)


def test_requeues_are_attempts(sample):
    job = task_of(sample, "102")
    assert (job["attempts"], job["status"]) == (2, "failed")
    assert (job["submit_time"], job["start_time"], job["end_time"]) == (60, 300, 9000)
    assert job["duration_seconds"] == 600 + 7200
    assert sample.instances.filter(pl.col("job_id") == "102")["instance_id"].to_list() == ["1/gpu03", "2/gpu04"]
    assert "Q32" not in counts(sample)


def test_a_pending_array_is_one_task_per_number(sample):
    tasks = sample.tasks.filter(pl.col("group") == "103")
    assert tasks["job_id"].to_list() == ["103_1", "103_2", "103_3", "103_4"]
    assert tasks["status"].to_list() == ["running", "waiting", "waiting", "waiting"]
    assert tasks["instances"].to_list() == [1, 1, 1, 1]


def test_a_job_cancelled_in_the_queue_never_started(sample):
    job = task_of(sample, "104")
    assert (job["status"], job["start_time"], job["duration_seconds"]) == ("cancelled", None, None)


def test_parts_of_a_heterogeneous_job_are_its_roles(sample):
    assert task_of(sample, "105", "het0")["gpu_count"] == 0
    assert task_of(sample, "105", "het1")["gpu_count"] == 2


def test_what_runs_has_no_end(sample):
    job = task_of(sample, "103_1")
    assert (job["is_running"], job["end_time"], job["duration_seconds"]) == (True, None, None)


def test_amounts_that_do_not_divide_are_rounded_up_and_counted(tmp_path):
    trace = text_of(tmp_path, "JobID|State|ReqTRES", "1|PENDING|cpu=64,mem=100M,node=3,gres/gpu=10")
    job = task_of(trace, "1")
    assert (job["cpu_milli"], job["memory_mib"], job["gpu_count"]) == (21_334, 34, 4)
    assert [f.detail for f in trace.meta.findings if f.rule == "F10"] == [
        "cpu_milli over its nodes",
        "memory_mib over its nodes",
        "gpu_count over its nodes",
    ]


@pytest.mark.parametrize(
    ("cell", "mib"), [("4000Mc", 16_000), ("4Gn", 4096), ("16G", 8192), ("0n", None), ("2048", 1024), ("?", None)]
)
def test_memory_of_older_fields(tmp_path, cell, mib):
    line = f"1|COMPLETED|8|2|{cell}"
    trace = text_of(tmp_path, "JobID|State|ReqCPUS|NNodes|ReqMem", line, lenient=cell == "?")
    job = task_of(trace, "1")
    assert (job["instances"], job["cpu_milli"], job["memory_mib"]) == (2, 4000, mib)
    assert job["gpu_count"] is None


def test_the_nodes_it_got_count_before_the_nodes_it_asked_for(tmp_path):
    """`sbatch -n 64` asks for one node at least, and may get four."""
    line = "1|COMPLETED|cpu=64,mem=64G,node=1|cpu=64,mem=64G,node=4"
    job = task_of(text_of(tmp_path, "JobID|State|ReqTRES|AllocTRES", line), "1")
    assert (job["instances"], job["cpu_milli"], job["memory_mib"]) == (4, 16_000, 16_384)


def test_restarts_count_where_earlier_records_are_hidden(tmp_path):
    line = "1|COMPLETED|2024-01-01T00:00:00|2024-01-01T00:00:10|2024-01-01T00:00:20|2"
    assert task_of(text_of(tmp_path, "JobID|State|Submit|Start|End|Restarts", line), "1")["attempts"] == 3


def test_copies_of_a_record_are_dropped_in_favour_of_the_most_advanced(tmp_path):
    header = "JobID|State|Submit|Start|End|ElapsedRaw"
    trace = text_of(
        tmp_path,
        header,
        "1|COMPLETED|2024-01-01T00:00:00|2024-01-01T00:00:10|2024-01-01T00:00:20|10",
        "1|RUNNING|2024-01-01T00:00:00|2024-01-01T00:00:10|Unknown|5",
        header,
        "1_[1-2]|PENDING|2024-01-01T00:00:00|Unknown|Unknown|0",
        "1_1|COMPLETED|2024-01-01T00:00:00|2024-01-01T00:00:10|2024-01-01T00:00:20|10",
    )
    assert task_of(trace, "1")["status"] == "completed"
    assert task_of(trace, "1_1")["status"] == "completed"
    assert task_of(trace, "1_2")["status"] == "waiting"
    assert (trace.meta.rows_read, trace.meta.rows_dropped) == (4, 1)


def test_a_requeued_record_has_run(tmp_path):
    trace = text_of(
        tmp_path,
        "JobID|State|Submit|Start|End|ElapsedRaw|NodeList",
        "1|REQUEUED|2024-01-01T00:00:00|2024-01-01T00:00:10|2024-01-01T00:00:20|10|n1",
        "1|PENDING|2024-01-01T00:00:20|Unknown|Unknown|0|None assigned",
    )
    job = task_of(trace, "1")
    assert (job["status"], job["attempts"], job["start_time"], job["end_time"]) == ("waiting", 1, 10, None)
    assert trace.instances.height == 1


def test_several_files_are_one_history(tmp_path):
    header = "JobID|Cluster|State"
    (tmp_path / "a.txt").write_text(f"{header}\n1|east|COMPLETED\n")
    (tmp_path / "b.txt").write_text(f"{header}\n1|west|FAILED\n2|west|FAILED\n")
    trace = ingest([tmp_path / "a.txt", tmp_path / "b.txt"])
    assert trace.tasks["job_id"].to_list() == ["east/1", "west/1", "west/2"]


def test_times_may_be_unix_seconds_and_lines_may_end_in_a_bar(tmp_path):
    trace = text_of(tmp_path, "JobID|State|Submit|Start|End|", "1|COMPLETED|1706702400|1706702410|1706702420|")
    assert trace.meta.origin_unix_seconds == 1_706_702_400
    assert task_of(trace, "1")["end_time"] == 20


def test_a_cut_list_of_array_tasks_is_reported(tmp_path):
    trace = text_of(tmp_path, "JobID|State", "7_[1,3,5-...]|PENDING")
    assert trace.tasks["job_id"].to_list() == ["7_1", "7_3", "7_5"]
    assert counts(trace)["F24"] == 1


def test_resources_without_a_column_are_reported(tmp_path):
    trace = text_of(tmp_path, "JobID|State|ReqTRES", "1|PENDING|billing=4,cpu=1,gres/shard=2,license/ansys=1,node=1")
    assert [(f.rule, f.detail) for f in trace.meta.findings] == [("F21", "gres/shard, license/ansys")]


def test_unknown_states_and_columns_are_reported(tmp_path):
    trace = text_of(tmp_path, "JobID|State|Mood", "1|DREAMING|fine")
    assert counts(trace) == {"F02": 1, "F08": 1}


def test_a_bar_in_a_name_is_an_error_that_says_where(tmp_path):
    lines = ("JobID|JobName|State", "1|a|COMPLETED", "2|a|b|COMPLETED")
    with pytest.raises(InputError, match=r"row 3: 4 fields instead of 3.*--lenient"):
        text_of(tmp_path, *lines)
    trace = text_of(tmp_path, *lines, lenient=True)
    assert (trace.tasks.height, trace.meta.rows_dropped) == (1, 1)


@pytest.mark.parametrize(
    ("header", "line", "message"),
    [
        ("JobID|State", "abc|COMPLETED", r"row 2, field 'JobID': 'abc' is not a job id"),
        ("JobID|Submit", "1|yesterday", r"row 2, field 'Submit': 'yesterday' is not a time"),
        ("JobID|ReqTRES", "1|cpu=four", r"row 2, field 'ReqTRES': 'cpu=four' is not a list of resources"),
        ("JobID|Elapsed", "1|long", r"field 'Elapsed': 'long' is not a duration"),
        ("JobID|Priority", "1|high", r"field 'Priority': 'high' is not a number"),
        ("JobID|NodeList", "1|gpu[1-", r"field 'NodeList'.*not a list of nodes"),
        ("JobID|State", "1_[0-99999999]|PENDING", r"field 'JobID'.*not a list of array tasks"),
        ("JobID|State", "1.batch|COMPLETED", "steps but no jobs"),
    ],
)
def test_a_bad_cell_is_named(tmp_path, header, line, message):
    with pytest.raises(InputError, match=message):
        text_of(tmp_path, header, line)


def test_host_lists_and_ranges():
    assert expand_hosts("gpu[01-03,07],login1") == ["gpu01", "gpu02", "gpu03", "gpu07", "login1"]
    assert expand_hosts("r[1-2]n[3-4]-ib") == ["r1n3-ib", "r1n4-ib", "r2n3-ib", "r2n4-ib"]
    assert expand_array("0-20:10,5%2") == ["0", "10", "20", "5"]
    for bad in ("", "a[", "a]", "a[3-1]", "a[1-9999999999]", "a[1-9999]b[1-9999]"):
        with pytest.raises(UserError):
            expand_hosts(bad)


_CELL = st.sampled_from(
    ["", "x", "-1", "nan", "1e300", "9" * 25, "1_[1-3]", "5+1", "7.0", "cpu=", "node=0", "a[1-", "Unknown", "2K", "|"]
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 14), _CELL), min_size=1, max_size=4), st.booleans())
def test_no_damage_to_a_table_is_more_than_an_input_error(tmp_path, damage, lenient):
    rows = [line.split("|") for line in slurm.LINES]
    for row, column, cell in damage:
        rows[row][column] = cell
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join([slurm.HEADER, *("|".join(row) for row in rows)]) + "\n")
    try:
        meta = ingest([path], options=Options(lenient=lenient)).meta
    except InputError:
        return
    assert meta.rows_read == meta.rows_kept + meta.rows_dropped
    assert 0 <= meta.rows_dropped <= meta.rows_read


def test_squeue_is_read_like_sacct_and_its_foresight_is_not_taken_for_fact(tmp_path: Path) -> None:
    trace = text_of(
        tmp_path,
        "JOBID   |USER|STATE  |SUBMIT_TIME        |START_TIME         |END_TIME           |TIME_LIMIT|NODES|TRES_ALLOC|",
        "7       |ada |RUNNING|2026-03-01T10:00:00|2026-03-01T10:05:00|2026-03-01T11:05:00|1:00:00   |2    |gres/gpu=8|",
        "8_[1-2] |bob |PENDING|2026-03-01T10:06:00|2026-03-01T11:05:00|2026-03-02T11:05:00|1-00:00:00|1    |gres/gpu=4|",
    )
    runs, first, second = (task_of(trace, name) for name in ("7", "8_1", "8_2"))
    assert (runs["status"], runs["is_running"], runs["instances"], runs["gpu_count"]) == ("running", True, 2, 4)
    assert runs["end_time"] is None
    for waits in (first, second):
        assert (waits["status"], waits["start_time"], waits["end_time"]) == ("waiting", None, None)
        assert waits["requested_seconds"] == 86400.0


def test_wall_times_are_those_of_the_zone_that_is_given(tmp_path):
    """The night in which Berlin's clocks skip an hour: from 00:30 to 04:30 on the clock three hours pass."""
    path = tmp_path / "sacct.txt"
    path.write_text(
        "JobID|State|Submit|Start|End\n"
        "1|COMPLETED|2024-03-31T00:30:00|2024-03-31T00:30:00|2024-03-31T04:30:00\n"
        "2|COMPLETED|1711845000|1711845000|1711848600\n"
    )
    here = ingest([path], options=Options(zone="Europe/Berlin"))
    assert (here.meta.zone, here.meta.origin_unix_seconds) == ("Europe/Berlin", 1711841400)
    assert task_of(here, "1")["duration_seconds"] == 3 * 3600
    # Unix seconds name their instant, whatever the zone.
    assert task_of(here, "2")["submit_time"] == 3600
    without = ingest([path])
    assert (without.meta.zone, task_of(without, "1")["duration_seconds"]) == ("UTC", 4 * 3600)


def test_a_zone_is_refused_where_times_do_not_depend_on_one(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text("; Version: 2.2\n1 0 10 3600 8 -1 -1 8 7200 -1 1 1 1 1 1 1 -1 -1\n")
    with pytest.raises(UserError, match="--zone Europe/Berlin: the times of Standard Workload Format"):
        ingest([path], options=Options(zone="Europe/Berlin"))


@pytest.mark.parametrize(
    ("asked", "given", "expected"),
    [
        ("gres/gpu:1g.5gb=1", "gres/gpu:1g.5gb=1", (1, 143, 5120, None, None)),
        ("gres/gpu=2,gres/gpu:a100_3g.20gb=2", "", (2, 429, 20_480, "a100", None)),
        ("gres/gpu=1", "gres/gpu=1,gres/gpu:1g.10gb+me=1", (1, 143, 10_240, None, None)),
        ("gres/gpu:a30_mig_2g.12gb=1", "", (1, 500, 12_288, "a30", None)),
        ("gres/gpu=3,gres/gpu:1g.5gb=2", "", (3, 429, 5120, None, None)),
        ("gres/gpu:a100=4", "gres/gpu:a100=4", (4, None, None, "a100", "a100")),
    ],
)
def test_a_mig_instance_is_a_part_of_a_gpu_and_no_model(tmp_path, asked, given, expected):
    trace = text_of(
        tmp_path,
        "JobID|State|ReqTRES|AllocTRES",
        f"1|COMPLETED|cpu=4,mem=8G,node=1,{asked}|{given and f'node=1,{given}'}",
    )
    job = task_of(trace, "1")
    told = ("gpu_count", "gpu_milli", "gpu_memory_mib", "gpu_models_allowed", "gpu_model")
    assert tuple(job[name] for name in told) == expected


def test_gpu_hours_of_a_mig_instance_are_those_of_its_slices(tmp_path):
    trace = text_of(
        tmp_path,
        "JobID|State|Submit|Start|End|ElapsedRaw|ReqTRES",
        "1|COMPLETED|2024-03-01T00:00:00|2024-03-01T00:00:00|2024-03-01T10:00:00|36000|cpu=4,node=1,gres/gpu:1g.5gb=2",
    )
    assert held(trace.tasks).gpu_hours == pytest.approx(2 * 10 / 7, rel=0.002)
