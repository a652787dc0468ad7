"""Overload is said aloud: on stderr for people, in `warnings` for programs."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from gputwin.cli.main import app
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.offered import overload
from gputwin.traces.dataset import Trace, TraceMeta


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a trace that asks for about four GPUs all the time."""
    tasks = pl.DataFrame(
        [
            {
                "job_id": f"job-{i:04d}",
                "user": f"user-{i % 3}",
                "submit_time": 100.0 * i,
                "start_time": 100.0 * i,
                "duration_seconds": 200.0 + 40 * (i % 11),
                "gpu_count": 1,
                "gpu_milli": 1000,
            }
            for i in range(600)
        ]
    )
    folder = tmp_path_factory.mktemp("busy") / "trace"
    Trace.from_frames({"tasks": tasks}, TraceMeta("by hand")).save(folder)
    return str(folder)


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate"],
        ["queueing"],
        ["plan", "--target", "mean_wait=600"],
        ["profile", "--model", "median"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_verb_that_simulates_warns_of_overload(arguments: list[str], busy: str) -> None:
    verb, *rest = arguments
    result = CliRunner().invoke(app, [verb, busy, *rest, "--cluster", "homogeneous:1x2", "--json", "--quiet"])
    assert result.exit_code == 0, result.output
    (warning,) = json.loads(result.stdout)["warnings"]
    assert "times the GPUs of homogeneous:1x2" in warning
    assert f"gputwin: note: {warning}\n" in result.stderr
    roomy = CliRunner().invoke(app, [verb, busy, *rest, "--cluster", "homogeneous:2x8", "--json", "--quiet"])
    assert json.loads(roomy.stdout)["warnings"] == []
    assert "overloaded" not in roomy.stderr


def test_growth_counts(busy: str) -> None:
    trace, cluster = Trace.open(Path(busy)), Cluster("six", (NodeGroup("node", 6, 1),))
    assert overload(trace, cluster) == ()
    assert "1." in overload(trace, cluster, growth=2.0)[0]


def test_tasks_that_arrive_faster_run_as_long_as_ever() -> None:
    """Two GPUs for 80 s of the 100 s until the last arrival; twice as fast, for all of the 50 s, not 1.6 times of them."""
    times = {"duration_seconds": 80.0, "gpu_count": 1, "gpu_milli": 1000}
    tasks = pl.DataFrame([{"job_id": str(k), "submit_time": at, **times} for k, at in enumerate((0.0, 0.0, 100.0))])
    trace = Trace.from_frames({"tasks": tasks}, TraceMeta("by hand"))
    (said,) = overload(trace, Cluster("one", (NodeGroup("node", 1, 1),)), growth=2.0)
    assert said.startswith("overloaded: the work offered is 2.00 times the GPUs of one over 50 s,")


def test_it_is_said_by_resource_and_by_model() -> None:
    span = {"start_time": 0.0, "end_time": 100.0, "submit_time": 0.0, "gpu_milli": 1000}
    rows = [
        {**span, "job_id": "a", "gpu_count": 3, "cpu_milli": 9_000, "gpu_models_allowed": "T4"},
        {**span, "job_id": "b", "gpu_count": 1, "cpu_milli": 9_000, "submit_time": 100.0},
    ]
    trace = Trace.from_frames({"tasks": pl.DataFrame(rows, infer_schema_length=None)}, TraceMeta("by hand"))
    nodes = (NodeGroup("t", 1, gpus=2, gpu_model="T4", cpu_milli=4_000), NodeGroup("a", 1, gpus=6, cpu_milli=4_000))
    found = overload(trace, Cluster("two", nodes))
    assert [f"{w.split('times the ')[1].split(' of two')[0]}" for w in found] == ["CPU cores"]
    t4 = Cluster("t4", (NodeGroup("t", 1, gpus=2, gpu_model="T4"), NodeGroup("a", 1, gpus=6, gpu_model="A10")))
    assert ["GPUs of model T4" in w for w in overload(trace, t4)] == [True]
