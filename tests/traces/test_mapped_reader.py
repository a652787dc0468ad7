"""A log of one's own: whatever of the usual forms its cells have, the trace is the same, and mistakes are named."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gputwin.core.errors import UserError
from gputwin.traces.cells import parse_span
from gputwin.traces.dataset import Trace
from gputwin.traces.ingest import Options, ingest
from gputwin.traces.readers.mapped import parse_map

SUBMIT = datetime(2024, 3, 1, 10, 0, tzinfo=UTC)
START = SUBMIT + timedelta(minutes=5)
END = START + timedelta(days=1, hours=2, minutes=3, seconds=4)
RAN = (END - START).total_seconds()


def read(folder: Path, text: str | bytes, mapping: str, file: str = "jobs.csv", **options: object) -> Trace:
    path = folder / file
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return ingest([path], options=Options(mapping=parse_map(mapping), **options))  # type: ignore[arg-type]


def refusal(folder: Path, text: str, mapping: str, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        read(folder, text, mapping, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def unix(moment: datetime, unit: float = 1.0) -> str:
    return f"{moment.timestamp() / unit:.0f}"


@pytest.mark.parametrize(
    ("submit", "start", "zone"),
    [
        (unix(SUBMIT), unix(START), None),
        (unix(SUBMIT, 1e-3), unix(START, 1e-3), None),
        (unix(SUBMIT, 1e-6), unix(START, 1e-6), None),
        (unix(SUBMIT, 1e-9), unix(START, 1e-9), None),
        (unix(SUBMIT), "2024-03-01T10:05:00Z", None),
        ("2024-03-01T10:00:00Z", "2024-03-01T10:05:00+00:00", None),
        ("2024-03-01T11:00:00+01:00", "2024-03-01 10:05:00.000 UTC", None),
        ("2024-03-01 10:00:00", "2024-03-01T10:05", "UTC"),
        ("2024-03-01 11:00:00", "2024-03-01T11:05:00", "Europe/Berlin"),
        ("2024/03/01 18:00:00", "2024-03-01 18:05:00 +0800", "Asia/Shanghai"),
    ],
)
def test_times_mean_the_same_however_they_are_written(tmp_path, submit, start, zone):
    trace = read(tmp_path, f"id,a,b\n1,{submit},{start}\n", "job_id=id,submit=a,start=b", zone=zone)
    assert trace.meta.clock == "absolute"
    assert trace.meta.origin_unix_seconds == SUBMIT.timestamp()
    assert trace.tasks.select("submit_time", "start_time").row(0) == (0.0, 300.0)
    assert not [f for f in trace.meta.findings if f.rule == "F25"]


def test_a_zone_that_nobody_names_is_utc_and_reported(tmp_path):
    trace = read(tmp_path, "id,a\n1,2024-03-01 10:00:00\n", "job_id=id,submit=a")
    assert trace.meta.origin_unix_seconds == SUBMIT.timestamp()
    assert [(f.rule, f.detail) for f in trace.meta.findings] == [("F25", "a")]


def test_an_hour_that_occurs_twice_is_counted(tmp_path):
    text = "id,a\n1,2024-10-27 02:30:00\n2,2024-10-27 12:00:00\n"
    trace = read(tmp_path, text, "job_id=id,submit=a", zone="Europe/Berlin")
    assert [(f.rule, f.count) for f in trace.meta.findings] == [("F09", 1)]


def test_a_format_of_its_own_is_followed(tmp_path):
    trace = read(tmp_path, "id,when\n1,01/03/2024 10:00\n2,02/03/2024 10:00\n", "job_id=id,submit=when:%d/%m/%Y %H:%M")
    assert trace.tasks["submit_time"].to_list() == [0.0, 86400.0]


def test_small_numbers_count_from_a_start_of_their_own(tmp_path):
    trace = read(tmp_path, "id,t,d\n1,0,10\n2,2500,10\n", "job_id=id,submit=t:ms,duration=d")
    assert trace.meta.clock == "relative"
    assert trace.tasks["submit_time"].to_list() == [0.0, 2.5]


def test_dates_and_small_numbers_do_not_mix(tmp_path):
    message = refusal(tmp_path, "id,a,b\n1,2024-03-01T10:00:00Z,12\n", "job_id=id,submit=a,start=b")
    assert "'b'" in message
    assert "seconds from a start" in message


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:10:00", 600),
        ("10:00", 600),
        ("1-02:03:04", RAN),
        ("1-02", 26 * 3600),
        ("1 day, 2:03:04", RAN),
        ("1 days 02:03:04", RAN),
        ("2.5h", 9000),
        ("1h 30min", 5400),
        ("1h30m", 5400),
        ("PT1H30M", 5400),
        ("P1DT2H3M4S", RAN),
        ("90 seconds", 90),
        ("1500ms", 1.5),
        ("h", None),
        ("5 parsecs", None),
        ("1:2:3:4", None),
        ("5h junk", None),
        ("", None),
    ],
)
def test_durations_in_their_usual_forms(text, seconds):
    try:
        found = parse_span(text)
    except UserError:
        found = None
    assert found == seconds


@pytest.mark.parametrize(
    "given",
    [
        ("start,duration", f"{unix(START)},{RAN:.0f}"),
        ("start,end", f"{unix(START)},{unix(END)}"),
        ("wait,duration", "00:05:00,1-02:03:04"),
        ("wait,end", f"5m,{unix(END)}"),
        ("end,duration", f"{unix(END)},1-02:03:04"),
        ("start,end,duration", f"{unix(START)},{unix(END)},{RAN:.0f}"),
    ],
    ids=lambda given: given[0],
)
def test_start_and_end_follow_from_what_is_there(tmp_path, given):
    names, cells = given
    mapping = ",".join(["job_id=id", "submit=submit", *(f"{n}={n}" for n in names.split(","))])
    trace = read(tmp_path, f"id,submit,{names}\n1,{unix(SUBMIT)},{cells}\n", mapping)
    assert trace.tasks.select("submit_time", "start_time", "end_time").row(0) == (0.0, 300.0, 300.0 + RAN)
    assert not trace.tasks["is_running"][0]


def test_an_empty_end_is_a_job_that_runs_unless_its_status_says_otherwise(tmp_path):
    text = "id,s,e,state\n1,1709287200,,\n2,1709287200,,Completed\n3,1709287200,1709287300,RUNNING\n"
    tasks = read(tmp_path, text, "job_id=id,start=s,end=e,status=state").tasks.sort("job_id")
    assert tasks["is_running"].to_list() == [True, False, True]
    assert tasks["end_time"].to_list() == [None, None, None]
    assert tasks["status"].to_list() == ["running", "completed", "running"]


def test_amounts_with_units(tmp_path):
    text = "id,t,cpu,mem,disk,gmem\n1,0,500m,8Gi,1TB,16 GiB\n2,0,2,16GB,1Ti,81920MiB\n"
    mapping = "job_id=id,submit=t,cpus=cpu,memory=mem,disk=disk,gpu_memory=gmem"
    tasks = read(tmp_path, text, mapping).tasks.sort("job_id")
    assert tasks["cpu_milli"].to_list() == [500, 2000]
    assert tasks["memory_mib"].to_list() == [8192, 15259]
    assert tasks["disk_mib"].to_list() == [953675, 1 << 20]
    assert tasks["gpu_memory_mib"].to_list() == [16384, 81920]


def test_a_unit_in_the_mapping_or_the_columns_name_holds_for_bare_numbers(tmp_path):
    text = "id,t,mem,ram_gb,cpu\n1,0,512,0.5,150\n"
    said = read(tmp_path, text, "job_id=id,submit=t,memory=mem:MiB,cpus=cpu:%").tasks
    named = read(tmp_path, text, "job_id=id,submit=t,memory=ram_gb").tasks
    assert (said["memory_mib"][0], said["cpu_milli"][0]) == (512, 1500)
    assert named["memory_mib"][0] == 477


def test_a_size_without_a_unit_is_refused(tmp_path):
    message = refusal(tmp_path, "id,t,mem\n1,0,0\n2,0,512\n", "job_id=id,submit=t,memory=mem", lenient=True)
    assert "row 3, field 'mem': '512' has no unit" in message
    assert "memory=mem:GiB" in message


@pytest.mark.parametrize(
    ("mapping", "shape"),
    [
        ("gpus=g", [(1, 1, 500), (1, 3, 833), (4, 8, 1000), (3, 4, 1000), (1, 0, 0)]),
        ("total_gpus=g", [(1, 1, 500), (1, 3, 833), (4, 2, 1000), (4, 1, 1000), (1, 0, 0)]),
    ],
)
def test_gpus_of_an_instance_and_of_a_job(tmp_path, mapping, shape):
    text = "id,t,n,g\n1,0,1,0.5\n2,0,1,2.5\n3,0,4,8\n4,0,3,4\n5,0,,0\n"
    tasks = read(tmp_path, text, f"job_id=id,submit=t,instances=n,{mapping}").tasks.sort("job_id")
    assert tasks.select("instances", "gpu_count", "gpu_milli").rows() == shape


def test_a_fixed_value_and_rows_without_an_id(tmp_path):
    tasks = read(tmp_path, "t\n5\n7\n", "submit=t,gpu_model==A100, 80GB,gpus==1").tasks
    assert tasks["job_id"].to_list() == ["row-2", "row-3"]
    assert tasks["gpu_model"].unique().to_list() == ["A100, 80GB"]
    assert tasks["gpu_count"].to_list() == [1, 1]


def test_words_for_a_status(tmp_path):
    text = "id,t,s\n1,0,SUCCEEDED\n2,0,CANCELLED by 1000\n3,0,bogus\n4,0,Pending\n5,0,OUT_OF_MEMORY\n6,0,\n"
    trace = read(tmp_path, text, "job_id=id,submit=t,status=s")
    words = trace.tasks.sort("job_id")["status"].to_list()
    assert words == ["completed", "cancelled", "unknown", "waiting", "failed", "unknown"]
    assert [(f.rule, f.count) for f in trace.meta.findings if f.rule == "F08"] == [("F08", 1)]


def test_requests_of_ones_own(tmp_path):
    path = tmp_path / "r.csv"
    path.write_text("ts,client,prompt,answer,latency_ms\n1709287200,a,100,5,250\n1709287201,b,7,1,\n")
    mapping = parse_map(
        "submit=ts,user=client,input_tokens=prompt,output_tokens=answer,duration=latency_ms", "requests"
    )
    requests = ingest([path], options=Options(mapping=mapping)).requests
    assert requests["duration_seconds"].to_list() == [0.25, None]
    assert requests["input_tokens"].to_list() == [100, 7]


@pytest.mark.parametrize(
    ("text", "mapping", "says"),
    [
        ("id,t\n1,0\n2,soon\n", "job_id=id,submit=t", ("jobs.csv, row 3, field 't'", "'soon' is not a time")),
        ("id,t,d\n1,0,5x\n", "job_id=id,submit=t,duration=d", ("row 2, field 'd'", "'5x' is not a duration")),
        ("id,t,m\n1,0,8 pounds\n", "job_id=id,submit=t,memory=m", ("row 2, field 'm'", "is not a size")),
        ("id,t,g\n1,0,many\n", "job_id=id,submit=t,gpus=g", ("row 2, field 'g'", "is not a number of GPUs")),
        ("id,t\n1,0\n", "job_id=id,submit=tt", ("column 'tt' is missing", "the file has id, t")),
        ("id,t\n1,0\n", "job_id=id", ("names no time",)),
        ("id,t\n1,0\n", "job_id=id,sumbit=t", ("no field 'sumbit'", "did you mean 'submit'")),
        ("id,t\n1,0\n", "submit", ("is not FIELD=COLUMN",)),
        ("id,t\n1,0\n", "submit=t,submit=id", ("twice",)),
        ("id,t\n1,0\n", "submit=t,gpus=id,total_gpus=id", ("keep one",)),
    ],
)
def test_a_mistake_is_one_line_with_file_row_and_field(tmp_path, text, mapping, says):
    message = refusal(tmp_path, text, mapping)
    assert all(part in message for part in says), message


def test_lenient_makes_such_cells_unknown_and_counts_them(tmp_path):
    trace = read(tmp_path, "id,t,d\n1,0,5x\n2,9,10\n", "job_id=id,submit=t,duration=d", lenient=True)
    assert trace.tasks["duration_seconds"].to_list() == [None, 10.0]
    assert [(f.rule, f.count, f.detail) for f in trace.meta.findings] == [("F03", 1, "d")]


def test_columns_left_out_on_purpose_are_no_finding(tmp_path):
    trace = read(tmp_path, "id,t,note\n1,0,x\n", "job_id=id,submit=t", strict=True)
    assert trace.meta.findings == ()
