"""What people see in a terminal: the conclusion first, two screens at most, no number or id broken inside a cell."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from gputwin.cli import console
from gputwin.cli.console import SCREENS, two_screens
from gputwin.cli.main import main
from gputwin.cli.terminal import MOST_ROWS, fitting_columns, print_table, wrapped
from gputwin.core.steps import share_done
from gputwin.core.table import Kind, Table
from gputwin.simulation.result import SimulationResult
from tests.report.samples import trace_of

TRACE = "synthetic:pai2020?jobs=400"
CLUSTER = ["--cluster", "homogeneous:40x8"]
SMALL = "synthetic:philly?jobs=300"
VERBS = {
    "describe": ["describe", TRACE],
    "analyze": ["analyze", TRACE],
    "check": ["check", TRACE, *CLUSTER],
    "simulate": ["simulate", TRACE, *CLUSTER],
    "against": ["simulate", TRACE, *CLUSTER, "--order", "sjf", "--against", "RUN"],
    "explain": ["explain", "RUN", "longest"],
    "explain tenants": ["explain", "RUN"],
    "explain one tenant": ["explain", "RUN", "--tenant", "TENANT"],
    "fit": ["fit", "RUN", "--gang", "1", "--gpus", "1", "--at", "busiest"],
    "generate": ["generate", "philly", "--jobs", "200", "-o", "FOLDER/generated"],
    "ingest": ["ingest", "FOLDER/jobs.csv", "--map", "job_id=id,submit=at,duration=runs", "-o", "FOLDER/ingested"],
    "slice": ["slice", SMALL, "--first", "50%", "-o", "FOLDER/first"],
    "profile": ["profile", SMALL, "--model", "group-median", "--no-value", "-o", "FOLDER/profile"],
    "predict": ["predict", "FOLDER/made/model", SMALL],
    "forecast": ["forecast", SMALL, "--target", "in-force", "--bin", "5m", "--horizon", "30m", "--model", "ses"],
    "queueing": ["queueing", SMALL, "--cluster", "homogeneous:20x8"],
    "plan": ["plan", SMALL, "--cluster", "homogeneous:4x8", "--target", "p95_wait=600"],
    "policies": ["policies"],
    "policies in full": ["policies", "--full"],
    "mig": ["mig", "--gpus", "8", "--demand", "1g.5gb=20"],
    "traces": ["traces", "list"],
}
"""Commands of verbs that print tables, in an order in which each finds what it needs."""
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a saved run and a saved model."""
    where = tmp_path_factory.mktemp("terminal")
    assert main(["simulate", TRACE, *CLUSTER, "--quiet", "-o", str(where / "run")]) == 0
    profiled = ["profile", SMALL, "--model", "group-median", "--no-value", "--quiet", "-o", str(where / "made")]
    assert main(profiled) == 0
    rows = [f"4b3f04b66a525d2df903eb{i:02d},{60 * i},{i - 3}" for i in range(40)]
    (where / "jobs.csv").write_text("\n".join(["id,at,runs", *rows, ""]), encoding="utf-8")
    return where


def filled_in(arguments: list[str], folder: Path) -> list[str]:
    tenant = SimulationResult.open(folder / "run").jobs["tenant"].mode().sort()[0]
    names = {"FOLDER": str(folder), "RUN": str(folder / "run"), "TENANT": tenant}
    for name, value in names.items():
        arguments = [argument.replace(name, value) for argument in arguments]
    return arguments


