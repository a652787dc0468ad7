"""Cases of the HPA's own test tables as calls of ours."""

from __future__ import annotations

from typing import Any

from gputwin.autoscaling.decisions.hpa import calculator
from gputwin.autoscaling.decisions.hpa.behavior import (
    change_within,
    limited,
    rate_limited,
    stabilized,
    stabilized_with,
    stored,
)
from gputwin.autoscaling.decisions.hpa.calculator import MetricError, Readiness
from gputwin.autoscaling.decisions.hpa.controller import Memory, reconcile
from gputwin.autoscaling.decisions.hpa.spec import Behavior, MetricTarget, Policy, ScalingRules, Tolerance
from gputwin.autoscaling.decisions.interface import Observation, Pod
from gputwin.autoscaling.decisions.rules.hpa import Hpa

Case = dict[str, Any]
READINESS = Readiness(initialization_s=120.0, initial_delay_s=10.0, window_s=60.0)
NOW_S = 100_000.0


def _pods(given: list[Case]) -> list[Pod]:
    return [
        Pod(f"pod-{i}", pod["ready"] == "True", pod["phase"], pod["deleting"], pod["age_seconds"])
        for i, pod in enumerate(given)
    ]


def _container_usage(levels: list[int] | None, container: str | None) -> int | None:
    """Return the pod's usage, or one container's; None where the metrics source has none."""
    if levels is None:
        return None
    if container is None:
        return sum(levels)
    index = int(container.removeprefix("container")) - 1
    return levels[index] if index < len(levels) else None


def run_calculator(case: Case) -> Case:
    """Return replicas and usage, or the error, of one case of the replica calculator."""
    pods, kind = _pods(case["pods"]), case["kind"]
    tolerance = Tolerance(case["tolerance_up"], case["tolerance_down"])
    current = case["current_replicas"]
    try:
        if kind == "resource":
            return _resource(case, pods, tolerance)
        if kind == "pods":
            metrics = {
                f"pod-{i}": p["metric_milli"] for i, p in enumerate(case["pods"]) if p["metric_milli"] is not None
            }
            done = calculator.by_average(current, case["target_milli"], pods, metrics, tolerance, READINESS)
        elif kind in ("object_per_pod", "external_per_pod"):
            done = calculator.by_value_per_pod(
                current, case["target_per_pod_milli"], calculator.total(case["values_milli"]), tolerance
            )
        else:
            value, ready = calculator.total(case["values_milli"]), calculator.ready_pods(pods)
            done = calculator.by_value(current, case["target_milli"], value, ready, tolerance, no_pods=not pods)
    except MetricError as error:
        return {"error": str(error)}
    return {"replicas": done.replicas, "usage_milli": done.usage}


def _resource(case: Case, pods: list[Pod], tolerance: Tolerance) -> Case:
    container = case["container"]
    metrics, requests = {}, {}
    for pod, given in zip(pods, case["pods"], strict=True):
        usage = _container_usage(given["usage_milli_by_container"], container)
        if usage is not None:
            metrics[pod.name] = usage
        if given["request_milli_per_container"] is None:
            raise MetricError("missing request for cpu")
        requests[pod.name] = given["request_milli_per_container"] * (2 if container is None else 1)
    for i, levels in enumerate(case.get("superfluous_usage_milli_by_container", [])):
        usage = _container_usage(levels, container)
        if usage is not None:
            metrics[f"superfluous-{i}"] = usage
    if "metric_pod_names" in case:
        levels = zip(case["metric_pod_names"], case["metric_levels"], strict=True)
        metrics = {name: _container_usage(level, container) for name, level in levels}
    if case.get("target_utilization_percent") is None:
        done = calculator.by_average(
            case["current_replicas"], case["target_milli"], pods, metrics, tolerance, READINESS, is_cpu=True
        )
        return {"replicas": done.replicas, "raw_average_milli": done.usage}
    done = calculator.by_utilization(
        case["current_replicas"], case["target_utilization_percent"], pods, metrics, requests, tolerance, READINESS
    )
    return {"replicas": done.replicas, "utilization_percent": done.usage, "raw_average_milli": done.raw_average}


def agrees_calculator(case: Case) -> bool:
    ours = run_calculator(case)
    if case["expected_error"]:
        return case["expected_error"] in ours.get("error", "")
    return all(case.get(f"expected_{name}") in (value, None) for name, value in ours.items()) and "replicas" in ours


def _rules(given: Case) -> ScalingRules:
    policies = tuple(Policy(p["type"], p["value"], p["period_seconds"]) for p in given["policies"])
    window = given["stabilization_window_seconds"]
    return ScalingRules(300 if window is None else window, given["select_policy"], policies, given.get("tolerance"))


def _log(entries: list[Case], value: str) -> tuple[tuple[float, int], ...]:
    return tuple((NOW_S - entry["age_seconds"], entry[value]) for entry in entries)


