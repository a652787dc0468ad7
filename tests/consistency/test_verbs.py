"""What the commands print: the same figures in every verb, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from gputwin.analysis.occupancy import time_mean
from gputwin.cli.main import app
from tests.consistency.seen import REAL

CLUSTER = "homogeneous:1000x8"
GPUS = 8_000
FIGURES = {"dlrm": (3_194.4, 2_375_810), "thetagpu": (11.29, 43_015)}
"""GPUs held on average, and GPU-hours."""


def run(verb: str, *arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, [verb, *arguments, "--json", "--quiet"])
    assert result.exit_code == 0, result.output
    data: dict[str, Any] = json.loads(result.stdout)
    return data


@pytest.fixture(scope="module", params=FIGURES)
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def waits(name: str, folder: Path) -> pl.Series:
    """Return the waits in the raw file, s."""
    (file,) = (folder / REAL[name][0]).glob("*.csv.gz")
    frame = pl.read_csv(file, null_values=["NaN", ""], infer_schema_length=None)
    number = {c: pl.col(c).cast(pl.Float64) for c in frame.columns if c.endswith("_time")}
    wait = number["scheduled_time"] - number["creation_time"] if name == "dlrm" else number["wait_time"]
    return frame.select(wait).to_series().drop_nulls()


@pytest.fixture(scope="module")
def trace(name: str, real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("trace") / name
    run("ingest", *(str(real_data / part) for part in REAL[name]), "-o", str(folder))
    return str(folder)


def test_gpus_held_gpu_hours_and_waits(name: str, trace: str, real_data: Path) -> None:
    gpus, hours = FIGURES[name]
    known = waits(name, real_data)
    count, wait = known.len(), pytest.approx(known.mean())
    described = run("describe", trace)
    assert described["gpus_held_mean"] == pytest.approx(gpus, rel=1e-3)
    assert described["gpu_hours"] == pytest.approx(hours, rel=1e-3)
    assert described["wait_seconds"]["count"] == count
    assert described["wait_seconds"]["mean"] == wait
    topics = run("analyze", trace)["topics"]
    over_time = pl.DataFrame(topics["cluster"]["tables"]["over_time"])
    assert time_mean(over_time, "gpus") == pytest.approx(gpus, rel=1e-3)
    composition = topics["workload"]["tables"]["composition"]
    by_request = [row["gpu_hours"] for row in composition if row["dimension"] == "gpu_request"]
    assert sum(by_request) == pytest.approx(hours, rel=1e-3)
    assert topics["delays"]["tables"]["wait"][0]["mean"] == wait


def test_load_and_span(name: str, trace: str) -> None:
    described, checked = run("describe", trace), run("check", trace, "--cluster", CLUSTER)
    simulated = run("simulate", trace, "--cluster", CLUSTER, "--backfill", "greedy")
    theory = run("queueing", trace, "--cluster", CLUSTER)
    (load,) = [x for x in checked["loads"] if (x["resource"], x["models"]) == ("gpu_milli", "any")]
    offered = load["mean"] * GPUS
    assert simulated["allocation"]["gpu"] * GPUS == pytest.approx(offered, rel=1e-6)
    assert theory["load_gpus"] == pytest.approx(offered, rel=1e-6)
    assert theory["trace"]["utilisation"] * GPUS == pytest.approx(described["gpus_held_mean"], rel=1e-6)
    assert theory["window_seconds"] == checked["window_seconds"] == described["window_seconds"]
    assert simulated["jobs"] == described["jobs"]
    assert described["notes"] == checked["notes"] == [n for n in theory["notes"] if "stray" in n]
    # Where all wait for nothing, waits as they were are those of the tasks that take GPUs.
    assert theory["simulation"]["wait_seconds_mean"] == simulated["wait_seconds"]["mean"] == 0.0


def test_percentiles_of_waits_are_the_same_in_plan_simulate_and_queueing(tmp_path: Path) -> None:
    """The numbers of jobs make 95 % fall between two waits."""
    trace, cluster = "synthetic:philly?jobs=1999&seed=3", "homogeneous:24x8"
    planned = run("plan", trace, "--cluster", cluster, "--target", "p95_wait=10m")
    sizes = {point["nodes"]: point["value_seconds"] for point in planned["simulated"]}
    for nodes in sorted(sizes)[:3]:
        folder = tmp_path / f"run-{nodes}"
        on_it = run("simulate", trace, "--cluster", f"homogeneous:{nodes}x8", "--backfill", "greedy", "-o", str(folder))
        waits = pl.read_parquet(folder / "jobs.parquet")["wait_seconds"].drop_nulls()
        assert on_it["wait_seconds"]["p95"] == waits.quantile(0.95, "linear") == sizes[nodes]
        assert sizes[nodes] > 0
