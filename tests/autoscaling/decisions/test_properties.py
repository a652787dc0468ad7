"""What must hold for every rule whatever it sees: limits, no oscillation, more load never means fewer, holding."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gputwin.autoscaling.decisions.interface import Autoscaler, LoadForecast, Observation
from gputwin.autoscaling.decisions.registry import RULES as REGISTERED
from tests.autoscaling.decisions.made import RULES, follow, rule_of, world

LOADS = st.floats(0.0, 60.0, allow_nan=False)
SIZES = st.integers(1, 40)
BROKEN = st.sampled_from([None, math.nan, -1.0, math.inf, -math.inf])
ANY = st.one_of(BROKEN, st.floats(0.0, 1e9, allow_nan=False))


def test_every_registered_rule_is_tried() -> None:
    tried = {settings["rule"] for settings in RULES.values()}
    # Jobs end by themselves: that rule starts some and follows no load.
    assert set(REGISTERED.names()) - tried == {"keda-job"}


@pytest.mark.parametrize("name", RULES)
@given(load=LOADS, start=SIZES)
@example(load=1.0, start=1)
@settings(max_examples=12, deadline=None)
def test_constant_load_never_oscillates(name: str, load: float, start: int) -> None:
    sizes = [start, *(decision.replicas for decision in follow(rule_of(name), [load] * 200, start))]
    changes = [b - a for a, b in itertools.pairwise(sizes) if a != b]
    reversals = sum(before * after < 0 for before, after in itertools.pairwise(changes))
    # The HPA floors a small utilisation to a whole percent, goes too low for once, and corrects itself. A step has a fixed
    # size: of 1 replica at full load, 4 more are too many, and go again one by one; it never goes up a second time.
    assert reversals <= (name in ("hpa by use", "step")), sizes
    assert len(set(sizes[-20:])) == 1


@pytest.mark.parametrize("name", RULES)
@given(loads=st.lists(LOADS, min_size=1, max_size=20), more=st.floats(0.0, 30.0), size=SIZES)
@settings(max_examples=25, deadline=None)
def test_more_load_never_means_fewer(name: str, loads: list[float], more: float, size: int) -> None:
    """After the same past on the same size, a higher load asks for at least as many."""
    outcomes = []
    for last in (loads[-1], loads[-1] + more):
        autoscaler = Autoscaler(rule_of(name))
        for i, load in enumerate([*loads[:-1], last]):
            decision = autoscaler.decide(world(15.0 * i, load, size))
        outcomes.append(decision.replicas)
    assert outcomes[0] <= outcomes[1]


@st.composite
def anything(draw: st.DrawFn, time_s: float, size: int) -> Observation:
    forecast = None
    if draw(st.booleans()):
        values = tuple(draw(st.lists(st.one_of(st.floats(), st.just(3.0)), max_size=3)))
        made = time_s - draw(st.floats(-10.0, 1e5))
        forecast = LoadForecast(made, 60.0, {0.9: values}, draw(st.sampled_from(["", "no history"])))
    return Observation(
        time_s,
        size,
        draw(st.one_of(st.none(), st.integers(0, 50))),
        draw(st.integers(0, 5)),
        metrics={name: draw(ANY) for name in ("gpu", "cpu")},
        ages_s={name: draw(st.sampled_from([0.0, 1e6, math.nan])) for name in ("gpu", "in_flight")},
        in_flight=draw(ANY),
        queue_length=draw(ANY),
        arrival_rate_per_s=draw(ANY),
        service_time_s=draw(ANY),
        forecast=forecast,
    )


@pytest.mark.parametrize("name", RULES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_never_outside_the_limits(name: str, data: st.DataObject) -> None:
    rule = rule_of(name)
    autoscaler, size = Autoscaler(rule), data.draw(st.integers(1, 60))
    for i in range(6):
        decision = autoscaler.decide(data.draw(anything(15.0 * i, size)))
        assert rule.minimum <= decision.replicas <= rule.maximum
        assert decision.rule
        assert decision.reasons
        size = decision.replicas


def broken(value: float | None, time_s: float, size: int, **more: Any) -> Observation:
    return Observation(
        time_s,
        size,
        size,
        metrics={"gpu": value, "cpu": value},
        in_flight=value,
        queue_length=value,
        arrival_rate_per_s=value,
        service_time_s=value,
        **more,
    )


@pytest.mark.parametrize("name", [name for name in RULES if name != "scheduled"])
@pytest.mark.parametrize("value", [None, math.nan, -1.0, math.inf])
def test_metrics_that_are_no_figures_hold_and_say_why(name: str, value: float | None) -> None:
    forecast = LoadForecast(0.0, 60.0, {0.9: ()}, failed="too little history")
    decision = Autoscaler(rule_of(name)).decide(broken(value, 0.0, 7, forecast=forecast))
    assert decision.replicas == 7
    assert decision.held
    words = " ".join(decision.reasons)
    assert any(word in words for word in ("missing", "NaN", "cannot be", "failed")), words


@pytest.mark.parametrize(
    "name",
    ["threshold", "step", "hpa", "hpa by use", "keda", "knative", *("velocity", "backoff", "cooldown", "bounds")],
)
def test_late_metrics_hold_and_say_how_late(name: str) -> None:
    seen = world(0.0, 0.0, 7)
    late = Observation(0.0, 7, 7, metrics=seen.metrics, in_flight=0.0, ages_s={"gpu": 900.0, "in_flight": 900.0})
    decision = Autoscaler(rule_of(name)).decide(late)
    assert (decision.replicas, decision.held) == (7, True)
    assert "15 min old" in " ".join(decision.reasons)


@pytest.mark.parametrize("rule", ["knative", "keda", "hpa", "threshold", "step", "predictive"])
@given(value=BROKEN, size=st.integers(1, 9), times=st.integers(1, 60))
@settings(max_examples=30, deadline=None)
def test_zero_is_never_reached_by_accident(rule: str, value: float | None, size: int, times: int) -> None:
    from gputwin.autoscaling.decisions.registry import make_rule

    autoscaler = Autoscaler(make_rule(rule, minimum=0))
    for i in range(times):
        decision = autoscaler.decide(broken(value, 60.0 * i, size))
        assert decision.replicas == size
        assert decision.held


INNERS = ("velocity", "cooldown", "backoff", "bounds", "scheduled")


@pytest.mark.parametrize("rule", [*INNERS, "hybrid"])
@pytest.mark.parametrize("value", [None, math.nan, -1.0, math.inf])
def test_zero_is_never_reached_by_accident_through_another_rule(rule: str, value: float | None) -> None:
    from gputwin.autoscaling.decisions.registry import make_rule

    to_zero = {"rule": "keda", "minimum": 0, "triggers": [{"metric": "in_flight", "target": 0.8}]}
    more: dict[str, Any] = {"inner": to_zero}
    if rule == "scheduled":
        more |= {"minimum": 0, "otherwise": 0}
    elif rule == "bounds":
        more |= {"minimum": 0}
    elif rule == "hybrid":
        more = {"minimum": 0, "reactive": to_zero, "base": {"rule": "predictive", "minimum": 0}}
    autoscaler = Autoscaler(make_rule(rule, **more))
    for i in range(40):
        decision = autoscaler.decide(broken(value, 60.0 * i, 3))
        assert (decision.replicas, decision.held) == (3, True)


@pytest.mark.parametrize("value", [None, math.nan, -1.0, math.inf])
def test_jobs_are_neither_started_nor_ended_on_a_queue_that_cannot_be_read(value: float | None) -> None:
    from gputwin.autoscaling.decisions.registry import make_rule

    decision = Autoscaler(make_rule("keda-job")).decide(broken(value, 0.0, 4))
    assert (decision.replicas, decision.held) == (4, True)
    assert "queue_length" in decision.reasons[0]


@pytest.mark.parametrize("value", [None, math.nan, -1.0, math.inf])
def test_a_schedule_goes_on_while_the_rule_beside_it_holds(value: float | None) -> None:
    decision = Autoscaler(rule_of("scheduled")).decide(broken(value, 0.0, 7))
    assert decision.replicas == 7
    assert decision.held
    assert Autoscaler(rule_of("scheduled")).decide(broken(value, 0.0, 1)).replicas == 2


@pytest.mark.parametrize("name", ["predictive", "hybrid"])
@pytest.mark.parametrize(
    "forecast",
    [
        None,
        LoadForecast(0.0, 60.0, {0.9: (0.0,) * 9}, failed="the model did not converge"),
        LoadForecast(-1e5, 60.0, {0.9: (0.0,) * 9}),
        LoadForecast(0.0, 60.0, {0.9: (math.nan,) * 9}),
        LoadForecast(0.0, 60.0, {0.9: (-3.0,) * 9}),
        LoadForecast(0.0, 60.0, {}),
    ],
    ids=["none", "failed", "late", "NaN", "negative", "empty"],
)
def test_a_forecast_that_failed_takes_no_replica_away(name: str, forecast: LoadForecast | None) -> None:
    seen = world(0.0, 0.0, 7)._replace(forecast=forecast)
    decision = Autoscaler(rule_of(name)).decide(seen)
    assert (decision.replicas, decision.held) == (7, True)
    assert "forecast" in decision.reasons[0]


def test_one_failed_metric_blocks_scaling_down_but_not_up() -> None:
    from gputwin.autoscaling.decisions.registry import make_rule

    both = [{"type": "External", "name": "queue_length", "target": 5}, {"type": "External", "name": "lag", "target": 5}]
    rule = make_rule("hpa", metrics=both, maximum=20)
    low = Autoscaler(rule).decide(Observation(0.0, 6, 6, queue_length=5))
    high = Autoscaler(rule).decide(Observation(0.0, 6, 6, queue_length=50))
    assert (low.replicas, low.held) == (6, True)
    assert (high.replicas, high.held) == (10, False)
    assert "lag is missing" in " ".join(high.reasons)


@pytest.mark.parametrize("name", RULES)
@given(loads=st.lists(LOADS, min_size=1, max_size=10), size=SIZES)
@settings(max_examples=10, deadline=None)
def test_decisions_are_pure(name: str, loads: list[float], size: int) -> None:
    """The same observation and memory give the same decision and memory, however often one asks."""
    rule = rule_of(name)
    memory = rule.start()
    for i, load in enumerate(loads):
        seen = world(15.0 * i, load, size)
        first = rule.decide(seen, memory)
        assert rule.decide(seen, memory) == first
        memory = first[1]
