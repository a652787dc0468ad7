"""One reconciliation of an HPA: metrics, the maximum over them, behaviour, limits, and the conditions it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from gputwin.autoscaling.decisions.hpa.behavior import (
    WITHIN,
    Log,
    limited,
    rate_limited,
    stabilized,
    stabilized_with,
    stored,
)
from gputwin.autoscaling.decisions.hpa.calculator import MetricError, Readiness
from gputwin.autoscaling.decisions.hpa.proposals import FAILURES, propose
from gputwin.autoscaling.decisions.hpa.spec import Behavior, MetricTarget, Tolerance
from gputwin.autoscaling.decisions.interface import Observation, record


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


DISABLED = "ScalingDisabled"
VALID = "ValidMetricFound"


class Reconciled(NamedTuple):
    """What one reconciliation did."""

    replicas: int
    wanted: int
    """What the metrics ask for, before stabilisation and limits."""
    stabilized: int
    proposals: tuple[tuple[str, int], ...] = ()
    """What each metric asks for by itself."""
    failures: tuple[str, ...] = ()
    """Metrics that could not be computed, and why."""
    limiting: str = ""
    """The limit that set the number, where one did."""
    able: str = "SucceededGetScale"
    """Reason of the condition AbleToScale."""
    active: str = ""
    """Reason of ScalingActive; empty where no metric was asked."""
    within: str = ""
    """Reason of ScalingLimited; empty where no limit was asked."""
    zeroed: bool | None = None
    """Status of ScaledToZero; None where the size stays."""

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Return the conditions as the controller reports them."""
        found: list[Condition] = [("AbleToScale", True, self.able)]
        if self.active:
            found.append(("ScalingActive", self.active == VALID, self.active))
        if self.within:
            found.append(("ScalingLimited", bool(self.limiting), self.within))
        if self.zeroed is not None:
            found.append(("ScaledToZero", self.zeroed, "ScaledToZero" if self.zeroed else "NotScaledToZero"))
        return tuple(found)


def reconcile(settings: Settings, observation: Observation, memory: Memory) -> tuple[Reconciled, Memory]:
    """Return the outcome and the next memory."""
    now_s, current = observation.time_s, observation.replicas
    minimum, maximum, behavior = settings.minimum, settings.maximum, settings.behavior
    log, ups, downs, zeroed = memory
    if log is None:
        log = ((now_s, current),)
    failures: tuple[str, ...] = ()
    proposals: tuple[tuple[str, int], ...] = ()
    able, active, within, limiting = "SucceededGetScale", "", "", ""
    if current == 0 and not _may_wake(settings, memory):
        return Reconciled(0, 0, 0, active=DISABLED), Memory(log, ups, downs, zeroed)
    if current > maximum or 0 < current < minimum:
        desired = stable = wanted = maximum if current > maximum else minimum
        limiting = "TooManyReplicas" if current > maximum else "TooFewReplicas"
    else:
        proposals, failures, reason = _proposals(settings, observation)
        wanted = proposals[0][1] if len(proposals) == 1 else max([asked for _, asked in proposals], default=0)
        if not proposals or (failures and wanted < current):
            failed = Reconciled(current, current, current, proposals, failures, active=reason)
            return failed, Memory(log, ups, downs, zeroed)
        if behavior is None:
            stable, log = stabilized(now_s, wanted, log, settings.downscale_window_s)
            if minimum <= stable <= current:
                desired, within = stable, WITHIN
            else:
                factor, least = settings.up_limit_factor, settings.up_limit_minimum
                desired, within = limited(current, stable, minimum, maximum, factor, least)
        else:
            stable, log = stabilized_with(now_s, current, wanted, log, behavior)
            desired, within = rate_limited(now_s, current, stable, minimum, maximum, behavior, ups, downs)
        active = VALID
        if desired != stable:
            limiting = within
        if current == 0 and desired < minimum:
            desired = minimum
        able = "ReadyForNewScale"
        if stable != wanted:
            able = "ScaleUpStabilized" if wanted >= current else "ScaleDownStabilized"
    if desired == current:
        same = (desired, wanted, stable, proposals, failures, limiting, able, active, within, None)
        return record(Reconciled, same), record(Memory, (log, ups, downs, zeroed and settings.scale_to_zero))
    if behavior is not None and desired > current:
        ups = stored(now_s, desired - current, ups, behavior.up)
    elif behavior is not None:
        downs = stored(now_s, current - desired, downs, behavior.down)
    able, reported = "SucceededRescale", None
    zeroed = zeroed and settings.scale_to_zero
    if settings.scale_to_zero:
        reported = zeroed = current > 0 and desired == 0 and minimum == 0 and settings.of_whole
    changed = (desired, wanted, stable, proposals, failures, limiting, able, active, within, reported)
    return record(Reconciled, changed), record(Memory, (log, ups, downs, zeroed))


def _may_wake(settings: Settings, memory: Memory) -> bool:
    """Return whether it comes back from zero: only where it went there itself."""
    return settings.scale_to_zero and memory.scaled_to_zero and (settings.minimum != 0 or settings.of_whole)


def _proposals(
    settings: Settings, observation: Observation
) -> tuple[tuple[tuple[str, int], ...], tuple[str, ...], str]:
    """Return what each metric asks for, what failed, and the first failure's reason."""
    reason = "FailedGetResourceMetric"
    proposals: list[tuple[str, int]] = []
    failures: list[str] = []
    tolerance, readiness, late_after_s = settings.tolerance, settings.readiness, settings.late_after_s
    for metric in settings.metrics:
        try:
            proposals.append((metric.name, propose(metric, observation, tolerance, readiness, late_after_s)))
        except MetricError as error:
            if not failures:
                reason = FAILURES.get(metric.type, "InvalidMetricSourceType")
            failures.append(f"{metric.name or metric.type}: {error}")
    return tuple(proposals), tuple(failures), reason
