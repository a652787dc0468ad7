from __future__ import annotations

import gzip
import itertools
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from gputwin.core.errors import InputError
from gputwin.traces.dataset import Trace
from gputwin.traces.ingest import Options, ingest
from gputwin.traces.measures import WAIT
from gputwin.traces.quality import QualityLog
from gputwin.traces.readers.pai2020 import tables as pai2020_tables
from gputwin.traces.readers.pai2020.tables import SENSOR
from gputwin.traces.schema import TABLES as CANONICAL
from gputwin.traces.sources import gather
from gputwin.traces.tabular import read_csv, read_csv_parts
from tests.traces.samples.pai2020 import HEADERS, TABLES

TASK_MAKERS = {"pai_job_table", "pai_task_table", "pai_instance_table"}


def trace_of(folder: Path, options: Options | None = None, **tables: str) -> Trace:
    """Return the trace of tables given by name."""
    folder.mkdir(exist_ok=True)
    for name, text in tables.items():
        (folder / f"{name}.csv").write_text(text)
    return ingest([folder / f"{name}.csv" for name in tables], options=options)


def row(frame: pl.DataFrame, **key: str) -> dict[str, object]:
    return frame.row(by_predicate=pl.all_horizontal(pl.col(k) == v for k, v in key.items()), named=True)


def counts(trace: Trace, rule: str) -> dict[str, int]:
    return {f.table: f.count for f in trace.meta.findings if f.rule == rule}


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return trace_of(tmp_path, **TABLES)


@pytest.fixture(scope="session")
def pai(real_data: Path) -> Path:
    return real_data / "alibaba_v2020_pai"


# What a row of each table becomes.


def test_a_job_waits_from_its_start_to_the_earliest_start_of_its_tasks(trace):
    waits = trace.tasks.group_by("job_id").agg(WAIT.min())
    assert dict(waits.iter_rows()) == {"job-ps": 50.0, "job-tf": 10.0, "job-run": 5.0, "job-new": None}
    assert row(trace.tasks, job_id="job-ps", role="ps")["start_time"] == 1060.0


def test_a_task_carries_its_plan_in_our_units(trace):
    task = row(trace.tasks, job_id="job-ps", role="worker")
    assert (task["instances"], task["cpu_milli"], task["memory_mib"]) == (2, 6000, 30_000)
    assert (task["gpu_count"], task["gpu_milli"], task["gpu_model"]) == (1, 500, "T4")
    assert (task["status"], task["duration_seconds"], task["is_running"]) == ("completed", 840.0, False)


def test_a_task_that_plans_no_gpu_gets_none(trace):
    task = row(trace.tasks, job_id="job-ps", role="ps")
    assert (task["gpu_count"], task["gpu_milli"], task["gpu_model"]) == (0, 0, None)


def test_what_runs_at_the_end_has_neither_end_nor_duration(trace):
    task = row(trace.tasks, job_id="job-run", role="worker")
    assert (task["status"], task["end_time"], task["duration_seconds"]) == ("running", None, None)
    assert task["is_running"]
    assert not row(trace.instances, instance_id="tf-0")["is_running"]


@pytest.mark.parametrize(
    ("percent", "count", "milli", "is_rounded"),
    [
        ("", 0, 0, False),
        ("0.0", 0, 0, False),
        ("5.0", 1, 50, False),
        ("25.0", 1, 250, False),
        ("33.33", 1, 333, True),
        ("100.0", 1, 1000, False),
        ("150.0", 2, 750, False),
        ("250.0", 3, 833, True),
        ("800.0", 8, 1000, False),
    ],
)
def test_a_gpu_percentage_is_spread_evenly_over_as_few_devices_as_hold_it(tmp_path, percent, count, milli, is_rounded):
    trace = trace_of(tmp_path, pai_task_table=f"j,worker,1.0,Terminated,1.0,2.0,100.0,1.0,{percent},T4\n")
    assert trace.tasks.select("gpu_count", "gpu_milli").row(0) == (count, milli)
    assert counts(trace, "F10") == ({"tasks": 1} if is_rounded else {})


