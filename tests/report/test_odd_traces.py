"""A trace that lacks something gives a report without it, never an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gputwin.cli.main import main
from gputwin.report import write_report
from gputwin.simulation.cluster import Cluster, open_cluster
from gputwin.simulation.load import check_load
from gputwin.traces.dataset import Trace
from gputwin.traces.reader import Clock
from tests.report.samples import Page, trace_of

ABSOLUTE: dict[str, Any] = {"clock": Clock.ABSOLUTE, "zone": "Asia/Kolkata", "origin_unix_seconds": 1.6e9}
TIMES = [{"job_id": str(i), "submit_time": 60.0 * i, "duration_seconds": 5.0 + i} for i in range(50)]


def report(tmp_path: Path, trace: Trace, **options: Any) -> Page:
    return Page(write_report(tmp_path / "report.html", trace, **options))


def ids(page: Page) -> tuple[set[str | None], set[str]]:
    """Return the sections, without the evidence of the answer, and the figures, without the answer's own."""
    sections = {a["id"] for a in page.all("section") if not str(a["id"]).endswith("-evidence")}
    return sections, {name for name in page.data["figures"] if not name.startswith("answer-")}


def test_only_submit_times_and_durations(tmp_path: Path) -> None:
    trace = trace_of({"tasks": TIMES})
    sections, figures = ids(report(tmp_path, trace, check=check_load(trace, open_cluster("pai2020"))))
    assert sections == {"overview", "workload", "runtimes", "cluster", "load", "method", "manifest"}
    assert figures == {"arrivals", "runtime", "runtime-philly", "allocation"}


def test_one_row(tmp_path: Path) -> None:
    task = {"job_id": "a", "user": "u", "submit_time": 5.0, "start_time": 5.0, "end_time": 9.0, "gpu_count": 1}
    trace = trace_of({"tasks": [task], "nodes": [{"node_id": "n", "gpu_count": 1}]}, **ABSOLUTE)
    page = report(tmp_path, trace, check=check_load(trace, Cluster.from_nodes("n", trace.nodes)))
    assert ids(page)[1] == {"arrivals", "runtime", "gpus-per-task", "allocation", "load"}
    assert "Wait: all 1 known values are zero." in page.text


def test_all_waits_zero(tmp_path: Path) -> None:
    trace = trace_of({"tasks": [t | {"start_time": t["submit_time"]} for t in TIMES]})
    page = report(tmp_path, trace)
    assert "Wait: all 50 known values are zero." in page.text
    assert "None of the 50 tasks whose wait is known waited at all." in page.text
    assert "wait" not in page.data["figures"]


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({}, set()),
        ({"tasks": []}, set()),
        ({"tasks": [{"job_id": "a"}]}, {"workload"}),
        ({"tasks": [{"job_id": "a", "gpu_count": 0}]}, {"workload"}),
        ({"nodes": [{"node_id": "a"}]}, {"cluster"}),
        (
            {"nodes": [{"node_id": "a", "gpu_count": 4}, {"node_id": "b", "gpu_count": 2, "gpu_model": "T4"}]},
            {"cluster"},
        ),
        ({"series": [{"time": 1.0, "metric": "m", "value": 3.0}]}, {"series"}),
        ({"series": [{"time": 1.0, "metric": "m", "value": None}]}, set()),
        ({"requests": [{"request_id": "r"}]}, set()),
        ({"requests": [{"request_id": "r", "submit_time": 1.0, "output_tokens": 0}]}, {"requests"}),
        ({"usage": [{"job_id": "a", "start_time": 0.0, "end_time": 1.0, "gpu_milli": 5.0}]}, set()),
    ],
)
@pytest.mark.parametrize("clock", [{}, ABSOLUTE, {"clock": Clock.WEEKDAY, "origin_unix_seconds": 0.0}])
def test_little_to_show(tmp_path: Path, tables: dict[str, Any], expected: set[str], clock: dict[str, Any]) -> None:
    sections, _ = ids(report(tmp_path, trace_of(tables, **clock)))
    assert sections == {"overview", "method", "manifest"} | expected


@pytest.mark.parametrize(
    "meta",
    [
        ABSOLUTE | {"zone": "Mars/Olympus"},
        ABSOLUTE | {"origin_unix_seconds": 1e17},
        ABSOLUTE | {"origin_unix_seconds": -1e12},
        {"source": "", "title": ""},
    ],
)
def test_a_clock_or_name_that_makes_no_sense(tmp_path: Path, meta: dict[str, Any]) -> None:
    assert "arrivals" in ids(report(tmp_path, trace_of({"tasks": TIMES}, **meta)))[1]


@pytest.mark.parametrize("value", [0.0, 1e-300, 1e300, float("inf"), float("nan")])
def test_times_that_make_no_sense(tmp_path: Path, value: float) -> None:
    tasks = [*TIMES, {"job_id": "odd", "submit_time": 1.0, "start_time": 1.0, "duration_seconds": value}]
    assert "runtime" in ids(report(tmp_path, trace_of({"tasks": tasks}, **ABSOLUTE)))[1]


def test_thousands_of_users_models_and_metrics_stay_few_rows(tmp_path: Path) -> None:
    tasks = [t | {"user": f"u{i}", "gpu_count": 1, "gpu_models_allowed": f"m{i}"} for i, t in enumerate(TIMES * 8)]
    tasks = [t | {"job_id": str(i)} for i, t in enumerate(tasks)]
    nodes = [{"node_id": str(i), "gpu_count": 1, "gpu_model": f"m{i}"} for i in range(400)]
    series = [{"time": float(t), "metric": f"metric {m}", "value": 1.0} for t in (0, 1) for m in range(200)]
    trace = trace_of({"tasks": tasks, "nodes": nodes, "series": series})
    page = report(tmp_path, trace, check=check_load(trace, Cluster.from_nodes("n", trace.nodes)))
    assert len(page.all("tr")) < 250
    assert len(page.data["figures"]["load-by-model"]["data"]) == 8
    assert len(page.data["figures"]["metrics"]["data"]) == 12
    assert len(page.data["figures"]["gpus-by-model"]["data"][0]["x"]) == 20


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("alibaba_v2026_genai", {"requests", "serving", "series", "quality"}),
        ("mooncake", {"requests", "serving", "quality"}),
        ("servegen", {"requests", "serving", "series", "quality"}),
        ("alibaba_lingjun_2023", {"cluster", "quality"}),
        ("thetagpu", {"workload", "delays", "tenants", "runtimes", "placement", "cluster", "bottlenecks", "quality"}),
    ],
)
def test_real_traces(real_data: Path, tmp_path: Path, folder: str, expected: set[str]) -> None:
    path = tmp_path / "report.html"
    assert main(["report", str(real_data / folder), "-o", str(path), "--quiet"]) == 0
    assert ids(Page(path))[0] == {"overview", "method", "manifest"} | expected
