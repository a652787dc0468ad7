"""One default for the rules of scheduling, wherever a run is described."""

from __future__ import annotations

import inspect

import pytest
import typer
import yaml

import gputwin
from gputwin.cli.main import app, main
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.simulate import simulate

RULES = ("order", "backfill", "placement")
USUAL = {name: getattr(Scheduler(), name) for name in RULES}


def test_whoever_fits_may_overtake_by_default() -> None:
    assert USUAL == {"order": "fifo", "backfill": "greedy", "placement": "first-fit"}


def test_scenario_and_functions_have_the_schedulers_defaults() -> None:
    described = Scenario(trace="any")
    assert {name: str(getattr(described, name)) for name in RULES} == USUAL
    assert described.scheduler == Scheduler()
    given = inspect.signature(simulate).parameters
    # Without a placement it is the scenario's, which goes by how GPUs are shared.
    assert {name: given[name].default for name in RULES} == {**USUAL, "placement": None}
    run = gputwin.simulate("synthetic:philly?jobs=30", "homogeneous:2x8")
    assert {name: run.manifest["scheduler"][name] for name in RULES} == USUAL


@pytest.mark.parametrize("verb", ["simulate", "plan", "queueing"])
def test_verbs_leave_the_rules_to_the_scenario_and_help_says_which(verb: str) -> None:
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    options = {option.name: option for option in command.params}
    assert {name: options[name].default for name in RULES} == dict.fromkeys(RULES)
    assert {name: options[name].show_default for name in RULES} == USUAL


def test_a_saved_run_says_its_rules(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "simulate",
        "synthetic:philly?jobs=30",
        "--cluster",
        "homogeneous:2x8",
        "-q",
        "-o",
        str(tmp_path / "run"),
    ]
    assert main(command) == 0
    assert "order fifo, backfill greedy, placement first-fit" in " ".join(capsys.readouterr().out.split())
    written = yaml.safe_load((tmp_path / "run" / "scenario.yaml").read_text(encoding="utf-8"))
    assert {name: written[name] for name in RULES} == USUAL