def run_behavior(table: str, case: Case) -> Case:
    """Return what ours gives for one case of a table of the behaviour file."""
    if table == "behavior_rate":
        behavior = Behavior(_rules(case["scale_up"]), _rules(case["scale_down"]))
        ups, downs = _log(case["scale_up_events"], "replica_change"), _log(case["scale_down_events"], "replica_change")
        done = rate_limited(
            NOW_S,
            case["current_replicas"],
            case["desired_replicas"],
            case["min_replicas"],
            case["max_replicas"],
            behavior,
            ups,
            downs,
        )
        return {"replicas": done.replicas, "condition": done.reason}
    if table == "limits_without_behavior":
        done = limited(
            case["current_replicas"],
            case["desired_replicas"],
            case["min_replicas"],
            case["max_replicas"],
            case["scale_up_limit_factor"],
            case["scale_up_limit_minimum"],
        )
        return {"replicas": done.replicas, "condition": done.reason}
    if table == "stabilization_legacy":
        log = _log(case["recommendations"], "replicas")
        replicas, log = stabilized(NOW_S, case["desired_replicas"], log, case["window_seconds"])
        return {"replicas": replicas, "log_length": len(log)}
    if table == "stabilization":
        behavior = Behavior(
            ScalingRules(case["scale_up_window_seconds"]), ScalingRules(case["scale_down_window_seconds"])
        )
        log = _log(case["recommendations"], "replicas")
        replicas, log = stabilized_with(NOW_S, case["current_replicas"], case["desired_replicas"], log, behavior)
        return {"replicas": replicas, "log": [entry for _, entry in log]}
    assert table == "store_scale_events", table
    events = _log(case["previous_events"], "replica_change")
    rules = case["rules"] and _rules(case["rules"])
    after = stored(NOW_S, case["replica_change"], events, rules or None)
    return {
        "change_in_last_60s": change_within(NOW_S, 60, events),
        "events": [{"replica_change": change, "outdated": False} for _, change in after],
    }


def agrees_behavior(table: str, case: Case) -> bool:
    ours = run_behavior(table, case)
    return all(
        value == case[f"expected_{name}"] for name, value in ours.items() if case[f"expected_{name}"] is not None
    )


def _controller_metric(given: Case) -> MetricTarget:
    name = given.get("resource") or given.get("metric") or ""
    for key, kind, unit in (
        ("target_utilization_percent", "Utilization", 1),
        ("target_average_value_milli", "AverageValue", 1000),
        ("target_value_milli", "Value", 1000),
    ):
        if given.get(key) is not None:
            return MetricTarget(given["type"], name, given[key] / unit, kind, given.get("container") or "")
    return MetricTarget(given["type"], name, 1.0)


def _controller_observation(case: Case) -> Observation:
    levels, requests = case["reported_levels_milli"], case.get("reported_cpu_requests_milli") or []
    names = {metric.get("resource") or metric.get("metric") or "" for metric in case["metrics"]}
    names |= {f"{metric.get('container')}/{metric.get('resource')}" for metric in case["metrics"]}

    def at(key: str, i: int, default: Any) -> Any:
        given = case.get(key)
        return given[i] if given and i < len(given) else default

    pods = tuple(
        Pod(
            f"pod-{i}",
            at("pod_ready", i, "True") == "True",
            at("pod_phase", i, "Running"),
            bool(at("pod_deleting", i, False)),
            at("pod_age_seconds", i, None),
            metrics=dict.fromkeys(names, levels[i] / 1000) if i < len(levels) else {},
            requests=dict.fromkeys(names, requests[i] / 1000) if i < len(requests) else {},
        )
        for i in range(case["pods_listed"])
    )
    whole = _whole(case)
    status = case["status_replicas"]
    return Observation(NOW_S, case["spec_replicas"], status, metrics=dict.fromkeys(names, whole), pods=pods)


def _whole(case: Case) -> float | None:
    """Return an object's or external metric's value; beside a resource metric the levels are the pods', so it has none."""
    kinds, levels = {metric["type"] for metric in case["metrics"]}, case["reported_levels_milli"]
    if not levels or kinds & {"Resource", "ContainerResource"}:
        return None
    # An object has one value; an external metric is the sum of its series.
    return (levels[0] if "Object" in kinds else sum(levels)) / 1000


def run_controller(case: Case) -> Case:
    """Return replicas and conditions of one reconciliation.

    Cases that do not say whether scaling to zero is on have it on, unless their name says otherwise.
    """
    zero = case.get("scale_to_zero_enabled", "HPAScaleToZero disabled" not in case["id"])
    own = case.get("configurable_tolerance_enabled", False)
    behavior = None
    if case.get("scale_up_rules") or case.get("scale_down_rules"):
        sides = {}
        for side in ("up", "down"):
            given = case.get(f"scale_{side}_rules")
            if given:
                sides[side] = _rules(given if own else {**given, "tolerance": None})
        behavior = Behavior(**sides)
    rule = Hpa(
        case["min_replicas"],
        case["max_replicas"],
        tuple(_controller_metric(metric) for metric in case["metrics"]),
        behavior,
        up_limit_factor=8.0,
        scale_to_zero=zero,
        readiness=READINESS,
    )
    conditions = {entry["type"]: entry["status"] == "True" for entry in case.get("initial_conditions", [])}
    log = None if case.get("recommendations") is None else _log(case["recommendations"], "replicas")
    memory = Memory(log, scaled_to_zero=conditions.get("ScaledToZero", False))
    done, _ = reconcile(rule.settings, _controller_observation(case), memory)
    return {
        "replicas": done.replicas,
        "scale_updated": done.replicas != case["spec_replicas"],
        "conditions": [{"type": t, "status": str(s), "reason": r} for t, s, r in done.conditions],
    }


def agrees_controller(case: Case) -> bool:
    ours = run_controller(case)
    if ours["replicas"] != case["expected_replicas"]:
        return False
    if case.get("expected_scale_updated") not in (None, ours["scale_updated"]):
        return False
    wanted = case.get("expected_conditions") or []
    have = {entry["type"]: entry for entry in ours["conditions"]}
    return all(have.get(entry["type"]) == entry for entry in wanted)
