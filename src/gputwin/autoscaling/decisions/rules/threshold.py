"""Thresholds with hysteresis: up where any metric is high for a while, down where all are low for much longer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gputwin.autoscaling.decisions.interface import Alternative, Decision, Observation
from gputwin.autoscaling.decisions.reading import check_limits, hold, read, why_unreadable, within
from gputwin.autoscaling.decisions.registry import scaling_rule
from gputwin.core.units import short_duration


@dataclass(frozen=True, slots=True)
class Band:
    """A metric and its band: above `up` is high, below `down` is low."""

    metric: str
    up: float
    down: float
    per_replica: bool = True
    """Whether fewer replicas raise it in proportion, as CPU, GPU or memory use and load per replica."""

    def __post_init__(self) -> None:
        if not 0 <= self.down < self.up:
            raise ValueError(
                f"{self.metric}: the lower threshold {self.down:g} must be at least 0 and below {self.up:g}"
            )


@dataclass(frozen=True, slots=True)
class ThresholdMemory:
    """Since when some metric is high, and since when all are low."""

    high_since_s: float | None = None
    low_since_s: float | None = None


@scaling_rule(
    "up if any metric is above its threshold for T_up; down if all are below theirs for T_down ≫ T_up",
    source="hysteresis control; Lorido-Botran et al., 'A Review of Auto-scaling Techniques', J. Grid Computing 2014, 4.1",
)
@dataclass(frozen=True)
class Threshold:
    """Threshold rule on CPU, GPU or memory use, queue length, response time or any other metric.

    A step down waits where it would lift a metric above its upper threshold, so a constant load does not oscillate.
    """

    name: ClassVar[str] = "threshold"
    minimum: int = 1
    maximum: int = 100
    bands: tuple[Band, ...] = (Band("gpu", 0.8, 0.5),)
    up_for_s: float = 60.0
    down_for_s: float = 600.0
    step_up: int = 1
    step_down: int = 1
    late_after_s: float = 120.0

    def __post_init__(self) -> None:
        check_limits(self.minimum, self.maximum)
        if not self.bands or self.step_up < 1 or self.step_down < 1:
            raise ValueError("a threshold rule needs a metric and steps of at least 1")
        if not 0 <= self.up_for_s <= self.down_for_s:
            down, up = short_duration(self.down_for_s), short_duration(self.up_for_s)
            raise ValueError(f"T_down ({down}) must be at least T_up ({up})")

    def start(self) -> ThresholdMemory:
        """Return an empty memory."""
        return ThresholdMemory()

    def decide(self, observation: Observation, memory: ThresholdMemory) -> tuple[Decision, ThresholdMemory]:
        """Return one step up, one step down, or no change."""
        now_s, current = observation.time_s, observation.replicas
        size = within(current, self.minimum, self.maximum)
        fewer = max(size - self.step_down, self.minimum)
        high, low, blocked, missing = "", True, "", ""
        for band in self.bands:
            value = read(observation, band.metric, self.late_after_s)
            if value is None:
                missing, low = why_unreadable(observation, band.metric, self.late_after_s), False
                continue
            if value > band.up:
                high = high or f"{band.metric} {value:g} above {band.up:g}"
            low = low and value < band.down
            if band.per_replica and 0 < fewer < current and value * current / fewer > band.up:
                blocked = f"{band.metric} would rise to {value * current / fewer:.3g}, above {band.up:g}"
        high_since = (now_s if memory.high_since_s is None else memory.high_since_s) if high else None
        low_since = (now_s if memory.low_since_s is None else memory.low_since_s) if low else None
        after = ThresholdMemory(high_since, low_since)
        if missing and not high:
            return hold(observation, self.name, self.minimum, self.maximum, missing), after
        more = min(size + self.step_up, self.maximum)
        alternatives = (Alternative("threshold:up", more), Alternative("threshold:down", fewer))
        replicas, rule = size, self.name
        if high_since is not None and now_s - high_since >= self.up_for_s:
            replicas, rule, after = more, "threshold:up", ThresholdMemory()
            reason = f"{high} for {short_duration(now_s - high_since)}"
        elif low_since is not None and now_s - low_since >= self.down_for_s and not blocked:
            replicas, rule, after = fewer, "threshold:down", ThresholdMemory()
            reason = f"all metrics low for {short_duration(now_s - low_since)}"
        elif low_since is not None and blocked:
            reason = f"stays: {blocked}"
        elif high_since is not None:
            reason = f"{high} for {short_duration(now_s - high_since)} of {short_duration(self.up_for_s)}"
        elif low_since is not None:
            reason = f"all metrics low for {short_duration(now_s - low_since)} of {short_duration(self.down_for_s)}"
        else:
            reason = "within the band"
        if size != current:
            reason = f"limits {self.minimum} to {self.maximum}; {reason}"
        return Decision(now_s, replicas, rule, (reason,), alternatives), after
