"""KEDA's ScaledJob: one job per piece of work, started and never stopped."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from gputwin.autoscaling.decisions.interface import Alternative, Decision, Observation
from gputwin.autoscaling.decisions.keda.jobs import STRATEGIES, JobStrategy, jobs_to_start
from gputwin.autoscaling.decisions.reading import check_limits, hold, read, why_unreadable
from gputwin.autoscaling.decisions.registry import scaling_rule


@scaling_rule(
    "starts jobs for ceil(queue ÷ target) pieces of work, less those that run or wait, by strategy",
    source="KEDA; keda.sh, 'ScaledJob specification'",
)
@dataclass(frozen=True)
class ScaledJob:
    """KEDA's rule for jobs. `replicas` counts unfinished jobs; jobs end by themselves, so it never asks for fewer."""

    name: ClassVar[str] = "keda-job"
    minimum: int = 0
    maximum: int = 100
    metric: str = "queue_length"
    target: float = 1.0
    activation: float = 0.0
    strategy: JobStrategy = field(default_factory=JobStrategy)
    late_after_s: float = 120.0

    def __post_init__(self) -> None:
        check_limits(self.minimum, self.maximum)
        if not self.target > 0:
            raise ValueError(f"the target must be above 0, not {self.target:g}")

    def start(self) -> None:
        """Return nothing: it has no memory."""

    def decide(self, observation: Observation, memory: None) -> tuple[Decision, None]:
        """Return the unfinished jobs plus those to start."""
        value = read(observation, self.metric, self.late_after_s)
        running, pending = observation.replicas, observation.starting
        if value is None:
            why = why_unreadable(observation, self.metric, self.late_after_s)
            return hold(observation, self.name, 0, max(self.maximum, running), why), None
        wanted = min(math.ceil(value / self.target), self.maximum) if value > self.activation else 0
        sizes = {}
        for name in STRATEGIES:
            given = self.strategy if name == self.strategy.name else JobStrategy(name)
            most, asked = jobs_to_start(given, wanted, running, pending, self.minimum, self.maximum, wanted)
            room = max(self.maximum - running, 0)
            # Nothing in the queue starts nothing, whatever room an eager strategy sees.
            sizes[name] = running + (min(most, asked, room) if wanted or running < self.minimum else 0)
        alternatives = tuple(Alternative(f"{self.name}:{name}", size) for name, size in sizes.items())
        size = sizes[self.strategy.name]
        reason = f"{self.metric} {value:g} asks for {wanted}; {running} unfinished, {pending} of them not started"
        return Decision(observation.time_s, size, f"{self.name}:{self.strategy.name}", (reason,), alternatives), None