def structure(table: Table, columns: int) -> None:
    """Assert that the table fits, and that no header, number, id or word in it is broken."""
    out = io.StringIO()
    with redirect_stdout(out):
        print_table(table, full=True)
    lines = out.getvalue().splitlines()
    rule = next(i for i, line in enumerate(lines) if line and set(line) == {"─"})
    kept = fitting_columns(table, columns)
    names = list(table.columns)
    assert max(len(line) for line in lines[rule - 1 :]) <= columns or len(kept) == 1
    header = lines[rule - 1]
    assert [name for i in kept if (name := names[i]) not in header] == []
    body = lines[rule + 1 :]
    words = {word for line in body for word in line.split()}
    for row in table.rows:
        for i in kept:
            if table.columns[names[i]] == Kind.TEXT:
                assert set(row[i].split()) <= words
            else:
                assert any(row[i] in line for line in body), row[i]


@pytest.mark.parametrize("verb", VERBS)
def test_output_fits_the_terminal_and_two_screens_and_breaks_nothing(
    verb: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables: list[Table] = []

    def print_and_keep(table: Table, *, full: bool = False) -> None:
        tables.append(table)
        print_table(table, full=full)

    monkeypatch.setattr(console, "print_table", print_and_keep)
    arguments = filled_in(VERBS[verb], folder)
    lines = shown(arguments, 80, capsys, monkeypatch)
    assert lines
    assert len(lines) <= SCREENS or "--full" in arguments
    # A path may be longer than the terminal.
    assert max(len(line) for line in lines if str(folder) not in line) <= 80
    assert not any("_milli" in line or "_mib" in line for line in lines)
    for columns in (80, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        for table in tables:
            structure(table, columns)


def test_a_comparison_is_short_and_full_adds_the_run_itself(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = filled_in(VERBS["against"], folder)
    brief, full = (shown([*arguments, *more], 120, capsys, monkeypatch) for more in ([], ["--full"]))
    assert len(brief) <= 2 * 24  # Two screens of the smallest terminal.
    assert "Cluster" not in brief
    assert brief[-1].endswith("--full")
    assert "Cluster" in full
    assert any(line.startswith("Users that others wait for") for line in full)


@pytest.mark.parametrize("verb", CONCLUSIONS)
def test_the_conclusion_comes_first(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = shown(VERBS[verb], 120, capsys, monkeypatch)[0]
    assert re.search(CONCLUSIONS[verb], first)
    assert "─" not in first


def test_a_sentence_is_not_broken_inside_a_quantity(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "· one in twenty waits longer than 2 min 16 s or 1 d 4 h, 69.1 % of 3,194 GPUs and 17 GPU-hours, 1 min alone"
    whole = ("2 min 16 s", "1 d 4 h", "69.1 %", "3,194 GPUs", "17 GPU-hours", "1 min")
    for columns in range(20, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = wrapped(text).splitlines()
        assert all(any(quantity in line for line in lines) for quantity in whole)
        assert " ".join(line.strip() for line in lines) == text


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


@pytest.mark.parametrize(("lines", "most"), [("24", 48), ("60", 120), ("10", 48)])
def test_two_screens_are_those_of_the_terminal(lines: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", lines)
    assert two_screens() == most


def test_what_is_cut_leaves_no_header_without_rows_and_no_rows_without_header() -> None:
    head = [f"sentence {n}" for n in range(6)]
    table = ["Title", "name   number", "─────────────", "a          1", "b          2", "c          3"]
    for most in range(9, 12):
        cut = console._cut([*head, *table, "All: --full"], most)
        assert len(cut) <= most
        assert cut[-2:] == [f"… {12 - (len(cut) - 2)} more lines: --full", "All: --full"]
        assert set(cut[-3]) != {"─"}
        assert cut[-3] not in table[:2]
        assert all(row in cut for row in head)


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
    assert "--backfill greedy" in " ".join(strict.split())
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
    assert share_done("model 3 of 4: trees, fit 2 of 5") == 0.55
    assert share_done("clustering") is None


def test_a_folder_of_others_needs_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    command = ["generate", "pai2020", "--jobs", "20", "-o", str(tmp_path / "out"), "--quiet"]
    assert main(command) == 2
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "out" / "mine.txt").is_file()
    assert main([*command, "--force"]) == 0
