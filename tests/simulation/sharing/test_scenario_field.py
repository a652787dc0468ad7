"""Sharing in a scenario and on the command line: read, refused in one line, saved, and told to the user."""

from __future__ import annotations

import json

import pytest

from gputwin.cli.main import main
from gputwin.core.errors import UserError
from gputwin.simulation.scenario import scenario_of

TRACE = {"trace": "synthetic:pai2020?jobs=120", "cluster": "pai2020"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"sharing": "some"}, "known: exclusive, fraction, memory, mig, mps, time-slice"),
        ({"sharing": "time-slice:many=3"}, "has no parameter 'many'"),
        ({"sharing": "time-slice:most=0"}, "give 1 or more"),
        ({"interference": {"pairs": "x"}}, "interference.pairs"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(fields, words):
    with pytest.raises(UserError) as caught:
        scenario_of({**TRACE, **fields})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_scenario_says_how_gpus_are_shared_and_defaults_are_left_out():
    scenario = scenario_of({**TRACE, "sharing": "time-slice:most=3", "interference": None})
    assert scenario.to_data()["sharing"] == "time-slice:most=3"
    assert scenario.gpu_sharing.parameters == {"most": 3.0}
    assert "sharing" not in scenario_of({**TRACE, "sharing": "fraction"}).to_data()
    assert scenario_of(TRACE).gpu_sharing is None
    assert scenario_of({**TRACE, "sharing": "mps"}).gpu_sharing.pairs.types == ("light", "medium", "heavy")


def test_a_table_that_is_not_there_is_refused(capsys):
    assert main(["simulate", TRACE["trace"], "--cluster", "pai2020", "--interference", "nowhere.json"]) == 2
    said = capsys.readouterr().err.strip()
    assert "nowhere.json" in said
    assert "not a table of pairs" in said


def test_a_run_tells_what_was_drawn_and_what_neighbours_cost(tmp_path, capsys):
    given = ["--interference", "built-in", "-o", str(tmp_path / "run"), "--json"]
    assert main(["simulate", TRACE["trace"], "--cluster", "homogeneous:6x4", *given]) == 0
    told = capsys.readouterr()
    assert "120 of 120 jobs are of no type that the table of pairs knows" in told.err
    data = json.loads(told.out)
    assert "interference" in data["manifest"]["scenario"]
    parts = data["completion_parts_seconds"]
    assert parts["slow_neighbours"] > 0
    assert main(["simulate", str(tmp_path / "run" / "scenario.yaml"), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["completion_parts_seconds"] == parts


def test_jobs_that_share_gpus_whatever_they_ask_for_are_spread_unless_told_otherwise():
    placed = {
        name: str(scenario_of({**TRACE, "sharing": name}).placement)
        for name in ("exclusive", "fraction", "mig", "mps", "time-slice:most=2")
    }
    usual = dict.fromkeys(("exclusive", "fraction", "mig"), "first-fit")
    assert placed == {**usual, "mps": "least-loaded", "time-slice:most=2": "least-loaded"}
    assert str(scenario_of({**TRACE, "sharing": "mps", "placement": "first-fit"}).placement) == "first-fit"
    assert str(scenario_of({**TRACE, "sharing": {"name": "mps"}}).placement) == "least-loaded"
    shared = scenario_of(TRACE).with_(sharing="time-slice")
    assert str(shared.placement) == "least-loaded"
    assert str(shared.with_(sharing="fraction").placement) == "first-fit"
    assert str(scenario_of({**TRACE, "placement": "best-fit"}).with_(sharing="mps").placement) == "best-fit"


def test_mig_on_gpus_of_no_model_says_which_table_it_takes(capsys):
    asked = ["simulate", TRACE["trace"], "--cluster", "homogeneous:40x4", "--sharing", "mig", "--json"]
    assert main(asked) == 0
    told = capsys.readouterr().err
    assert "cuts all GPUs as A100-40GB: 160 of 160 GPUs have no model; give gpu_model" in told


def test_bandwidth_is_kept_from_neighbours_that_slow_each_other():
    """Without interference there is nothing to keep, and the user is told."""
    with pytest.raises(UserError, match="give interference"):
        scenario_of({"trace": "x", "sharing": "fraction:bandwidth=0.8"}).check()
    scenario_of({"trace": "x", "sharing": "fraction:bandwidth=0.8", "interference": "built-in"}).check()
