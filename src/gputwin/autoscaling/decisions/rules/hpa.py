"""The Kubernetes HorizontalPodAutoscaler v2."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import ClassVar

from gputwin.autoscaling.decisions.hpa.calculator import Readiness
from gputwin.autoscaling.decisions.hpa.controller import VALID, Memory, Reconciled, Settings, reconcile
from gputwin.autoscaling.decisions.hpa.spec import Behavior, MetricTarget, Tolerance
from gputwin.autoscaling.decisions.interface import NO_FIGURES, Alternative, Decision, Observation, record
from gputwin.autoscaling.decisions.reading import check_limits
from gputwin.autoscaling.decisions.registry import scaling_rule

_MEANINGS = {
    "ScalingDisabled": "scaling is off, since somebody set the replicas to zero",
    "ScaleDownStabilized": "a recent recommendation was higher",
    "ScaleUpStabilized": "a recent recommendation was lower",
    "ScaleUpLimit": "the policies allow no faster growth",
    "ScaleDownLimit": "the policies allow no faster decrease",
    "TooManyReplicas": "more than the maximum",
    "TooFewReplicas": "fewer than the minimum",
}
_WORDS = {code: f"{code}: {meaning}" for code, meaning in _MEANINGS.items()}


@scaling_rule(
    "ceil(ready × usage ÷ target), the maximum over metrics, within tolerance, stabilisation windows, policies and limits",
    source="Kubernetes autoscaling/v2; kubernetes.io, 'Horizontal Pod Autoscaling', algorithm details",
)
@dataclass(frozen=True)
class Hpa:
    """Kubernetes' rule. Without pods in the observation a metric is the mean over ready replicas (a utilisation as a share).

    A metric that cannot be read holds the size, unless another one asks for more.
    """

    name: ClassVar[str] = "hpa"
    minimum: int = 1
    maximum: int = 10
    metrics: tuple[MetricTarget, ...] = (MetricTarget("Resource", "cpu", 80, "Utilization"),)
    behavior: Behavior | None = None
    tolerance: float = 0.1
    downscale_window_s: float = 300.0
    """Stabilisation on the way down without a behaviour (a flag of the controller)."""
    up_limit_factor: float = 2.0
    """Growth per reconciliation without a behaviour."""
    scale_to_zero: bool = True
    """Whether it may come back from zero replicas by itself (feature gate HPAScaleToZero)."""
    readiness: Readiness = field(default_factory=Readiness)
    late_after_s: float = 120.0

    def __post_init__(self) -> None:
        check_limits(self.minimum, self.maximum)

    def start(self) -> Memory:
        """Return an empty memory."""
        return Memory()

    @functools.cached_property
    def settings(self) -> Settings:
        """Return what one reconciliation needs."""
        given = (self.behavior.up.tolerance, self.behavior.down.tolerance) if self.behavior else (None, None)
        up, down = (self.tolerance if value is None else value for value in given)
        return Settings(
            self.minimum,
            self.maximum,
            self.metrics,
            self.behavior,
            Tolerance(up, down),
            self.readiness,
            self.downscale_window_s,
            self.up_limit_factor,
            4.0,
            self.scale_to_zero,
            self.late_after_s,
            any(metric.type in ("Object", "External") for metric in self.metrics),
        )

    def decide(self, observation: Observation, memory: Memory) -> tuple[Decision, Memory]:
        """Return the outcome of one reconciliation."""
        outcome, after = reconcile(self.settings, observation, memory)
        return decision_of(outcome, observation.time_s), after


def decision_of(outcome: Reconciled, time_s: float) -> Decision:
    """Return a reconciliation's outcome as a decision."""
    replicas, wanted, stable, proposals, failures, limiting, able, active, _, _ = outcome
    alternatives = [record(Alternative, (f"hpa:{metric}", asked, "")) for metric, asked in proposals]
    if stable != wanted:
        alternatives.append(record(Alternative, ("hpa:unstabilized", wanted, "without the stabilisation window")))
    if replicas != stable:
        alternatives.append(Alternative("hpa:unlimited", stable, "without policies and limits"))
    held = bool(failures) and active != VALID
    reasons: tuple[str, ...] = ()
    if held:
        reasons = ("holds: a metric failed and no other asks for more",)
    elif len(proposals) == 1:
        reasons = (f"{proposals[0][0]} asks for {proposals[0][1]}",)
    elif proposals:
        most = max(proposals, key=lambda proposal: proposal[1])
        reasons = (f"{most[0]} asks for {most[1]}, the most of {len(proposals)} metrics",)
    if able in _WORDS:
        reasons += (_WORDS[able],)
    if active in _WORDS:
        reasons += (_WORDS[active],)
    if limiting:
        reasons += (_WORDS[limiting],)
    rule = f"hpa:{limiting}" if limiting else "hpa"
    made = (time_s, replicas, rule, reasons + failures, tuple(alternatives), held, NO_FIGURES)
    return record(Decision, made)
