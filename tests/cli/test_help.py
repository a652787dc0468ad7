"""Help: every verb has it with examples, and asking for it is quick."""

from __future__ import annotations

import re
import resource
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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


def examples(verb: tuple[str, ...]) -> list[list[str]]:
    """Return the examples in a verb's help, each as the words after `gputwin`."""
    command = command_of(verb)
    lines = [line.strip() for line in (command.help or "").splitlines()]
    calls = [line.partition("gputwin ")[2] for line in lines if re.match(r"(\w+=\S+ )?gputwin ", line)]
    return [shlex.split(call.partition(" > ")[0]) for call in calls]


def command_of(verb: tuple[str, ...]) -> Any:
    """Return the command that the words of a verb call."""
    command: Any = typer.main.get_command(app)
    for word in verb:
        command = command.commands[word]
    return command


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_example_of_the_help_is_understood(verb: tuple[str, ...]) -> None:
    """Options, their values and arguments are those the verb has; running each needs data of its own."""
    found = [words for words in examples(verb) if tuple(words[: len(verb)]) == verb]
    assert found
    for words in found:
        command_of(verb).make_context("gputwin", words[len(verb) :])


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_examples_are_quoted_for_every_shell(verb: tuple[str, ...]) -> None:
    for line in (command_of(verb).help or "").splitlines():
        bare = re.sub(r'"[^"]*"', "", line)
        assert not (line.strip().startswith("gputwin ") and re.search(r"[?&;|(]", bare)), line


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
