"""How many replicas one metric asks for: the HPA's replica calculator, in whole milli-units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gputwin.autoscaling.decisions.hpa.spec import Tolerance, replicas_of
from gputwin.autoscaling.decisions.interface import Pod

MAX_INT64 = 2**63 - 1


class MetricError(Exception):
    """A metric from which no replica count can be computed."""


class Proposal(NamedTuple):
    """What one metric asks for: replicas, and usage as percent of the request or in milli-units."""

    replicas: int
    usage: int
    raw_average: int = 0
    """Mean usage per pod in milli-units, for a utilisation."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """When a pod's CPU sample counts."""

    initialization_s: float = 300.0
    """A pod younger than this counts only once it is ready and measured for a whole window since."""
    initial_delay_s: float = 30.0
    """An unready pod whose readiness last changed within this time of its start has never been ready."""
    window_s: float = 30.0
    """The span one sample averages over."""
    sample_age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Grouped:
    """Pods by what their samples are good for."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def group(pods: Sequence[Pod], metrics: Mapping[str, int], is_cpu: bool, readiness: Readiness) -> Grouped:
    """Return the pods sorted: counted, unready (usage 0 on the way up), missing a sample, or ignored."""
    ready = 0
    unready, missing, ignored = set(), set(), set()
    for pod in pods:
        if pod.is_deleting or pod.phase == "Failed":
            ignored.add(pod.name)
        elif pod.phase == "Pending":
            unready.add(pod.name)
        elif pod.name not in metrics:
            missing.add(pod.name)
        elif is_cpu and _is_unready(pod, readiness):
            unready.add(pod.name)
        else:
            ready += 1
    return Grouped(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _is_unready(pod: Pod, readiness: Readiness) -> bool:
    age = float("inf") if pod.age_s is None else pod.age_s
    since = age if pod.readiness_age_s is None else pod.readiness_age_s
    if age < readiness.initialization_s:
        return not pod.is_ready or since < readiness.window_s + readiness.sample_age_s
    never_ready = age == since or age - since < readiness.initial_delay_s
    return not pod.is_ready and never_ready


def by_utilization(
    current: int,
    percent: int,
    pods: Sequence[Pod],
    metrics: Mapping[str, int],
    requests: Mapping[str, int],
    tolerance: Tolerance,
    readiness: Readiness,
    is_cpu: bool = True,
) -> Proposal:
    """Return the replicas for a mean usage of `percent` of what pods request.

    Utilisation is floored to a whole percent before it is divided by the target.
    """
    if not pods:
        raise MetricError("no pods returned by selector while calculating replica count")
    groups = group(pods, metrics, is_cpu, readiness)
    counted = {
        name: used for name, used in metrics.items() if name not in groups.ignored and name not in groups.unready
    }
    if not counted:
        raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
    ratio, utilization, raw = _utilization(counted, requests, percent)
    grown = bool(groups.unready) and ratio > 1.0
    if not grown and not groups.missing:
        if tolerance.covers(ratio):
            return Proposal(current, utilization, raw)
        return Proposal(replicas_of(ratio * groups.ready), utilization, raw)
    if groups.missing and ratio < 1.0:
        # On the way down a missing pod is taken to use its whole request, or the target where that is more.
        share = max(100, percent)
        counted.update({name: requests[name] * share // 100 for name in groups.missing})
    elif groups.missing and ratio > 1.0:
        counted.update(dict.fromkeys(groups.missing, 0))
    if grown:
        counted.update(dict.fromkeys(groups.unready, 0))
    again, _, _ = _utilization(counted, requests, percent)
    return Proposal(_second(current, ratio, again, len(counted), tolerance), utilization, raw)


def by_average(
    current: int,
    target: int,
    pods: Sequence[Pod],
    metrics: Mapping[str, int],
    tolerance: Tolerance,
    readiness: Readiness,
    is_cpu: bool = False,
) -> Proposal:
    """Return the replicas for a mean of `target` milli-units per pod."""
    if not pods:
        raise MetricError("no pods returned by selector while calculating replica count")
    groups = group(pods, metrics, is_cpu, readiness)
    counted = {
        name: used for name, used in metrics.items() if name not in groups.ignored and name not in groups.unready
    }
    if not counted:
        raise MetricError("did not receive metrics for targeted pods (pods might be unready)")
    usage = sum(counted.values()) // len(counted)
    ratio = usage / target
    grown = bool(groups.unready) and ratio > 1.0
    if not grown and not groups.missing:
        if tolerance.covers(ratio):
            return Proposal(current, usage)
        return Proposal(replicas_of(ratio * groups.ready), usage)
    if groups.missing and ratio < 1.0:
        counted.update(dict.fromkeys(groups.missing, target))
    elif groups.missing and ratio > 1.0:
        counted.update(dict.fromkeys(groups.missing, 0))
    if grown:
        counted.update(dict.fromkeys(groups.unready, 0))
    again = sum(counted.values()) // len(counted) / target
    return Proposal(_second(current, ratio, again, len(counted), tolerance), usage)


def by_value(
    current: int, target: int, value: int, ready: int | None, tolerance: Tolerance, no_pods: bool = False
) -> Proposal:
    """Return the replicas for a metric of the whole (object or external) with a target value: ready × value ÷ target.

    From no replicas at all it is value ÷ target, without tolerance.
    """
    ratio = value / target
    if current == 0:
        return Proposal(replicas_of(ratio), value)
    if tolerance.covers(ratio):
        return Proposal(current, value)
    if no_pods or ready is None:
        raise MetricError("no pods returned by selector while calculating replica count")
    return Proposal(replicas_of(ratio * ready), value)


def by_value_per_pod(status: int, target: int, value: int, tolerance: Tolerance) -> Proposal:
    """Return the replicas for a metric of the whole with a target per pod: value ÷ target; `status` pods exist."""
    ratio = value / (target * status) if status else float("inf")
    replicas = status if tolerance.covers(ratio) else replicas_of(value / target)
    usage = value if status <= 1 else -(-value // status)
    return Proposal(replicas, usage)


def total(values: Sequence[int]) -> int:
    """Return the sum of an external metric's series, at most 2⁶³ − 1."""
    return min(sum(values), MAX_INT64)


def ready_pods(pods: Sequence[Pod]) -> int:
    """Return how many pods run and are ready."""
    return sum(1 for pod in pods if pod.phase == "Running" and pod.is_ready)


def _utilization(metrics: Mapping[str, int], requests: Mapping[str, int], target: int) -> tuple[float, int, int]:
    used = requested = entries = 0
    for name, value in metrics.items():
        if name in requests:
            used += value
            requested += requests[name]
            entries += 1
    if requested == 0:
        raise MetricError("no metrics returned matched known pods")
    percent = used * 100 // requested
    return percent / target, percent, used // entries


def _second(current: int, ratio: float, again: float, entries: int, tolerance: Tolerance) -> int:
    """Return the replicas once missing and unready pods have a usage; never against the first ratio's direction."""
    if tolerance.covers(again) or (ratio < 1.0 < again) or (again < 1.0 < ratio):
        return current
    replicas = replicas_of(again * entries)
    if (again < 1.0 and replicas > current) or (again > 1.0 and replicas < current):
        return current
    return replicas
