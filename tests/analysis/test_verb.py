"""`gputwin analyze` as it is called: tables, words and a report, on whatever a trace has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from gputwin.cli.main import main
from tests.report.samples import Page, trace_of

TIMES = [{"job_id": str(i), "submit_time": 60.0 * i, "duration_seconds": 5.0 + i} for i in range(50)]


def test_everything_is_written_and_can_be_written_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["analyze", "synthetic:pai2020?jobs=400", "-o", str(tmp_path / "out"), "--json"]
    assert main(command) == 0
    data = json.loads(capsys.readouterr().out)
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out) == data
    for name, topic in data["topics"].items():
        for table, rows in topic["tables"].items():
            written = pl.read_parquet(tmp_path / "out" / name / f"{table}.parquet")
            assert written.height == len(rows) > 0
            assert (tmp_path / "out" / name / f"{table}.csv").is_file()
    words = (tmp_path / "out" / "findings.md").read_text(encoding="utf-8")
    assert data["topics"]["delays"]["remarks"][0]["text"] in words
    page = Page(Path(data["report"]))
    assert data["topics"]["delays"]["remarks"][0]["text"] in page.text


def test_a_folder_of_others_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["analyze", "synthetic:pai2020?jobs=20", "-o", str(tmp_path)]) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("tables", "topics"),
    [
        ({"tasks": TIMES}, {"workload", "runtimes", "cluster"}),
        ({"tasks": TIMES[:1]}, {"workload", "runtimes", "cluster"}),
        (
            {"tasks": [t | {"start_time": t["submit_time"]} for t in TIMES]},
            {"workload", "delays", "runtimes", "cluster"},
        ),
        ({"tasks": [{"job_id": "a"}]}, {"workload"}),
        ({"tasks": []}, set()),
        ({"nodes": [{"node_id": "n", "gpu_count": 1}]}, set()),
        ({"series": [{"time": 0.0, "metric": "m", "value": 1.0}]}, set()),
        ({"requests": [{"request_id": "r"}]}, set()),
        ({"requests": [{"request_id": "r", "duration_seconds": 2.0}]}, {"serving"}),
    ],
)
def test_little_to_analyse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], tables: dict[str, Any], topics: set[str]
) -> None:
    trace_of(tables).save(tmp_path / "trace")
    assert main(["analyze", str(tmp_path / "trace"), "--json"]) == 0
    found = set(json.loads(capsys.readouterr().out)["topics"])
    assert topics <= found <= topics | {"bottlenecks"}
    assert main(["analyze", str(tmp_path / "trace"), "-o", str(tmp_path / "out"), "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert ("nothing that could be analysed" in shown) == (not topics)


def test_no_waiting_is_said_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks = [t | {"start_time": t["submit_time"]} for t in TIMES]
    trace_of({"tasks": tasks}).save(tmp_path / "trace")
    assert main(["analyze", str(tmp_path / "trace"), "--quiet"]) == 0
    assert "None of the 50 tasks whose wait is known waited at all." in capsys.readouterr().out
