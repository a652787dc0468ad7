"""Minimum, maximum and a warm pool around another rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gputwin.autoscaling.decisions.interface import Decision, Observation, Rule
from gputwin.autoscaling.decisions.limiting import limited
from gputwin.autoscaling.decisions.reading import check_limits, within
from gputwin.autoscaling.decisions.registry import scaling_rule


@dataclass(frozen=True, slots=True)
class BoundsMemory:
    """The inner rule's memory."""

    inner: Any


@scaling_rule(
    "min(max(wanted + warm, minimum), maximum): `warm` replicas stay ready above what is needed",
    source="warm pools as in AWS EC2 Auto Scaling, 'Warm pools'",
)
@dataclass(frozen=True)
class Bounds:
    """Limits of its own around another rule, and replicas kept warm above its wish."""

    name: ClassVar[str] = "bounds"
    inner: Rule[Any]
    minimum: int = 1
    maximum: int = 100
    warm: int = 0

    def __post_init__(self) -> None:
        check_limits(self.minimum, self.maximum)
        if self.warm < 0:
            raise ValueError("a warm pool has at least 0 replicas")

    def start(self) -> BoundsMemory:
        """Return the inner rule's first memory."""
        return BoundsMemory(self.inner.start())

    def decide(self, observation: Observation, memory: BoundsMemory) -> tuple[Decision, BoundsMemory]:
        """Return the inner decision for the replicas in use, plus the warm ones, within the limits."""
        # The inner rule must see a size it could have asked for, or it would count warm replicas twice.
        used = max(observation.replicas - self.warm, 0)
        seen = observation if self.warm == 0 else _without_warm(observation, used)
        decision, inner = self.inner.decide(seen, memory.inner)
        wanted = observation.replicas if decision.held else decision.replicas + self.warm
        replicas = within(wanted, self.minimum, self.maximum)
        if replicas == wanted:
            reason = f"{self.warm} replicas stay warm"
        else:
            reason = f"limits {self.minimum} to {self.maximum}"
        return limited(decision, replicas, self.name, reason), BoundsMemory(inner)


def _without_warm(observation: Observation, used: int) -> Observation:
    ready = observation.ready
    return observation._replace(replicas=used, ready=None if ready is None else min(ready, used))
