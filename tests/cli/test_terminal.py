"""What people see in a terminal: the conclusion first, two screens at most, no number or id broken inside a cell."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gputwin.cli.console import SCREENS
from gputwin.cli.main import main
from gputwin.cli.progress import share_done
from gputwin.cli.terminal import MOST_ROWS, fitting_columns, print_table
from gputwin.core.table import Kind, Table
from tests.report.samples import trace_of

TRACE = "synthetic:pai2020?jobs=400"
CLUSTER = ["--cluster", "homogeneous:40x8"]
VERBS = {
    "describe": ["describe", TRACE],
    "analyze": ["analyze", TRACE],
    "check": ["check", TRACE, *CLUSTER],
    "simulate": ["simulate", TRACE, *CLUSTER],
    "policies": ["policies"],
    "mig": ["mig", "--gpus", "8", "--demand", "1g.5gb=20"],
    "traces": ["traces", "list"],
}
CONCLUSIONS = {
    "analyze": r"wait|start",
    "check": r"fit",
    "simulate": r"wait",
}
"""What the first line speaks of."""


def shown(
    arguments: list[str], columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main([*arguments, "--quiet"] if arguments[0] not in ("policies",) else arguments) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("verb", VERBS)
def test_output_fits_the_terminal_and_two_screens(
    verb: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = shown(VERBS[verb], columns, capsys, monkeypatch)
    assert 1 < len(lines) <= SCREENS
    assert max(len(line.rstrip()) for line in lines) <= columns
    assert not any("_milli" in line or "_mib" in line for line in lines)


@pytest.mark.parametrize("verb", CONCLUSIONS)
def test_the_conclusion_comes_first(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = shown(VERBS[verb], 120, capsys, monkeypatch)[0]
    assert re.search(CONCLUSIONS[verb], first)
    assert "─" not in first


def test_cells_are_whole_at_every_width(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    ids = tuple(f"4b3f04b66a525d2df903eb{i:02d}" for i in range(3))
    rows = tuple((i, "1,234,567", "12 min 34 s", "why it waited, in a few words") for i in ids)
    columns = {"job": Kind.CODE, "bytes": Kind.NUMBER, "wait": Kind.NUMBER, "why": Kind.TEXT}
    table = Table("Jobs", columns, rows)
    for width in (80, 60, 50, 40, 30):
        monkeypatch.setenv("COLUMNS", str(width))
        print_table(table)
        out = capsys.readouterr().out
        kept = [list(columns)[i] for i in fitting_columns(table, width)]
        assert all(i in out for i in ids)
        assert ("1,234,567" in out) == ("bytes" in kept)
        assert ("12 min 34 s" in out) == ("wait" in kept)
        assert max(map(len, out.splitlines())) <= max(width, 24)
        missing = [name for name in columns if name not in kept]
        assert not missing or f"not shown, the terminal is too narrow: {', '.join(missing)}" in " ".join(out.split())


def test_columns_go_before_rows_and_the_last_ones_first() -> None:
    table = Table("T", {"a": Kind.TEXT, "b": Kind.NUMBER, "c": Kind.NUMBER}, (("x" * 10, "1" * 10, "2" * 10),))
    assert [len(fitting_columns(table, width)) for width in (80, 36, 35, 22, 10)] == [3, 3, 2, 1, 1]


def test_long_tables_are_cut_unless_everything_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    table = Table("T", {"n": Kind.NUMBER}, tuple((str(i),) for i in range(200)))
    print_table(table)
    out = capsys.readouterr().out
    assert f"… {200 - MOST_ROWS} more rows: --full" in out
    print_table(table, full=True)
    assert capsys.readouterr().out.count("\n") >= 200


def test_analyze_shows_more_when_asked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    brief = shown(VERBS["analyze"], 120, capsys, monkeypatch)
    full = shown([*VERBS["analyze"], "--full"], 120, capsys, monkeypatch)
    assert len(full) > SCREENS > len(brief)
    assert brief[0] == full[0]


def test_a_strict_queue_that_idles_half_the_cluster_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def task(name: str, submit: float, instances: int, gpus: int, seconds: float) -> dict[str, Any]:
        times = {"submit_time": submit, "start_time": submit, "duration_seconds": seconds}
        return {"job_id": name, "instances": instances, "gpu_count": gpus, **times}

    # One job takes a third of the GPUs, the next needs all of them; the small ones behind it could start at once.
    tasks = [task("long", 0.0, 1, 8, 36_000.0), task("wide", 1.0, 3, 8, 100.0)]
    tasks += [task(f"small{i}", 2.0 + i, 1, 1, 100.0) for i in range(40)]
    trace_of({"tasks": tasks}).save(tmp_path / "trace")
    command = ["simulate", str(tmp_path / "trace"), "--cluster", "homogeneous:3x8", "--quiet"]
    assert main([*command, "--backfill", "strict"]) == 0
    strict = capsys.readouterr().out
    assert main(command) == 0
    greedy = capsys.readouterr().out
    assert "of the GPUs are idle" in strict
    assert "--backfill greedy" in strict
    assert "backfill greedy" in greedy
    assert "are idle" not in greedy


def test_version_help_and_nothing_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"gputwin \d+\.\d+\.\d+\n", capsys.readouterr().out)
    assert main([]) == 0
    alone = capsys.readouterr().out
    assert main(["-h"]) == 0
    assert capsys.readouterr().out == alone
    assert main(["simulate", "-h"]) == 0
    help_ = capsys.readouterr().out
    for option in ("--full", "--verbose", "--force", "--as", "-q", "-v"):
        assert option in help_


def test_main_tables_as_data(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["check", TRACE, *CLUSTER, "--as", "csv", "-q"]) == 0
    header, *rows = capfd.readouterr().out.splitlines()
    assert header.startswith("resource,models,capacity,mean")
    assert rows
    assert main(["check", TRACE, *CLUSTER, "--as", "json", "-q"]) == 0
    assert len(json.loads(capfd.readouterr().out)["loads"]) == len(rows)


def test_verbose_says_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", TRACE, "-v"]) == 0
    err = capsys.readouterr().err
    assert "generating 400 pai2020 jobs" in err
    assert err.endswith("done\n")


def test_how_much_of_a_step_is_done() -> None:
    assert share_done("trial 1 of 20") == 0.0
    assert share_done("simulating FIFO, replicate 3 of 4") == 0.5
    assert share_done("clustering") is None


def test_a_folder_of_others_needs_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    command = ["generate", "pai2020", "--jobs", "20", "-o", str(tmp_path / "out"), "--quiet"]
    assert main(command) == 2
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "out" / "mine.txt").is_file()
    assert main([*command, "--force"]) == 0
