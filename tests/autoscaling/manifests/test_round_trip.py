"""What was exported decides alike when read back."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gputwin.autoscaling.decisions.hpa.calculator import Readiness
from gputwin.autoscaling.decisions.hpa.spec import Behavior, MetricTarget, Policy, ScalingRules
from gputwin.autoscaling.decisions.interface import Autoscaler, Rule
from gputwin.autoscaling.decisions.keda.jobs import STRATEGIES, JobStrategy
from gputwin.autoscaling.decisions.registry import make_rule
from gputwin.autoscaling.decisions.rules.hpa import Hpa
from gputwin.autoscaling.decisions.rules.keda import BEHAVIORS, Fallback, Formula, Keda, Trigger
from gputwin.autoscaling.decisions.rules.knative import Kpa
from gputwin.autoscaling.decisions.rules.scaledjob import ScaledJob
from gputwin.autoscaling.manifests.files import manifest_text, rule_of_text
from gputwin.autoscaling.pools.budgets import Budget
from gputwin.autoscaling.pools.interface import Node, NodeType, PoolObservation, Task
from gputwin.autoscaling.pools.karpenter import POLICIES, Karpenter
from gputwin.core.errors import UserError
from tests.autoscaling.decisions.made import world

POSITIVE = st.floats(0.001, 1e4, allow_nan=False)
SHARES = st.floats(0.0, 1.0, allow_nan=False)
SECONDS = st.integers(0, 3_600_000).map(lambda ms: ms / 1000)
LIMITS = st.tuples(st.integers(1, 10), st.integers(10, 100))
POLICY = st.builds(Policy, st.sampled_from(["Pods", "Percent"]), st.integers(1, 500), st.integers(1, 1800))
SIDES = st.builds(
    ScalingRules,
    st.integers(0, 3600),
    st.sampled_from(["Max", "Min", "Disabled"]),
    st.lists(POLICY, min_size=1, max_size=3).map(tuple),
    st.one_of(st.none(), SHARES),
)
BEHAVIOR = st.one_of(st.none(), st.builds(Behavior, SIDES, SIDES))
NAMES = st.sampled_from(["in_flight", "queue_length", "gpu", "cpu"])


@st.composite
def metrics(draw: st.DrawFn) -> MetricTarget:
    kind = draw(st.sampled_from(["Resource", "ContainerResource", "Pods", "Object", "External"]))
    if kind in ("Resource", "ContainerResource"):
        container = "main" if kind == "ContainerResource" else ""
        return MetricTarget(kind, draw(NAMES), draw(st.integers(1, 100)), "Utilization", container)
    target_type = "AverageValue" if kind == "Pods" else draw(st.sampled_from(["AverageValue", "Value"]))
    return MetricTarget(kind, draw(NAMES), draw(POSITIVE), target_type)


@st.composite
def hpas(draw: st.DrawFn) -> Hpa:
    return Hpa(
        *draw(LIMITS),
        tuple(draw(st.lists(metrics(), min_size=1, max_size=3))),
        draw(BEHAVIOR),
        draw(SHARES),
        draw(SECONDS),
        draw(st.floats(1.0, 8.0)),
        draw(st.booleans()),
        Readiness(*(draw(SECONDS) for _ in range(4))),
        draw(SECONDS),
    )


@st.composite
def kedas(draw: st.DrawFn) -> Keda:
    labels = ("a", "b", "")
    triggers = tuple(
        Trigger(draw(NAMES), draw(POSITIVE), draw(SHARES), draw(st.sampled_from(["AverageValue", "Value"])), label)
        for label in labels[: draw(st.integers(2, 3))]
    )
    if draw(st.booleans()):
        triggers = (*triggers, Trigger("cpu", float(draw(st.integers(1, 100))), 0.0, "Utilization"))
    formula = draw(st.one_of(st.none(), st.just(Formula("a > 3 ? a + b / 2 : max(a, b)", 2.5, 0.5))))
    minimum = draw(st.integers(0, 5))
    return Keda(
        minimum,
        draw(st.integers(5, 50)),
        triggers,
        formula,
        0 if minimum and draw(st.booleans()) else None,
        float(draw(st.integers(0, 900))),
        float(draw(st.integers(0, 900))),
        draw(
            st.one_of(st.none(), st.builds(Fallback, st.integers(0, 3), st.integers(0, 9), st.sampled_from(BEHAVIORS)))
        ),
        draw(BEHAVIOR),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(SECONDS),
    )


@st.composite
def kpas(draw: st.DrawFn) -> Kpa:
    total = draw(POSITIVE)
    window = draw(st.integers(6, 3600)) / 1
    return Kpa(
        draw(st.integers(0, 3)),
        draw(st.integers(3, 60)),
        draw(st.sampled_from(["concurrency", "rps"])),
        total * draw(st.floats(0.01, 1.0)),
        total,
        draw(st.sampled_from([-1.0, 0.0, 211.0])),
        window,
        window * draw(st.floats(0.01, 1.0)),
        draw(st.floats(1.1, 10.0)),
        draw(st.floats(1.1, 1000.0)),
        draw(st.floats(1.1, 10.0)),
        draw(SECONDS),
        draw(st.integers(0, 5)),
        draw(SECONDS),
        draw(st.booleans()),
        draw(SECONDS),
    )


JOBS = st.builds(
    ScaledJob,
    st.integers(0, 3),
    st.integers(3, 60),
    NAMES,
    POSITIVE,
    SHARES,
    st.builds(
        JobStrategy, st.sampled_from(STRATEGIES), st.one_of(st.none(), st.integers(-3, 3)), st.one_of(st.none(), SHARES)
    ),
    SECONDS,
)


def decide_alike(rule: Rule[Any], again: Rule[Any], loads: list[float]) -> None:
    first, second, size = Autoscaler(rule), Autoscaler(again), 2
    for i, load in enumerate(loads):
        seen = world(20.0 * i, load, size)
        decision = first.decide(seen)
        assert second.decide(seen) == decision
        size = decision.replicas


@given(rule=st.one_of(hpas(), kedas(), kpas(), JOBS), loads=st.lists(st.floats(0.0, 80.0), min_size=1, max_size=12))
@settings(max_examples=80, deadline=None)
def test_replica_rules(rule: Rule[Any], loads: list[float]) -> None:
    again = rule_of_text(manifest_text(rule))
    assert again == rule
    decide_alike(rule, again, loads)


TYPES = tuple(
    NodeType(f"{'spot' if spot else 'plain'}-{n}", n * (0.3 if spot else 1.0), {"cpu_milli": 4000 * n}, spot)
    for n in (1, 2, 4)
    for spot in (False, True)
)


@st.composite
def pools(draw: st.DrawFn) -> Karpenter:
    budget = st.builds(
        Budget,
        st.sampled_from(["0", "3", "25%", "100%"]),
        st.sampled_from([(), ("Empty",), ("Underutilized", "Drifted")]),
    )
    timed = st.just(Budget("0", (), "0 9 * * 1-5", 8 * 3600.0))
    return Karpenter(
        tuple(draw(st.lists(st.sampled_from(TYPES), min_size=1, unique_by=lambda kind: kind.name))),
        "pool",
        draw(st.sampled_from(POLICIES)),
        draw(st.one_of(st.none(), SECONDS)),
        tuple(draw(st.lists(st.one_of(budget, timed), max_size=3))),
        draw(st.floats(0.5, 5.0)),
        draw(st.sampled_from([{}, {"cpu_milli": 64000}, {"cpu_milli": 8000, "memory_mib": 1000, "gpu_milli": 3000}])),
        draw(st.booleans()),
        draw(st.integers(0, 20)),
        draw(SECONDS),
        draw(st.integers(2, 100)),
        draw(st.floats(0.0, 1e9)),
    )


@given(rule=pools(), sizes=st.lists(st.integers(0, 16000), max_size=8), waiting=st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_node_pools(rule: Karpenter, sizes: list[int], waiting: int) -> None:
    again = rule_of_text(manifest_text(rule), TYPES)
    assert isinstance(again, Karpenter)
    nodes = tuple(
        Node(f"n{i}", TYPES[i % len(TYPES)].name, (Task(f"t{i}", {"cpu_milli": size}),) if size else ())
        for i, size in enumerate(sizes)
    )
    tasks = tuple(Task(f"w{i}", {"cpu_milli": 3000}) for i in range(waiting))
    first, second = rule.start(), again.start()
    for i in range(3):
        seen = PoolObservation(3600.0 * i, nodes, tasks if i == 0 else ())
        ours, first = rule.decide(seen, first)
        theirs, second = again.decide(seen, second)
        assert ours == theirs


def test_other_rules_say_that_kubernetes_has_no_object_for_them() -> None:
    with pytest.raises(UserError, match="'threshold' has no Kubernetes manifest"):
        manifest_text(make_rule("threshold"))


def test_an_export_is_what_kubernetes_expects() -> None:
    metric = MetricTarget("Resource", "cpu", 60, "Utilization")
    manifest = yaml.safe_load(manifest_text(Hpa(2, 8, (metric,)), "web", "frontend"))
    assert manifest == {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "frontend"},
            "minReplicas": 2,
            "maxReplicas": 8,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
                }
            ],
        },
    }
