"""The field `fairness` of a scenario: written short or in full, checked, and given to the engine."""

from __future__ import annotations

import pytest
import yaml

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
