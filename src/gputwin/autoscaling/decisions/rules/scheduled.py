"""Scheduled scaling: sizes by the clock, alone or as a floor under another rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gputwin.autoscaling.decisions.interface import Alternative, Decision, Observation, Rule
from gputwin.autoscaling.decisions.limiting import limited
from gputwin.autoscaling.decisions.reading import check_limits, within
from gputwin.autoscaling.decisions.registry import scaling_rule
from gputwin.core.units import short_duration

DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class Window:
    """At least `replicas` from `from_s` until `until_s` of each period; a window may pass the period's end."""

    from_s: float
    until_s: float
    replicas: int


@dataclass(frozen=True, slots=True)
class ScheduledMemory:
    """The inner rule's memory, None where there is none."""

    inner: Any = None


@scaling_rule(
    "the largest size among the windows that are open; with an inner rule, the larger of the two",
    source="scheduled actions as in AWS Auto Scaling and KEDA's cron scaler",
)
@dataclass(frozen=True)
class Scheduled:
    """Sizes by the clock, which repeats every `period_s` after `origin_s`."""

    name: ClassVar[str] = "scheduled"
    minimum: int = 1
    maximum: int = 100
    windows: tuple[Window, ...] = ()
    otherwise: int = 1
    period_s: float = DAY_S
    origin_s: float = 0.0
    inner: Rule[Any] | None = None

    def __post_init__(self) -> None:
        check_limits(self.minimum, self.maximum)
        if self.period_s <= 0:
            raise ValueError("the period of a schedule must be above 0 s")

    def start(self) -> ScheduledMemory:
        """Return the inner rule's first memory."""
        return ScheduledMemory(None if self.inner is None else self.inner.start())

    def decide(self, observation: Observation, memory: ScheduledMemory) -> tuple[Decision, ScheduledMemory]:
        """Return the size of the schedule, or the inner rule's where that is larger."""
        clock = (observation.time_s - self.origin_s) % self.period_s
        open_now = [window for window in self.windows if _is_open(window, clock, self.period_s)]
        size = within(max((w.replicas for w in open_now), default=self.otherwise), self.minimum, self.maximum)
        reason = f"{len(open_now)} of {len(self.windows)} windows open at {short_duration(clock)} of the period: {size}"
        if self.inner is None:
            other = Alternative("scheduled:otherwise", self.otherwise, "outside every window")
            return Decision(observation.time_s, size, self.name, (reason,), (other,)), memory
        decision, inner = self.inner.decide(observation, memory.inner)
        replicas = within(max(size, decision.replicas), self.minimum, self.maximum)
        return limited(decision, replicas, self.name, reason), ScheduledMemory(inner)


def _is_open(window: Window, clock: float, period_s: float) -> bool:
    if window.from_s <= window.until_s <= period_s:
        return window.from_s <= clock < window.until_s
    return clock >= window.from_s or clock < window.until_s % period_s
