"""What an HPA is given: metrics with targets, and how fast it may change."""

from __future__ import annotations

import math
from dataclasses import dataclass

MAX_INT32 = 2**31 - 1
TYPES = ("Resource", "ContainerResource", "Pods", "Object", "External")
TARGETS = ("Utilization", "AverageValue", "Value")


@dataclass(frozen=True, slots=True)
class Policy:
    """No more than `value` pods or percent of change within `period_s`."""

    type: str
    value: int
    period_s: int

    def __post_init__(self) -> None:
        if self.type not in ("Pods", "Percent"):
            raise ValueError(f"a scaling policy is of type Pods or Percent, not '{self.type}'")
        if self.value <= 0 or not 0 < self.period_s <= 1800:
            raise ValueError("a scaling policy has a value above 0 and a period of 1 to 1800 s")


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """How fast the HPA may go in one direction."""

    stabilization_s: int
    select: str = "Max"
    """Max: the policy that allows the largest change; Min: the smallest; Disabled: no change in this direction."""
    policies: tuple[Policy, ...] = ()
    tolerance: float | None = None
    """Share by which usage may differ from the target without a change; None: the controller's."""

    def __post_init__(self) -> None:
        if self.select not in ("Max", "Min", "Disabled"):
            raise ValueError(f"selectPolicy is Max, Min or Disabled, not '{self.select}'")
        if not 0 <= self.stabilization_s <= 3600:
            raise ValueError(f"a stabilisation window is 0 to 3600 s, not {self.stabilization_s}")
        if self.tolerance is not None and not self.tolerance >= 0:
            raise ValueError(f"a tolerance is at least 0, not {self.tolerance:g}")


DEFAULT_UP = ScalingRules(0, "Max", (Policy("Pods", 4, 15), Policy("Percent", 100, 15)))
DEFAULT_DOWN = ScalingRules(300, "Max", (Policy("Percent", 100, 15),))


@dataclass(frozen=True, slots=True)
class Behavior:
    """Both directions; what a manifest leaves out has Kubernetes' defaults."""

    up: ScalingRules = DEFAULT_UP
    down: ScalingRules = DEFAULT_DOWN


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """One metric and its target, in the metric's own unit (percent of the request for a utilisation)."""

    type: str
    name: str
    target: float
    target_type: str = "AverageValue"
    container: str = ""

    def __post_init__(self) -> None:
        # An unknown type is kept: the controller counts it as an invalid metric and goes on with the others.
        if self.target_type not in TARGETS:
            raise ValueError(f"a target is of type {', '.join(TARGETS)}, not '{self.target_type}'")
        if not 0 < self.target < math.inf:
            raise ValueError(f"the target of {self.name} must be above 0, not {self.target:g}")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Usage ratios between 1 − `down` and 1 + `up` change nothing; the limits are included."""

    up: float = 0.1
    down: float = 0.1

    def covers(self, ratio: float) -> bool:
        """Return whether a usage ratio is near enough to 1."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


def milli(value: float) -> int:
    """Return a quantity in whole thousandths, rounded up as Kubernetes does; float noise does not round up."""
    scaled = value * 1000.0
    nearest = round(scaled)
    return nearest if abs(scaled - nearest) < 1e-6 else math.ceil(scaled)


def replicas_of(value: float) -> int:
    """Return the whole number of replicas at or above `value`, at most 2³¹ − 1."""
    return MAX_INT32 if value >= MAX_INT32 else math.ceil(value)
