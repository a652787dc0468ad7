"""Rules, memories, observations and decisions as JSON and back; mistakes are one line with their path."""

from __future__ import annotations

import json

import pytest

from gputwin.autoscaling.decisions.interface import Autoscaler, Decision, LoadForecast, Observation, Pod
from gputwin.autoscaling.decisions.plain import from_plain, to_plain
from gputwin.autoscaling.decisions.registry import (
    autoscaler_from_plain,
    autoscaler_to_plain,
    make_rule,
    parse_rule,
    rule_from_plain,
    rule_to_plain,
)
from gputwin.core.errors import UserError
from tests.autoscaling.decisions.made import RULES, rule_of, world


@pytest.mark.parametrize("name", RULES)
def test_a_rule_stopped_and_restored_from_json_decides_the_same(name: str) -> None:
    loads = [3.0, 9.0, 25.0, 25.0, 2.0, 0.0, 14.0, 14.0, 1.0, 1.0, 30.0, 4.0] * 4
    straight, stopped = Autoscaler(rule_of(name)), Autoscaler(rule_of(name))
    size = 3
    for i, load in enumerate(loads):
        seen = from_plain(Observation, json.loads(json.dumps(to_plain(world(15.0 * i, load, size)))))
        first = straight.decide(world(15.0 * i, load, size))
        stopped = autoscaler_from_plain(json.loads(json.dumps(autoscaler_to_plain(stopped))))
        again = stopped.decide(seen)
        assert again == first
        assert from_plain(Decision, json.loads(json.dumps(to_plain(first)))) == first
        size = first.replicas


def test_an_observation_with_pods_and_forecast_comes_back() -> None:
    seen = Observation(
        5.0,
        2,
        pods=(Pod("a", metrics={"cpu": 0.5, "gpu": None}, requests={"cpu": 1.0}, age_s=3.0),),
        forecast=LoadForecast(0.0, 60.0, {0.5: (1.0, 2.0), 0.9: (3.0, 4.0)}),
    )
    assert from_plain(Observation, json.loads(json.dumps(to_plain(seen)))) == seen


@pytest.mark.parametrize(
    ("plain", "says"),
    [
        ({"rule": "treshold"}, "unknown scaling rule 'treshold'; did you mean 'threshold'?"),
        ({"minimum": 1}, "the key 'rule' is missing"),
        ({"rule": "hpa", "maximun": 3}, "hpa: there is no 'maximun'"),
        ({"rule": "hpa", "maximum": 2.5}, "hpa.maximum: give a whole number, not '2.5'"),
        ({"rule": "hpa", "metrics": [{"type": "Pods", "name": "q"}]}, "hpa.metrics[0]: 'target' is missing"),
        ({"rule": "hpa", "minimum": 5, "maximum": 3}, "hpa: the limits 5 to 3 are not"),
        ({"rule": "velocity", "inner": {"rule": "hpa", "tolerance": "x"}}, "velocity.inner.tolerance: give a number"),
        ({"rule": "threshold", "bands": [{"metric": "gpu", "up": 0.5, "down": 0.7}]}, "gpu: the lower threshold 0.7"),
        ({"rule": "keda", "formula": {"text": "a +", "target": 1}}, "the formula 'a +' ends too early"),
        ({"rule": "keda", "formula": {"text": "a", "target": 1}}, "the formula reads 'a', which is no trigger"),
        (["hpa"], "give a mapping"),
    ],
)
def test_mistakes_are_one_line_with_their_path(plain: object, says: str) -> None:
    with pytest.raises(UserError) as caught:
        rule_from_plain(plain)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_rules_are_written_as_text_with_limits_around_them() -> None:
    rule = parse_rule("threshold:up_for_s=30+velocity:factor=0.5+bounds:warm=2,maximum=9")
    same = make_rule(
        "bounds",
        warm=2,
        maximum=9,
        inner={"rule": "velocity", "factor": 0.5, "inner": {"rule": "threshold", "up_for_s": 30}},
    )
    assert rule == same
    assert rule_from_plain(rule_to_plain(rule)) == rule
    with pytest.raises(UserError, match="'hpa' is no limit around another rule"):
        parse_rule("threshold+hpa")
