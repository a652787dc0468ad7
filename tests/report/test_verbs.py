"""`gputwin report` and `gputwin demo` as they are called."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from gputwin.cli.main import main
from gputwin.report.compile import rule_groups
from gputwin.report.demo import OTHERS, SCHEDULERS
from tests.report.samples import Page

DEMO = ["--jobs", "300", "--seed", "5"]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the folder of a small demonstration, and what it printed."""
    folder = tmp_path_factory.mktemp("demo")
    shown = io.StringIO()
    with pytest.MonkeyPatch.context() as environment, redirect_stdout(shown):
        environment.delenv("COLUMNS", raising=False)
        environment.delenv("LINES", raising=False)
        assert main(["demo", "-o", str(folder), *DEMO, "--quiet"]) == 0
    return folder, shown.getvalue()


def test_demo_ends_with_a_conclusion_the_dashboard_and_the_path_of_its_report(demo: tuple[Path, str]) -> None:
    folder, output = demo
    *_, serve, last = output.splitlines()
    assert serve == f"In the dashboard: gputwin serve --workspace {folder}"
    assert Path(last) == folder / "report.html"
    assert len(list((folder / "raw").glob("*.csv"))) == 7
    for shown in ("Conclusion: ", "Next: ", "rows read", "Quality", "Distributions"):
        assert shown in output
    page = Page(folder / "report.html")
    sections = {a["id"] for a in page.all("section")}
    assert {"overview", "workload", "cluster", "load", "quality", "fidelity", "method", "manifest"} <= sections
    # It must not pass for a recording of the real cluster.
    assert "The trace is synthetic: generated as synthetic:pai2020?jobs=300&seed=5" in page.text


def test_every_part_of_the_demo_says_what_it_found(demo: tuple[Path, str]) -> None:
    said = dict(line[2:].split(": ", 1) for line in demo[1].splitlines() if line.startswith("- "))
    assert list(said) == ["profile", "forecast", "theory", "sharing", "placement", "autoscaling"]
    assert "nodes" in said["placement"]
    assert "No placement was found" not in demo[1]
    assert said["autoscaling"].startswith(("The cheapest rule that keeps the target is ", "No rule keeps the target: "))


def test_demo_can_be_run_again_in_its_place(demo: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    folder, before = demo
    assert main(["demo", "-o", str(folder), *DEMO, "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert f"Conclusion: {again['conclusion']}" in " ".join(before.split())
    assert again["ingest"]["rows_read"] == again["ingest"]["rows_kept"] + again["ingest"]["rows_dropped"]
    assert Path(again["report"]).is_file()


def test_compiling_ahead_covers_every_scheduler_of_the_demo(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = rule_groups()
    assert sorted(map(str, (r for g in groups for r in g))) == sorted(map(str, (SCHEDULERS | OTHERS).values()))
    # The package `gputwin.report` is hidden behind the function of that name.
    monkeypatch.setattr(sys.modules["gputwin.report.compile"], "processors", lambda: 1)
    assert main(["compile", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parts"] == len(groups) + 1
    assert any(Path(found["folder"]).rglob("*.nbi"))


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
