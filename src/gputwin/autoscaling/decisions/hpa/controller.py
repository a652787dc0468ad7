"""One reconciliation of an HPA: metrics, the maximum over them, behaviour, limits, and the conditions it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gputwin.autoscaling.decisions.hpa.behavior import Log, limited, rate_limited, stabilized, stabilized_with, stored
from gputwin.autoscaling.decisions.hpa.calculator import MetricError, Readiness
from gputwin.autoscaling.decisions.hpa.proposals import FAILURES, propose
from gputwin.autoscaling.decisions.hpa.spec import Behavior, MetricTarget, Tolerance
from gputwin.autoscaling.decisions.interface import Observation


class Memory(NamedTuple):
    """What an HPA remembers between reconciliations."""

    recommendations: Log | None = None
    """None before the first one, when the current size is recorded as a recommendation."""
    ups: Log = ()
    downs: Log = ()
    scaled_to_zero: bool = False
    """Whether the HPA itself took the last replica away; only then does it come back from zero."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits, metrics and the controller's own settings."""

    minimum: int
    maximum: int
    metrics: tuple[MetricTarget, ...]
    behavior: Behavior | None
    tolerance: Tolerance
    """Of the direction's behaviour, or the controller's."""
    readiness: Readiness
    downscale_window_s: float
    """Stabilisation on the way down where no behaviour is given."""
    up_limit_factor: float
    up_limit_minimum: float
    scale_to_zero: bool
    late_after_s: float
    of_whole: bool
    """Whether a metric is of type Object or External; only then may it come back from zero."""


Condition = tuple[str, bool, str]
"""(type, status, reason), as in ("AbleToScale", True, "ReadyForNewScale")."""


class Reconciled(NamedTuple):
    """What one reconciliation did."""

    replicas: int
    wanted: int
    """What the metrics ask for, before stabilisation and limits."""
    stabilized: int
    proposals: tuple[tuple[str, int], ...]
    """What each metric asks for by itself."""
    conditions: tuple[Condition, ...]
    failures: tuple[str, ...]
    """Metrics that could not be computed, and why."""
    limiting: str = ""
    """The limit that set the number, where one did."""


def reconcile(settings: Settings, observation: Observation, memory: Memory) -> tuple[Reconciled, Memory]:
    """Return the outcome and the next memory."""
    now_s, current = observation.time_s, observation.replicas
    minimum, maximum = settings.minimum, settings.maximum
    log = ((now_s, current),) if memory.recommendations is None else memory.recommendations
    able: Condition = ("AbleToScale", True, "SucceededGetScale")
    from_zero = settings.scale_to_zero and memory.scaled_to_zero
    of_whole = settings.of_whole
    failures: tuple[str, ...] = ()
    proposals: tuple[tuple[str, int], ...] = ()
    conditions: tuple[Condition, ...] = ()
    limiting = ""
    if current == 0 and not (from_zero and (minimum != 0 or of_whole)):
        off = (able, ("ScalingActive", False, "ScalingDisabled"))
        return Reconciled(0, 0, 0, (), off, ()), memory._replace(recommendations=log)
    if current > maximum or 0 < current < minimum:
        desired = stable = wanted = maximum if current > maximum else minimum
        limiting = "TooManyReplicas" if current > maximum else "TooFewReplicas"
    else:
        proposals, failures, reason = _proposals(settings, observation)
        wanted = max((replicas for _, replicas in proposals), default=0)
        if not proposals or (failures and wanted < current):
            failed = (able, ("ScalingActive", False, reason))
            return (
                Reconciled(current, current, current, proposals, failed, failures),
                memory._replace(recommendations=log),
            )
        if settings.behavior is None:
            stable, log = stabilized(now_s, wanted, log, settings.downscale_window_s)
            factor, least = settings.up_limit_factor, settings.up_limit_minimum
            limit = limited(current, stable, minimum, maximum, factor, least)
        else:
            stable, log = stabilized_with(now_s, current, wanted, log, settings.behavior)
            ups, downs = memory.ups, memory.downs
            limit = rate_limited(now_s, current, stable, minimum, maximum, settings.behavior, ups, downs)
        desired, is_limited = limit.replicas, limit.replicas != stable
        if current == 0 and desired < minimum:
            desired = minimum
        limiting = limit.reason if is_limited else ""
        able = ("AbleToScale", True, "ReadyForNewScale")
        if stable != wanted:
            able = ("AbleToScale", True, "ScaleUpStabilized" if wanted >= current else "ScaleDownStabilized")
        conditions = (
            ("ScalingActive", True, "ValidMetricFound"),
            ("ScalingLimited", is_limited, limit.reason),
        )
    zeroed = memory.scaled_to_zero and settings.scale_to_zero
    ups, downs = memory.ups, memory.downs
    if desired != current:
        able = ("AbleToScale", True, "SucceededRescale")
        if settings.behavior is not None and desired > current:
            ups = stored(now_s, desired - current, ups, settings.behavior.up)
        elif settings.behavior is not None:
            downs = stored(now_s, current - desired, downs, settings.behavior.down)
        if settings.scale_to_zero:
            zeroed = current > 0 and desired == 0 and minimum == 0 and of_whole
            conditions = (*conditions, ("ScaledToZero", zeroed, "ScaledToZero" if zeroed else "NotScaledToZero"))
    outcome = Reconciled(desired, wanted, stable, proposals, (able, *conditions), failures, limiting)
    return outcome, Memory(log, ups, downs, zeroed)


def _proposals(
    settings: Settings, observation: Observation
) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...], str]:
    """Return what each metric asks for, what failed, and the first failure's reason."""
    reason = "FailedGetResourceMetric"
    proposals: list[tuple[str, int]] = []
    failures: list[str] = []
    for metric in settings.metrics:
        try:
            asked = propose(metric, observation, settings.tolerance, settings.readiness, settings.late_after_s)
            proposals.append((metric.name, asked.replicas))
        except MetricError as error:
            if not failures:
                reason = FAILURES.get(metric.type, "InvalidMetricSourceType")
            failures.append(f"{metric.name or metric.type}: {error}")
    return tuple(proposals), tuple(failures), reason
