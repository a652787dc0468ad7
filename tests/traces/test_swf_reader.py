"""Standard Workload Format: fields, header comments, and what is odd in real logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gputwin.core.errors import InputError
from gputwin.traces.dataset import Trace
from gputwin.traces.ingest import Options, ingest
from tests.traces.samples import swf

JOB = "1 0 10 3600 4 -1 -1 4 7200 -1 1 3 1 5 1 -1 -1 -1"


def log_of(folder: Path, *lines: str, lenient: bool = False) -> Trace:
    path = folder / "log.swf"
    path.write_bytes("\n".join(lines).encode("latin-1") + b"\n")
    return ingest([path], options=Options(lenient=lenient))


def test_a_job_of_processors_is_a_gang_of_cores(tmp_path):
    task = ingest(swf.write(tmp_path)).tasks.row(0, named=True)
    assert (task["instances"], task["cpu_milli"], task["gpu_count"]) == (4, 1000, 0)
    assert (task["memory_mib"], task["requested_seconds"]) == (4, 7200)
    assert (task["start_time"], task["end_time"], task["duration_seconds"]) == (10, 3610, 3600)
    assert (task["user"], task["tenant"], task["application"], task["qos"]) == ("3", "1", "5", "1")


def test_allocated_processors_stand_in_for_unknown_requested_ones(tmp_path):
    assert ingest(swf.write(tmp_path)).tasks["instances"].to_list()[1] == 2


def test_the_header_gives_clock_zone_and_nodes(tmp_path):
    trace = ingest(swf.write(tmp_path))
    assert (trace.meta.clock, trace.meta.zone) == ("absolute", "Europe/Paris")
    assert trace.meta.origin_unix_seconds == 1_232_982_019
    assert trace.nodes["cpu_milli"].to_list() == [3000, 3000, 2000]


def test_without_a_start_time_only_differences_count(tmp_path):
    trace = log_of(tmp_path, JOB)
    assert (trace.meta.clock, trace.meta.origin_unix_seconds) == ("relative", None)
    assert not trace.has("nodes")


def test_a_job_cancelled_in_the_queue_never_started(tmp_path):
    job = ingest(swf.write(tmp_path)).tasks.row(2, named=True)
    assert (job["status"], job["start_time"], job["duration_seconds"]) == ("cancelled", None, None)


def test_partial_lines_are_attempts_of_their_job(tmp_path):
    trace = ingest(swf.write(tmp_path))
    assert trace.tasks["attempts"].to_list() == [None, None, None, 2]
    assert trace.meta.rows_read == trace.meta.rows_kept == 6


def test_a_partial_line_without_its_job_is_dropped_and_counted(tmp_path):
    trace = log_of(tmp_path, JOB, "7 0 10 100 4 -1 -1 4 -1 -1 2 3 1 5 1 -1 -1 -1")
    assert trace.tasks.height == 1
    assert [(f.rule, f.count) for f in trace.meta.findings] == [("F07", 1)]
    assert trace.meta.rows_dropped == 1


def test_comments_in_latin_1_and_unknown_zones_do_no_harm(tmp_path):
    trace = log_of(tmp_path, "; Computer: Zürich", "; TimeZoneString: Mars/Olympus", JOB)
    assert trace.meta.zone == "UTC"
    assert [f.rule for f in trace.meta.findings] == ["F08"]


def test_a_line_of_another_width_is_an_error_or_dropped(tmp_path):
    with pytest.raises(InputError, match=r"row 2: 3 fields instead of 18"):
        log_of(tmp_path, JOB, "1 2 3")
    trace = log_of(tmp_path, JOB, "1 2 3", lenient=True)
    assert (trace.tasks.height, trace.meta.rows_dropped) == (1, 1)


def test_a_field_that_is_no_number_is_named(tmp_path):
    with pytest.raises(InputError, match=r"row 1, field 'run': 'long' is not a number"):
        log_of(tmp_path, JOB.replace("3600", "long"))


def test_an_empty_log_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no jobs"):
        log_of(tmp_path, "; Version: 2.2")


def test_an_absurd_header_makes_no_nodes(tmp_path):
    trace = log_of(tmp_path, "; MaxNodes: 999999999999", JOB)
    assert not trace.has("nodes")
    assert [f.rule for f in trace.meta.findings] == ["F11"]


_CELL = st.sampled_from(["-1", "0", "x", "nan", "inf", "1e300", "5", "-7", "99999999999999999999", ";", ""])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 17), _CELL), max_size=4), st.booleans())
def test_no_damage_to_a_line_is_more_than_an_input_error(tmp_path, damage, lenient):
    fields = JOB.split()
    for place, cell in damage:
        fields[place] = cell
    path = tmp_path / "log.swf"
    path.write_text(f"{JOB}\n{' '.join(fields)}\n")
    try:
        meta = ingest([path], options=Options(format="swf", lenient=lenient)).meta
    except InputError:
        return
    assert meta.rows_read == meta.rows_kept + meta.rows_dropped
