"""Help: every verb has it with examples, and asking for it is quick."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from gputwin.cli.main import app, main
from tests.cli.process import gputwin, python

HELP_CPU_SECONDS = 0.7
HEAVY = ("polars", "numba", "numpy", "plotly", "pandas", "torch", "sklearn")


def verbs(of: typer.Typer, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield each verb of the command line as the words that call it."""
    for command in of.registered_commands:
        assert command.name
        yield (*before, command.name)
    for group in of.registered_groups:
        assert group.name
        assert group.typer_instance
        yield from verbs(group.typer_instance, (*before, group.name))


VERBS = list(verbs(app))


def test_the_verbs_of_the_design_are_there() -> None:
    assert {("ingest",), ("generate",), ("describe",), ("check",), ("traces", "list")} <= set(VERBS)
    assert {("traces", "fetch"), ("traces", "verify")} <= set(VERBS)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_explains_itself_with_examples(verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*verb, "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "Examples" in out
    assert f"gputwin {' '.join(verb)} " in out


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_can_answer_programs_and_be_quiet(verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*verb, "--help"]) == 0
    out = capsys.readouterr().out
    assert "--json" in out
    assert "--quiet" in out


def test_the_command_alone_lists_its_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for verb in VERBS:
        assert verb[0] in out
        assert main([verb[0], "--help"]) == 0


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from gputwin.cli.main import main; main(['--help']);"
        f"print(sorted({{m.partition('.')[0] for m in sys.modules}} & set({HEAVY!r})), file=sys.stderr)"
    )
    done = python("-c", code, folder=tmp_path)
    assert done.stderr.strip() == "[]"


def test_help_is_quick(tmp_path: Path) -> None:
    def cpu_seconds() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert gputwin(["--help"], tmp_path).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(cpu_seconds() for _ in range(3)) < HELP_CPU_SECONDS
