"""Velocity control: a limit on how much one decision may add or take away."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from gputwin.autoscaling.decisions.interface import Decision, Observation, Rule
from gputwin.autoscaling.decisions.limiting import Around, is_free, limited
from gputwin.autoscaling.decisions.registry import scaling_rule


@dataclass(frozen=True, slots=True)
class VelocityMemory:
    """The inner rule's memory."""

    inner: Any


@scaling_rule(
    "no more than min(current × factor, largest increment) at once, at least 1; the same downwards",
    source="velocity control as in the HPA's scaling policies (Kubernetes KEP 853)",
)
@dataclass(frozen=True)
class Velocity(Around):
    """A limit on the change per decision around another rule."""

    name: ClassVar[str] = "velocity"
    inner: Rule[Any]
    factor: float = 1.0
    """Growth per decision as a share of the present size; 1 doubles it."""
    most_up: int = 10
    down_factor: float = 0.5
    most_down: int = 10

    def __post_init__(self) -> None:
        if self.factor <= 0 or self.down_factor <= 0 or self.most_up < 1 or self.most_down < 1:
            raise ValueError("factors must be above 0 and increments at least 1")

    def start(self) -> VelocityMemory:
        """Return the inner rule's first memory."""
        return VelocityMemory(self.inner.start())

    def decide(self, observation: Observation, memory: VelocityMemory) -> tuple[Decision, VelocityMemory]:
        """Return the inner decision, no farther from the present size than allowed."""
        decision, inner = self.inner.decide(observation, memory.inner)
        after, current = VelocityMemory(inner), observation.replicas
        if is_free(self.inner, observation, decision):
            return decision, after
        up = max(1, min(math.floor(current * self.factor), self.most_up))
        down = max(1, min(math.floor(current * self.down_factor), self.most_down))
        allowed = min(max(decision.replicas, current - down), current + up)
        step = f"+{up}" if decision.replicas > current else f"−{down}"
        return limited(decision, allowed, self.name, f"one decision changes {step} at most"), after
