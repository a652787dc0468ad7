"""`gputwin queueing` and `gputwin plan`, from the command line to files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gputwin.cli.main import main

TRACE = "synthetic:pai2020?jobs=1500"


def test_queueing_writes_its_tables_and_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queueing", TRACE, "--cluster", "homogeneous:30x8", "-o", str(tmp_path / "out"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [p["model"] for p in data["theory"]] == ["M/M/c", "M/G/c", "G/G/c", "peaked", "MOL"]
    assert data["verdicts"]
    assert any("generated" in sentence for sentence in data["verdicts"])
    assert data["directory"] == str(tmp_path / "out")
    saved = json.loads((tmp_path / "out" / "queueing.json").read_text())
    assert saved["simulation"] == data["simulation"]
    page = (tmp_path / "out" / "queueing.html").read_text()
    assert "Wait against load" in page
    assert "Operational laws" in page


def test_plan_answers_people_and_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", TRACE, "--cluster", "homogeneous:60x8", "--target", "p90_wait=10m"]
    assert main([*arguments, "-o", str(tmp_path / "out"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["value_seconds"] <= 600
    assert data["record_nodes_low"] <= data["record_nodes"] <= data["nodes"]
    assert data["largest_missing_nodes"] < data["record_nodes"]
    assert data["largest_missing_seconds"] is None or data["largest_missing_seconds"] > 600
    assert data["drawn_records_met"] >= 0.9 * data["drawn_records"]
    assert all(p["meets"] for p in data["simulated"] if p["nodes"] >= data["record_nodes"])
    assert "against capacity" in (tmp_path / "out" / "plan.html").read_text()
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert f"{data['nodes']:,} nodes" in out
    assert "with 90 % confidence" in out
    assert f"{data['record_nodes_low']:,} to {data['record_nodes_high']:,} nodes (90 %)" in out


def test_a_plan_that_cannot_be_has_an_exit_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["plan", TRACE, "--cluster", "homogeneous:60x8", "--target", "p95_jct=1"]
    assert main([*arguments, "--json"]) == 3
    said = capsys.readouterr()
    data = json.loads(said.out)
    assert data["nodes"] is None
    assert "No number of such nodes" in data["verdict"]
    assert all(line.startswith("gputwin: note:") for line in said.err.splitlines())
    assert main(arguments) == 3
    assert "No number of such nodes" in capsys.readouterr().out
    assert main(["plan", "--help"]) == 0
    assert "Exit code 3" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["plan", TRACE, "--cluster", "homogeneous:9x8", "--target", "fast"], "is not a target"),
        (["plan", TRACE, "--cluster", "homogeneous:9x8", "--target", "p95_wait=5", "--by", "rack"], "gpu_model"),
        (["plan", TRACE, "--cluster", "homogeneous:9x0", "--target", "p95_wait=5"], "no GPUs"),
        (["queueing", TRACE, "--cluster", "homogeneous:9x0"], "no GPUs"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    err = capsys.readouterr().err
    assert word in err
    assert err.count("\n") == 1