def test_no_share_exceeds_its_device_and_rounding_loses_less_than_a_milli_each(tmp_path):
    rows = [f"j{p},worker,1.0,Terminated,1.0,2.0,100.0,1.0,{p}.0,T4\n" for p in range(1, 1700)]
    tasks = trace_of(tmp_path, pai_task_table="".join(rows)).tasks
    percent = tasks["job_id"].str.slice(1).cast(pl.Int64)
    assert (tasks["gpu_milli"] <= 1000).all()
    assert ((tasks["gpu_count"] * tasks["gpu_milli"] - 10 * percent).abs() <= tasks["gpu_count"] / 2).all()


def test_an_instance_is_named_after_its_worker_and_keeps_its_own_times(trace):
    instance = row(trace.instances, instance_id="worker-1")
    assert (instance["job_id"], instance["role"], instance["node_id"]) == ("job-ps", "worker", "t4-node")
    assert (instance["submit_time"], instance["start_time"], instance["end_time"]) == (None, 1055.0, 1880.0)


def test_an_instance_that_waits_for_a_worker_is_named_after_itself(trace):
    instance = row(trace.instances, instance_id="inst-6")
    assert (instance["status"], instance["node_id"], instance["start_time"]) == ("waiting", None, None)


def test_a_sensor_row_is_what_an_instance_used(trace):
    seen = row(trace.usage, scope="instance", instance_id="worker-0")
    known = {name: value for name, value in seen.items() if value is not None}
    assert known == {
        "scope": "instance", "job_id": "job-ps", "role": "worker", "instance_id": "worker-0", "node_id": "t4-node",
        "device": "/dev/nvidia0", "cpu_milli": 1405.0, "gpu_milli": 160.625, "memory_mib": 1536.0,
        "memory_max_mib": 2304.0, "gpu_memory_mib": 1280.0, "gpu_memory_max_mib": 2432.0,
        "network_receive_bytes": 21271328.5, "network_send_bytes": 16376189.5, "network_receive_count": 2922.5,
        "network_send_count": 3419.5,
    }  # fmt: skip


def test_a_machine_metric_row_is_how_the_machine_stood_meanwhile(trace):
    seen = row(trace.usage, scope="node", instance_id="worker-0")
    known = {name: value for name, value in seen.items() if value is not None}
    assert known == {
        "scope": "node", "instance_id": "worker-0", "node_id": "t4-node", "start_time": 1050.0, "end_time": 1890.0,
        "cpu_percent": 18.5, "cpu_user_percent": 14.5, "cpu_kernel_percent": 3.5, "cpu_iowait_percent": 0.01,
        "gpu_percent": 87.75, "load_1min": 18.25, "network_receive_bytes": 111649584.25, "workers": 5.0,
    }  # fmt: skip


def test_usage_is_the_sensors_then_the_machines_in_file_order(trace):
    assert trace.usage["scope"].to_list() == ["instance"] * 6 + ["node"] * 5
    assert trace.usage["instance_id"].to_list()[5:8] == ["run-0", "ps-0", "ps-1"]


def test_a_machine_has_milli_cpus_and_mebibytes_and_a_cpu_machine_no_model(trace):
    columns = ("node_id", "gpu_model", "gpu_count", "cpu_milli", "memory_mib")
    assert trace.nodes.select(columns).rows()[:2] == [
        ("cpu-node", None, 0, 96_000, 524_288),
        ("t4-node", "T4", 2, 96_000, 524_288),
    ]


def test_the_clock_tells_shanghai_weekdays(trace):
    assert (trace.meta.clock, trace.meta.zone, trace.meta.origin_unix_seconds) == ("weekday", "Asia/Shanghai", 0.0)


def test_a_status_the_publisher_does_not_list_is_unknown_and_reported(tmp_path):
    instances = TABLES["pai_instance_table"].replace("Failed", "Exploded")
    trace = trace_of(tmp_path, pai_instance_table=instances)
    assert row(trace.instances, instance_id="tf-0")["status"] == "unknown"
    assert counts(trace, "F08") == {"pai_instance_table": 1}


