"""One sensible setting of each rule, and worlds in which a load becomes the metrics they read."""

from __future__ import annotations

from typing import Any

from gputwin.autoscaling.decisions.interface import Autoscaler, Decision, LoadForecast, Observation, Rule
from gputwin.autoscaling.decisions.registry import make_rule

QUICK = {"up_for_s": 0, "down_for_s": 30}
THRESHOLD = {"rule": "threshold", "minimum": 1, "maximum": 40, **QUICK}
EXTERNAL = [{"type": "External", "name": "in_flight", "target": 0.8}]
HPA = {"rule": "hpa", "minimum": 1, "maximum": 40, "metrics": EXTERNAL}
HPA_BY_USE = {
    "rule": "hpa",
    "minimum": 1,
    "maximum": 40,
    "metrics": [{"type": "Resource", "name": "gpu", "target": 70, "target_type": "Utilization"}],
    "behavior": {},
}
PREDICTIVE = {"rule": "predictive", "minimum": 1, "maximum": 40, "service_s": 1.0}
RULES: dict[str, dict[str, Any]] = {
    "threshold": THRESHOLD,
    "step": {"rule": "step", "minimum": 1, "maximum": 40, "warmup_s": 30},
    "hpa": HPA,
    "hpa by use": HPA_BY_USE,
    "keda": {"rule": "keda", "minimum": 1, "maximum": 40, "triggers": [{"metric": "in_flight", "target": 0.8}]},
    "knative": {"rule": "knative", "minimum": 1, "maximum": 40, "target": 0.8, "total": 1.0},
    "predictive": PREDICTIVE,
    "hybrid": {"rule": "hybrid", "minimum": 1, "maximum": 40, "base": PREDICTIVE, "reactive": HPA},
    "velocity": {"rule": "velocity", "inner": HPA, "factor": 0.5},
    "cooldown": {"rule": "cooldown", "inner": HPA},
    "backoff": {"rule": "backoff", "inner": HPA},
    "bounds": {"rule": "bounds", "inner": HPA, "minimum": 1, "maximum": 40},
    "bounds with warm ones": {"rule": "bounds", "inner": HPA, "minimum": 1, "maximum": 40, "warm": 2},
    "scheduled": {"rule": "scheduled", "minimum": 1, "maximum": 40, "otherwise": 2, "inner": HPA},
}
"""Rules that follow a load, by a name for the test."""


def rule_of(name: str) -> Rule[Any]:
    settings = dict(RULES[name])
    return make_rule(settings.pop("rule"), **settings)


def world(time_s: float, load: float, replicas: int) -> Observation:
    """Return what is seen of `load` busy replicas' worth of requests on `replicas`, all ready."""
    use = load / replicas if replicas else 0.0
    rates = (load,) * 1000
    return Observation(
        time_s,
        replicas,
        replicas,
        metrics={"gpu": use, "cpu": use},
        in_flight=load,
        queue_length=load,
        arrival_rate_per_s=load,
        service_time_s=1.0,
        latency_s={"p95": 1.0 + use},
        forecast=LoadForecast(time_s, 60.0, {0.5: rates, 0.9: rates}),
    )


def follow(rule: Rule[Any], loads: list[float], replicas: int, step_s: float = 15.0) -> list[Decision]:
    """Return the decisions on a series of loads, each carried out before the next."""
    autoscaler = Autoscaler(rule)
    decisions = []
    for i, load in enumerate(loads):
        decision = autoscaler.decide(world(i * step_s, load, replicas))
        decisions.append(decision)
        replicas = decision.replicas
    return decisions
