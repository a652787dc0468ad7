"""One metric of an HPA read from an observation: the replicas it asks for, or why it cannot say."""

from __future__ import annotations

import math

from gputwin.autoscaling.decisions.hpa import calculator
from gputwin.autoscaling.decisions.hpa.calculator import MetricError, Proposal, Readiness
from gputwin.autoscaling.decisions.hpa.spec import MetricTarget, Tolerance, milli, replicas_of
from gputwin.autoscaling.decisions.interface import Observation, Pod
from gputwin.autoscaling.decisions.reading import read, why_unreadable

FAILURES = {
    "Resource": "FailedGetResourceMetric",
    "ContainerResource": "FailedGetContainerResourceMetric",
    "Pods": "FailedGetPodsMetric",
    "Object": "FailedGetObjectMetric",
    "External": "FailedGetExternalMetric",
}
"""The condition's reason where a metric of this type cannot be computed."""


def propose(
    metric: MetricTarget, observation: Observation, tolerance: Tolerance, readiness: Readiness, late_after_s: float
) -> int:
    """Return the replicas `metric` asks for; `MetricError` says why it cannot."""
    if metric.type in ("Object", "External"):
        return _of_whole(metric, observation, tolerance, late_after_s).replicas
    if metric.type not in FAILURES:
        raise MetricError(f"unknown metric source type '{metric.type}'")
    if observation.pods is None:
        return _of_means(metric, observation, tolerance, late_after_s)
    return _of_pods(metric, observation, observation.pods, tolerance, readiness).replicas


def _of_pods(
    metric: MetricTarget, observation: Observation, pods: tuple[Pod, ...], tolerance: Tolerance, readiness: Readiness
) -> Proposal:
    name = f"{metric.container}/{metric.name}" if metric.container else metric.name
    values = {pod.name: pod.metrics.get(name) for pod in pods}
    metrics = {pod: milli(value) for pod, value in values.items() if value is not None and 0 <= value < math.inf}
    if not metrics:
        raise MetricError(f"no metrics returned for {name}")
    is_cpu = metric.type != "Pods" and metric.name == "cpu"
    if metric.target_type != "Utilization":
        target = milli(metric.target)
        return calculator.by_average(observation.replicas, target, pods, metrics, tolerance, readiness, is_cpu=is_cpu)
    requests = {}
    for pod in pods:
        if name not in pod.requests:
            raise MetricError(f"missing request for {metric.name} in {pod.name}")
        requests[pod.name] = milli(pod.requests[name])
    return calculator.by_utilization(
        observation.replicas, int(metric.target), pods, metrics, requests, tolerance, readiness, is_cpu
    )


def _of_whole(metric: MetricTarget, observation: Observation, tolerance: Tolerance, late_after_s: float) -> Proposal:
    value = read(observation, metric.name, late_after_s)
    if value is None:
        raise MetricError(why_unreadable(observation, metric.name, late_after_s))
    amount, target = milli(value), milli(metric.target)
    pods = observation.pods
    if metric.target_type == "AverageValue":
        seen = observation.ready
        status = observation.replicas if seen is None else seen + observation.starting
        return calculator.by_value_per_pod(status, target, amount, tolerance)
    ready = calculator.ready_pods(pods) if pods is not None else observation.ready
    # Without a list of pods, none ready is a start that is still under way, not a reason to have none.
    return calculator.by_value(observation.replicas, target, amount, ready, tolerance, no_pods=pods == () or not ready)


def _of_means(metric: MetricTarget, observation: Observation, tolerance: Tolerance, late_after_s: float) -> int:
    """Return the replicas where only the mean over ready replicas is known; those that start count as unready."""
    name = f"{metric.container}/{metric.name}" if metric.container else metric.name
    value = read(observation, name, late_after_s)
    if value is None:
        raise MetricError(why_unreadable(observation, name, late_after_s))
    ready, starting, current = observation.ready, observation.starting, observation.replicas
    if not ready:
        raise MetricError(f"no replica is ready, so {name} says nothing")
    is_use = metric.target_type == "Utilization"
    usage = math.floor(value * 100.0 + 1e-9) if is_use else milli(value)
    target = metric.target if is_use else metric.target * 1000.0
    ratio = usage / target
    if ratio > 1.0 and starting > 0:
        everyone = ready + starting
        shared = math.floor(value * 100.0 * ready / everyone + 1e-9) if is_use else usage * ready // everyone
        again = shared / target
        if tolerance.covers(again) or again < 1.0:
            return current
        return max(replicas_of(again * everyone), current)
    return current if tolerance.covers(ratio) else replicas_of(ratio * ready)