def test_interrupted_is_cancelled(tmp_path):
    instances = TABLES["pai_instance_table"].replace("Failed", "Interrupted")
    trace = trace_of(tmp_path, pai_instance_table=instances)
    assert row(trace.instances, instance_id="tf-0")["status"] == "cancelled"


# How tables meet.


def test_group_tags_reach_the_tasks_of_their_job(trace):
    tagged = trace.tasks.select("job_id", "role", "group", "workload", "gpu_models_allowed")
    assert set(tagged.iter_rows()) == {
        ("job-ps", "ps", "group-a", "ctr", None),
        ("job-ps", "worker", "group-a", "ctr", None),
        ("job-tf", "tensorflow", "group-b", None, "T4"),
        ("job-run", "worker", "group-c", "bert", "V100"),
        ("job-new", "main", None, None, None),
    }


def test_tags_of_unknown_jobs_are_dropped_and_counted(tmp_path):
    tags = TABLES["pai_group_tag_table"] + "id-other,dora,,group-d,\nid-lost,dora,,group-d,\n"
    trace = trace_of(tmp_path, **TABLES | {"pai_group_tag_table": tags})
    assert counts(trace, "F07") == {"pai_group_tag_table": 2}
    assert trace.meta.rows_dropped == 2


def test_without_a_job_table_instances_tell_whose_the_tags_are(tmp_path):
    some = {name: TABLES[name] for name in ("pai_task_table", "pai_instance_table", "pai_group_tag_table")}
    tasks = trace_of(tmp_path, **some).tasks
    assert row(tasks, job_id="job-tf", role="tensorflow")["group"] == "group-b"
    assert row(tasks, job_id="job-tf", role="tensorflow")["user"] == "ben"


def test_with_neither_jobs_nor_instances_tags_belong_to_nobody(tmp_path):
    trace = trace_of(tmp_path, **{n: TABLES[n] for n in ("pai_task_table", "pai_group_tag_table")})
    assert counts(trace, "F07") == {"pai_group_tag_table": 3}
    with pytest.raises(InputError, match="add pai_job_table"):
        trace_of(tmp_path, pai_group_tag_table=TABLES["pai_group_tag_table"])


def test_the_job_tables_user_wins_over_the_tags(tmp_path):
    tags = TABLES["pai_group_tag_table"].replace("ben", "someone else")
    tasks = trace_of(tmp_path, **TABLES | {"pai_group_tag_table": tags}).tasks
    assert row(tasks, job_id="job-tf", role="tensorflow")["user"] == "ben"


def test_a_task_of_no_listed_job_has_no_submit_time(tmp_path):
    jobs = "\n".join(line for line in TABLES["pai_job_table"].splitlines() if "job-tf" not in line)
    tasks = trace_of(tmp_path, **TABLES | {"pai_job_table": jobs + "\n"}).tasks
    task = row(tasks, job_id="job-tf", role="tensorflow")
    assert (task["submit_time"], task["start_time"], task["user"]) == (None, 1110.0, None)


def test_a_job_without_tasks_stays_with_requests_unknown(trace):
    task = row(trace.tasks, job_id="job-new", role="main")
    assert (task["status"], task["submit_time"], task["user"]) == ("waiting", 1300.0, "cleo")
    unknown = ("start_time", "end_time", "duration_seconds", "cpu_milli", "memory_mib", "gpu_count", "gpu_milli")
    assert [task[name] for name in unknown] == [None] * len(unknown)


def test_a_job_listed_twice_does_not_double_its_tasks(tmp_path):
    jobs = TABLES["pai_job_table"] + "job-ps,id-ps,eve,Failed,7.0,8.0\n"
    trace = trace_of(tmp_path, **TABLES | {"pai_job_table": jobs})
    assert trace.tasks.height == 5
    assert row(trace.tasks, job_id="job-ps", role="ps")["user"] == "anna"
    assert counts(trace, "Q02") == {"pai_job_table": 1}


