"""Sequences of Knative's autoscaler tests as steps of ours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gputwin.autoscaling.decisions.interface import Observation
from gputwin.autoscaling.decisions.rules.knative import Kpa, KpaMemory

Case = dict[str, Any]


def _rule(spec: Case) -> Kpa:
    return Kpa(
        minimum=0,
        maximum=1_000_000,
        metric=spec["metric"],
        target=spec["target_value"],
        total=spec["total_value"],
        burst_capacity=spec["target_burst_capacity"],
        stable_window_s=spec["stable_window_seconds"],
        panic_threshold=spec["panic_threshold"],
        max_up_rate=spec["max_scale_up_rate"],
        max_down_rate=spec["max_scale_down_rate"],
        scale_down_delay_s=spec["scale_down_delay_seconds"],
        activation_scale=spec["activation_scale"],
        grace_s=0.0,
        reachable=spec["reachable"],
    )


def run(case: Case) -> list[Case]:
    """Return what ours gives at each step: replicas, excess burst capacity, validity and since when it panics.

    The source knows no limits and no grace. Its invalid result counts as 0 replicas; ours holds instead.
    """
    spec = dict(case["spec"])
    ready = case["initial_ready"]
    ago = case["initial_panic_started_seconds_ago"]
    # A new autoscaler over more than one ready replica starts in panic mode.
    since = 0.0 if ready > 1 else None
    if ago is not None:
        since = -float(ago)
    memory = KpaMemory(since, case["initial_max_panic_pods"] or ready, is_first=False)
    steps = []
    for step in case["steps"]:
        spec |= step.get("update_spec") or {}
        metric = spec["metric"]
        observation = Observation(
            step["t"],
            # What is asked for does not matter to the KPA; it holds this where it has no data.
            max(1, step["ready_pods"] or 0),
            step["ready_pods"],
            metrics={f"{metric}:stable": step["stable"], f"{metric}:panic": step["panic"]},
        )
        decision, memory = _rule(spec).decide(observation, memory)
        steps.append(
            {
                "pods": 0 if decision.held else decision.replicas,
                "excess_burst_capacity": decision.measures.get("excess_burst_capacity", 0),
                "valid": not decision.held,
                "panic_since": memory.panic_since_s,
            }
        )
        memory = replace(memory, zero_since_s=None)
    return steps


def agrees(case: Case) -> bool:
    for step, ours in zip(case["steps"], run(case), strict=True):
        if (ours["pods"], ours["valid"]) != (step["expected_pods"], step["expected_valid"]):
            return False
        burst = step["expected_excess_burst_capacity"]
        if burst is not None and abs(burst - ours["excess_burst_capacity"]) > 1:
            return False
        if "expected_panic_since" in step and step["expected_panic_since"] != ours["panic_since"]:
            return False
    return True
