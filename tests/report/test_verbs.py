"""`gputwin report` and `gputwin demo` as they are called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gputwin.cli.main import main
from tests.report.samples import Page


def test_demo_ends_with_the_path_of_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "-o", str(tmp_path / "demo"), "--jobs", "300", "--seed", "5"]) == 0
    output = capsys.readouterr().out
    path = Path(output.splitlines()[-1])
    assert path.is_file()
    assert len(list((tmp_path / "demo" / "raw").glob("*.csv"))) == 7
    for shown in ("Conclusion: ", "Next: ", "rows read", "Quality", "Distributions"):
        assert shown in output
    page = Page(path)
    sections = {a["id"] for a in page.all("section")}
    assert {"overview", "workload", "cluster", "load", "quality", "fidelity", "method", "manifest"} <= sections
    # It must not pass for a recording of the real cluster.
    assert "The trace is synthetic: generated as synthetic:pai2020?jobs=300&seed=5" in page.text


def test_demo_can_be_run_again_in_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["demo", "-o", str(tmp_path), "--jobs", "50", "--json"]
    assert main(command) == 0
    first = json.loads(capsys.readouterr().out)
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out) == first
    assert first["ingest"]["rows_read"] == first["ingest"]["rows_kept"] + first["ingest"]["rows_dropped"]
    assert Path(first["report"]).is_file()


def test_report_of_a_synthetic_trace_checks_load_and_fidelity(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.html"
    arguments = ["report", "synthetic:pai2020?jobs=100", "--cluster", "homogeneous:10x8", "-o", str(path), "--json"]
    assert main([*arguments, "--title", "Ours"]) == 0
    assert json.loads(capsys.readouterr().out) == {"report": str(path), "bytes": path.stat().st_size}
    page = Page(path)
    assert {"load", "fidelity"} <= {a["id"] for a in page.all("section")}
    assert "The cluster is homogeneous:10x8: 10 nodes with 80 GPUs." in page.text
    assert "Ours" in page.text


@pytest.mark.parametrize("output", [[], ["-o", "report.txt"]])
def test_report_says_in_one_line_what_it_needs(output: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "synthetic:pai2020?jobs=5", *output]) == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert not Path("report.txt").exists()