def test_without_a_task_table_tasks_are_what_their_instances_were(tmp_path):
    tasks = trace_of(tmp_path, pai_instance_table=TABLES["pai_instance_table"]).tasks
    life = tasks.sort("job_id", "role").select(
        "job_id", "role", "status", "start_time", "end_time", "is_running", "instances"
    )
    assert life.rows() == [
        ("job-ps", "ps", "completed", 1061.0, 1900.0, False, 2),
        ("job-ps", "worker", "completed", 1050.0, 1890.0, False, 2),
        ("job-run", "worker", "running", 1205.0, None, True, 2),
        ("job-tf", "tensorflow", "failed", 1110.0, None, False, 1),
    ]
    for request in ("cpu_milli", "memory_mib", "gpu_count", "gpu_milli", "gpu_model"):
        assert tasks[request].null_count() == tasks.height, request


def test_a_worker_that_serves_two_instances_loses_neither(tmp_path):
    instances = TABLES["pai_instance_table"] + (
        "job-ps,worker,inst-9,worker-1,id-ps,Terminated,1880.0,1890.0,t4-node\n"
        "job-ps,worker,inst-3,worker-1,id-ps,Terminated,1055.0,1880.0,t4-node\n"
    )
    trace = trace_of(tmp_path, **TABLES | {"pai_instance_table": instances})
    names = trace.instances.filter(pl.col("instance_id").str.starts_with("worker-1"))["instance_id"].to_list()
    assert names == ["worker-1", "worker-1/inst-9"]
    assert counts(trace, "Q02") == {"instances": 1}


@pytest.mark.parametrize("scope", ["instance", "node"])
def test_usage_meets_instances_one_to_one_by_worker_though_all_of_a_job_share_an_inst_id(tmp_path, scope):
    size = 100
    workers = [f"w-{i}" for i in range(size)]
    sensor = TABLES["pai_sensor_table"].splitlines()[0].split(",")[5:]
    metric = TABLES["pai_machine_metric"].splitlines()[0].split(",")[2:]
    trace = trace_of(
        tmp_path,
        pai_instance_table="".join(f"j,ps,i-{w},{w},id,Terminated,1.0,2.0,m\n" for w in workers),
        pai_sensor_table="".join(",".join(["j", "ps", w, "id", "m", *sensor]) + "\n" for w in workers),
        pai_machine_metric="".join(",".join([w, "m", *metric]) + "\n" for w in workers),
    )
    usage = trace.usage.filter(pl.col("scope") == scope)
    assert usage.join(trace.instances, on="instance_id", how="left").height == usage.height == size


# Which files make a trace.


def test_any_subset_of_the_tables_makes_a_trace(tmp_path):
    for size in range(1, len(TABLES) + 1):
        for names in itertools.combinations(TABLES, size):
            if names == ("pai_group_tag_table",):
                continue
            trace = trace_of(tmp_path, **{name: TABLES[name] for name in names})
            assert trace.meta.rows_read == sum(TABLES[name].count("\n") for name in names)
            assert trace.has("nodes") == ("pai_machine_spec" in names)
            assert trace.has("instances") == ("pai_instance_table" in names)
            # One job has no task yet, and another has two: four tasks, plus the job the others do not know.
            makers = TASK_MAKERS.intersection(names)
            assert trace.tasks.height == (5 if makers > {"pai_job_table"} else 4 if makers else 0), names


def test_a_header_line_and_several_files_of_a_table_make_no_difference(tmp_path, trace):
    folder = tmp_path / "with_header"
    folder.mkdir()
    for name, text in TABLES.items():
        first, rest = text.split("\n", 1)
        (folder / f"{name}.csv").write_text(f"{HEADERS[name]}\n{first}\n")
        (folder / f"{name}_rest.csv").write_text(rest)
    again = ingest([folder])
    assert again.meta.rows_read == trace.meta.rows_read
    for name in trace.meta.tables:
        assert_frame_equal(again.frame(name), trace.frame(name), check_exact=True)


def test_a_trace_has_the_same_fingerprint_in_memory_and_on_disk(tmp_path, trace):
    assert ingest(sorted(tmp_path.glob("*.csv")), tmp_path / "trace").meta.fingerprint == trace.meta.fingerprint


