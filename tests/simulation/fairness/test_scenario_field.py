"""The field `fairness` of a scenario: written short or in full, checked, and given to the engine."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from gputwin.cli.fairness import fairness_from
from gputwin.cli.main import app
from gputwin.core.errors import UserError
from gputwin.simulation.scenario import scenario_of
from gputwin.simulation.tenants import Fairness, Terms
from tests.test_docs import code_blocks

TRACE = {"trace": "synthetic:philly?jobs=10"}


def test_a_rule_by_name_and_in_full() -> None:
    short = scenario_of({**TRACE, "fairness": "fair-share:half_life=60"})
    assert short.scheduler.fairness == Fairness("fair-share", {"half_life": 60.0})
    full = scenario_of({**TRACE, "fairness": {"policy": "drf", "tenants": {"a": {"weight": 2}, "b": {"gpus": 8}}}})
    assert full.scheduler.fairness == Fairness("drf", {}, {"a": Terms(2.0), "b": Terms(1.0, 8.0)})
    assert scenario_of(TRACE).scheduler.fairness is None


def test_groups_and_weights_by_resource_reach_the_engine() -> None:
    tenants = {"a": {"group": "x/y", "weight": 2}, "b": {"weights": {"gpu": 5}}}
    found = scenario_of({**TRACE, "fairness": {"policy": "hdrf", "tenants": tenants, "groups": {"x": 3}}}).scheduler
    terms = {"a": Terms(2.0, group="x/y"), "b": Terms(weights={"gpu": 5.0})}
    assert found.fairness == Fairness("hdrf", {}, terms, {"x": 3.0})
    only_terms = scenario_of({**TRACE, "fairness": {"policy": "none", "tenants": {"a": {"weight": 2}}}}).scheduler
    assert only_terms.fairness == Fairness("", {}, {"a": Terms(2.0)})


def test_terms_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "tenants.yaml"
    file.write_text("tenants: {a: {weight: 2}}\ngroups: {x: 3}\n")
    found = fairness_from("hdrf", "", "", ["a:group=x", "b:weight.gpu=5,gpus=4"], file)
    tenants = {"a": {"weight": 2, "group": "x"}, "b": {"weights": {"gpu": "5"}, "gpus": "4"}}
    assert found == {"policy": "hdrf", "groups": {"x": 3}, "tenants": tenants}
    assert fairness_from("", "", "", ["a:weight=2"], None) == {"policy": "none", "tenants": {"a": {"weight": "2"}}}
    assert fairness_from("", "", "", [], None) is None
    file.write_text("tenants: [a]\n")
    for terms, given in ((["a"], None), (["a:share=2"], None), ([], file), ([], tmp_path / "none.yaml")):
        with pytest.raises(UserError, match=r"^[^\n]+$"):
            fairness_from("hdrf", "", "", terms, given)
    for text in ("a", "a:", ":weight=2"):
        with pytest.raises(UserError, match="write NAME:weight=2"):
            fairness_from("hdrf", "", "", [text], None)


@pytest.mark.parametrize(
    "option",
    [["--quota", "a=1"], ["--guarantee", "a=1"], ["--tenant", "a:weight=2"], ["--tenants", "tenants.yaml"]],
    ids=lambda option: option[0],
)
def test_what_queues_say_already_cannot_be_given_again(option: list[str]) -> None:
    """Weights of tenants were ignored in silence."""
    command = ["simulate", TRACE["trace"], "--queues", "queues.yaml", *option]
    with pytest.raises(UserError, match="leave out --quota, --guarantee, --tenant and --tenants"):
        CliRunner().invoke(app, command, catch_exceptions=False)


def test_a_scenario_with_fairness_is_the_same_after_writing_and_reading() -> None:
    scenario = scenario_of({**TRACE, "fairness": {"policy": "quota:share=0.25", "tenants": {"a": {"gpus": 8}}}})
    assert scenario_of(yaml.safe_load(scenario.to_yaml())) == scenario


@pytest.mark.parametrize(
    ("fairness", "where"),
    [
        ({"policy": "drf", "weights": {}}, "fairness.weights"),
        ({"policy": "drf", "tenants": {"a": {"weight": 0}}}, "fairness.tenants.a.weight"),
        ({"policy": "quota", "tenants": {"a": {"gpus": -1}}}, "fairness.tenants.a.gpus"),
        ({"tenants": {}}, "fairness.policy"),
        ({"policy": "lottery", "tenants": {"a": {"weights": {"gpu": 0}}}}, "fairness.tenants.a.weights.gpu"),
        ({"policy": "hdrf", "groups": {"x": -1}}, "fairness.groups.x"),
        ("drf:weight", "fairness"),
    ],
)
def test_a_wrong_field_is_named_by_its_path(fairness: object, where: str) -> None:
    with pytest.raises(UserError) as error:
        scenario_of({**TRACE, "fairness": fairness})
    assert f"'{where}" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_scenario_in_the_docs_is_one() -> None:
    (block,) = code_blocks("fairness.md", "yaml")
    fairness = scenario_of(yaml.safe_load(block)).scheduler.fairness
    assert fairness is not None
    assert fairness.tenants == {"vc-00": Terms(2.0)}
