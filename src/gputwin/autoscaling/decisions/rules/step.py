"""Step scaling: the further a metric is from its threshold, the larger the step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gputwin.autoscaling.decisions.interface import Alternative, Decision, Observation
from gputwin.autoscaling.decisions.reading import check_limits, hold, read, why_unreadable, within
from gputwin.autoscaling.decisions.registry import scaling_rule

KINDS = ("change", "percent", "exact")


@dataclass(frozen=True, slots=True)
class Step:
    """Where the metric is at or above `at` (up) or at or below it (down), change by `amount`."""

    at: float
    amount: float


@dataclass(frozen=True, slots=True)
class StepMemory:
    """Breaches in a row, and when the last step was."""

    breaches_up: int = 0
    breaches_down: int = 0
    stepped_s: float | None = None


@scaling_rule(
    "the step of the farthest bound the metric has crossed: a change, a percentage or an exact size",
    source="AWS Application Auto Scaling, 'Step scaling policies'",
)
@dataclass(frozen=True)
class StepScaling:
    """Step scaling on one metric, after some breaches in a row, not again until the last step has warmed up."""

    name: ClassVar[str] = "step"
    minimum: int = 1
    maximum: int = 100
    metric: str = "gpu"
    up: tuple[Step, ...] = (Step(0.7, 1), Step(0.8, 2), Step(0.95, 4))
    down: tuple[Step, ...] = (Step(0.3, 1), Step(0.1, 2))
    kind: str = "change"
    """change: replicas more or fewer; percent: of the present size; exact: the size itself."""
    breaches: int = 1
    warmup_s: float = 120.0
    """After a step up or down, no further step for this long, unless a larger one up is called for."""
    per_replica: bool = True
    """Whether fewer replicas raise the metric in proportion; then no step down that would call for one up."""
    late_after_s: float = 120.0

    def __post_init__(self) -> None:
        check_limits(self.minimum, self.maximum)
        if self.kind not in KINDS:
            raise ValueError(f"an adjustment is one of {', '.join(KINDS)}, not '{self.kind}'")
        if not self.up and not self.down:
            raise ValueError("step scaling needs a step")
        if self.up and self.down and max(s.at for s in self.down) >= min(s.at for s in self.up):
            raise ValueError("steps down must lie below the steps up")

    def start(self) -> StepMemory:
        """Return an empty memory."""
        return StepMemory()

    def decide(self, observation: Observation, memory: StepMemory) -> tuple[Decision, StepMemory]:
        """Return the size after the step called for, if any."""
        now_s, current = observation.time_s, observation.replicas
        value = read(observation, self.metric, self.late_after_s)
        if value is None:
            why = why_unreadable(observation, self.metric, self.late_after_s)
            return hold(observation, self.name, self.minimum, self.maximum, why), memory
        size = within(current, self.minimum, self.maximum)
        above = [step for step in self.up if value >= step.at]
        below = [step for step in self.down if value <= step.at]
        more = self._size(size, max(above, key=lambda s: s.at), 1) if above else size
        fewer = self._size(size, min(below, key=lambda s: s.at), -1) if below else size
        ups = memory.breaches_up + 1 if above else 0
        downs = memory.breaches_down + 1 if below else 0
        warming = memory.stepped_s is not None and now_s - memory.stepped_s < self.warmup_s
        alternatives = (Alternative("step:up", more), Alternative("step:down", fewer))
        replicas, rule, stepped = size, self.name, memory.stepped_s
        if above and ups >= self.breaches and more > size:
            reason = f"{self.metric} {value:g} at or above {max(above, key=lambda s: s.at).at:g}"
            if warming:
                reason = f"{reason}; the last step still warms up"
            else:
                replicas, rule, stepped = more, "step:up", now_s
        elif below and downs >= self.breaches and fewer < size:
            reason = f"{self.metric} {value:g} at or below {min(below, key=lambda s: s.at).at:g}"
            rises = value * current / fewer if fewer else math.inf
            if warming:
                reason = f"{reason}; the last step still warms up"
            elif self.per_replica and value > 0 and self.up and rises >= min(s.at for s in self.up):
                reason = f"stays: {self.metric} would rise to {rises:.3g}"
            else:
                replicas, rule, stepped = fewer, "step:down", now_s
        else:
            reason = f"{self.metric} {value:g} calls for no step"
        after = StepMemory(ups, downs, stepped)
        return Decision(now_s, replicas, rule, (reason,), alternatives), after

    def _size(self, size: int, step: Step, sign: int) -> int:
        if self.kind == "exact":
            wanted = int(step.amount)
        elif self.kind == "percent":
            # A percentage changes at least one replica.
            wanted = size + sign * max(1, math.floor(size * step.amount / 100))
        else:
            wanted = size + sign * int(step.amount)
        return within(wanted, self.minimum, self.maximum)