def test_a_table_read_in_parts_is_the_table(tmp_path):
    path = tmp_path / "pai_sensor_table.csv"
    path.write_text(TABLES["pai_sensor_table"])
    with gather([path]) as (source,):
        whole, apart = QualityLog(), QualityLog()
        parts = list(read_csv_parts(source, SENSOR, apart, rows=4))
        assert [part.height for part in parts] == [4, 2]
        assert_frame_equal(pl.concat(parts), read_csv(source, SENSOR, whole))
        assert apart.rows_read == whole.rows_read == 6


def test_parts_change_neither_the_trace_nor_what_is_found_wrong_with_it(tmp_path, monkeypatch):
    sensors = TABLES["pai_sensor_table"].replace(",52.5,", ",-1.0,").replace(",800.0,", ",-2.0,")
    whole = trace_of(tmp_path, **TABLES | {"pai_sensor_table": sensors})
    monkeypatch.setattr(pai2020_tables, "read_csv_parts", partial(read_csv_parts, rows=2))
    apart = ingest(sorted(tmp_path.glob("*.csv")), tmp_path / "trace")
    assert counts(whole, "Q20") == {"usage": 2}
    assert apart.meta.fingerprint == whole.meta.fingerprint
    assert apart.meta.findings == whole.meta.findings


def test_a_bad_cell_in_a_table_read_in_parts_is_named_or_made_unknown(tmp_path):
    sensors = TABLES["pai_sensor_table"].replace("640.25", "lots")
    with pytest.raises(InputError, match=r"row 6, field 'gpu_wrk_util': 'lots' is not a number"):
        trace_of(tmp_path, pai_sensor_table=sensors)
    trace = trace_of(tmp_path, Options(lenient=True), pai_sensor_table=sensors)
    assert trace.usage["gpu_milli"].null_count() == 3
    assert trace.usage.height == trace.meta.rows_read == 6


# The published files at hand.


def test_the_published_machines_have_6742_gpus(pai):
    nodes = ingest([pai / "pai_machine_spec.csv.gz"]).nodes
    assert (nodes.height, nodes["gpu_count"].sum(), nodes["gpu_model"].null_count()) == (1897, 6742, 83)


def test_the_tail_of_the_instance_table_is_kept_whole(pai):
    trace = ingest([pai / "pai_instance_table_tail_sample.csv.gz"])
    assert dict(trace.meta.tables) == {"tasks": 4269, "instances": 19_731}
    assert (trace.meta.rows_read, trace.meta.rows_dropped) == (19_731, 0)
    assert counts(trace, "F08") == {}


def test_the_joined_sample_falls_apart_into_its_tables(pai):
    trace = ingest([pai / "pai_joined_1000_sample.csv.gz"])
    assert dict(trace.meta.tables) == {"nodes": 540, "tasks": 963, "instances": 998, "usage": 999}
    assert (trace.meta.rows_read, trace.meta.rows_dropped) == (999, 0)
    assert trace.tasks["workload"].null_count() == 0
    assert trace.instances["start_time"].null_count() == 998
    with gzip.open(pai / "pai_joined_1000_sample.csv.gz") as file:
        raw = pl.read_csv(file.read())
    planned = raw.unique(["job_name", "task_name"]).select(pl.col("plan_gpu").sum())
    granted = trace.tasks.select((pl.col("gpu_count") * pl.col("gpu_milli")).sum())
    assert granted.item() == planned.item() * 10


def test_real_usage_meets_real_instances_one_to_one(pai):
    trace = ingest([pai / "pai_joined_1000_sample.csv.gz"])
    met = trace.usage.join(trace.instances, on=CANONICAL["instances"].key, how="inner")
    assert met.height == trace.usage.height


def test_the_folder_as_a_whole_counts_common_workers_once(pai):
    trace = ingest([pai])
    assert trace.meta.rows_read == 1897 + 19_731 + 999
    assert (trace.nodes.height, trace.usage.height) == (1897, 999)
    assert counts(trace, "Q02") == {"instances": 7}
    assert counts(trace, "Q30") == {}
    assert not trace.tasks.select("job_id", "role").is_duplicated().any()
