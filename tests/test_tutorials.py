"""The tutorials: every command of docs/tutorials.md runs, and the figures it states in bold are those that come out."""

from __future__ import annotations

import json
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest

from gputwin.cli.main import main
from gputwin.core.units import format_count, format_duration

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = (REPOSITORY / "docs" / "tutorials.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
MOST_COMMANDS = 3
FEWER_MODELS = {"profile": ("group-median", "online"), "forecast": ("ses",)}
"""All models of durations and demand would take half a minute."""


def commands(section: str) -> list[list[str]]:
    lines = [line for block in re.findall(r"```\n(.*?)```", section, re.DOTALL) for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("gputwin ")]


def figures(section: str) -> list[str]:
    return re.findall(r"\*\*(\d[^*]*)\*\*", section)


def counts(*values: float) -> list[str]:
    return [format_count(value) for value in values]


def section(title: str) -> str:
    return next(part for part in SECTIONS if part.startswith(title))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the made log, read by the page's first command."""
    where = tmp_path_factory.mktemp("tutorials")
    runpy.run_path(str(REPOSITORY / "examples" / "make_log.py"))["main"](where / "jobs.csv")
    return where


@pytest.fixture(autouse=True)
def _there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    if not (folder / "cluster").exists():
        (first,) = commands(SECTIONS[0])
        assert main([*first, "--quiet"]) == 0


def results(title: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    given = commands(section(title))
    assert 1 + len(given) <= MOST_COMMANDS
    found = []
    for arguments in given:
        capsys.readouterr()
        fewer = [word for model in FEWER_MODELS.get(arguments[0], ()) for word in ("--model", model)]
        assert main([*arguments, *fewer, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    return found


def test_how_many_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    (plan,) = results("How many nodes", capsys)
    assert figures(section("How many nodes")) == counts(plan["nodes"], plan["record_nodes"])
    assert plan["cluster_nodes"] < plan["nodes"]


def test_would_better_predictions_help(capsys: pytest.CaptureFixture[str]) -> None:
    (profile,) = results("Would better predictions", capsys)
    assert {m["model"] for m in profile["models"]} == set(FEWER_MODELS["profile"])
    rules = {r["rule"]: r for r in profile["prediction_value"]["outcomes"]}
    waits = [format_duration(rules[rule]["mean_wait_seconds"]) for rule in ("fifo", "sjf, oracle")]
    kept = counts(100 * rules["group-median"]["gain_kept"])
    assert figures(section("Would better predictions")) == [*waits, *kept]


def test_which_team_causes_the_queueing(capsys: pytest.CaptureFixture[str]) -> None:
    run, limited = results("Which team causes", capsys)
    llm = next(r for r in run["tenants"] if r["tenant"] == "llm")
    own = next(r["gpu_hours"] for r in run["blocking"] if r["waiting"] == r["holding"] == "llm")
    stated = counts(llm["waited_gpu_hours"], own, llm["others_wait_gpu_hours"])
    waits = {r.pop("tenant"): r for r in limited["against"]["mean_wait_seconds_by_tenant"]}
    free, quota = "no fairness rule", "quota (llm 24 GPUs)"
    stated += [format_duration(waits["vision"][rule]) for rule in (free, quota)]
    stated += [format_duration(waits["llm"][rule]) for rule in (quota, free)]
    assert figures(section("Which team causes")) == stated
    assert llm["waited_gpu_hours"] == max(r["waited_gpu_hours"] for r in run["tenants"])


def test_what_will_demand_be_tomorrow(capsys: pytest.CaptureFixture[str]) -> None:
    (forecast,) = results("What will demand be", capsys)
    assert figures(section("What will demand be")) == counts(forecast["bins"])
    assert forecast["forecast"]
    assert forecast["verdicts"]


def test_the_guess_finds_the_mapping_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ingest", "jobs.csv", "--guess", "--quiet"]) == 0
    printed = capsys.readouterr()
    assert "total_gpus" in printed.out + printed.err


def test_words_of_the_glossary_are_in_order() -> None:
    lines = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    words = [line.split("|")[1].strip().lower() for line in lines if line.startswith("| ")][1:]
    assert len(words) > 25
    assert sorted(words) == words


def test_the_readme_answers_the_four_questions_with_the_same_commands() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    part = text.partition("## Four questions")[2].partition("\n## ")[0]
    shown = [[*line] for line in commands(part)]
    taught = [line for title in SECTIONS[1:] for line in commands(title)]
    assert [["cluster" if word == "LOG" else word for word in line] for line in shown] == taught
