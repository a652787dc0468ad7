"""Usage from Prometheus: means per instance, samples per machine, attached to the jobs of a log."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from gputwin.cli.main import main
from gputwin.core.errors import InputError
from gputwin.traces.dataset import Trace
from gputwin.traces.ingest import Options, ingest
from gputwin.traces.readers.mapped import parse_map
from tests.traces.samples import kubernetes
from tests.traces.samples import prometheus as sample

T = 1709287200.0


def instances(trace: Trace) -> pl.DataFrame:
    return trace.usage.filter(pl.col("scope") == "instance")


def test_a_pods_use_is_the_mean_over_time_summed_over_its_gpus(tmp_path: Path) -> None:
    usage = instances(ingest(sample.write(tmp_path)))
    pod = usage.filter(pl.col("gpu_milli").is_not_null())
    # (50 + 70) / 2 % of one GPU and 20 % of the other: the sample that is no number does not count.
    assert pod.select("instance_id", "gpu_milli", "start_time", "end_time").rows() == [("train-0", 800.0, 0.0, 60.0)]
    # The total over containers would count the container twice.
    assert usage["memory_mib"].drop_nulls().to_list() == [1024.0]


def test_a_gpu_that_nobody_has_counts_for_its_machine(tmp_path: Path) -> None:
    usage = ingest(sample.write(tmp_path)).usage.filter(pl.col("scope") == "node")
    assert usage.select("node_id", "start_time", "end_time", "gpu_percent").rows() == [
        ("n1", 0.0, 60.0, 0.0),
        ("n1", 60.0, 120.0, 10.0),
    ]


def test_other_metrics_are_kept_as_series(tmp_path: Path) -> None:
    series = ingest(sample.write(tmp_path)).series
    assert series.rows() == [(0.0, "up", "n1", 1.0), (60.0, "up", "n1", 1.0)]


def test_usage_joins_a_log_by_job_id_and_what_has_no_job_is_counted(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("id,t,d,g\n7,1709287200,600,2\n8,1709287300,60,1\n")
    util = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "Hostname": "n1"}
    (tmp_path / "u.json").write_text(
        sample.matrix(
            ({**util, "gpu": "0", "hpc_job": "7"}, [[T, "100"]]),
            ({**util, "gpu": "1", "hpc_job": "7"}, [[T, "50"]]),
            ({**util, "gpu": "1", "hpc_job": "99"}, [[T, "50"]]),
        )
    )
    options = Options(mapping=parse_map("job_id=id,submit=t,duration=d,gpus=g"), usage=(tmp_path / "u.json",))
    trace = ingest([tmp_path / "jobs.csv"], options=options)
    assert trace.usage.select("job_id", "role", "gpu_milli").rows() == [("7", "main", 1500.0)]
    assert [(f.rule, f.count) for f in trace.meta.findings] == [("F07", 1)]
    assert trace.meta.rows_read == trace.meta.rows_kept + trace.meta.rows_dropped == 5


def test_usage_joins_pods_by_name_and_namespace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = kubernetes.write(tmp_path)
    pod = ingest(paths).instances.join(ingest(paths).tasks, on=["job_id", "role"]).row(0, named=True)
    labels = {"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0", "exported_pod": pod["instance_id"]}
    (tmp_path / "u.json").write_text(
        sample.matrix(
            ({**labels, "exported_namespace": pod["tenant"]}, [[T, "30"]]),
            ({**labels, "exported_namespace": "elsewhere"}, [[T, "90"]]),
        )
    )
    out = tmp_path / "trace"
    arguments = ["ingest", *map(str, paths), "--usage", str(tmp_path / "u.json"), "-o", str(out), "--json"]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["tables"]["usage"] == 1
    usage = Trace.open(out).usage
    assert usage.select("job_id", "role", "gpu_milli").rows() == [(pod["job_id"], pod["role"], 300.0)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (sample.matrix(), "no samples"),
        ('{"resultType": "vector", "result": []}', "not a matrix"),
        (sample.matrix(({"gpu": "0"}, [[T, "busy"]])), "result[0].values"),
        (sample.matrix(({"gpu": "0"}, [[T]])), "not a pair of time and value"),
        (sample.matrix(({"gpu": "0"}, [["now", "1"]])), "not a pair of time and value"),
    ],
)
def test_a_wrong_result_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "u.json").write_text(text)
    with pytest.raises(InputError) as caught:
        ingest([tmp_path / "u.json"])
    assert "u.json" in str(caught.value)
    assert says in str(caught.value)


def test_usage_without_dates_to_join_is_refused(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("id,t\n7,5\n")
    sample.write(tmp_path)
    options = Options(mapping=parse_map("job_id=id,submit=t"), usage=(tmp_path / "gpu.json",))
    with pytest.raises(InputError, match="the trace's times have none"):
        ingest([tmp_path / "jobs.csv"], options=options)


def test_describe_counts_what_was_used_where_there_is_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(path) for path in sample.write(tmp_path)]
    assert main(["describe", *files, "-q"]) == 0
    counted = [
        line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("records of what was used")
    ]
    assert [line[-1] for line in counted] == [str(sample.ROWS["usage"])]
