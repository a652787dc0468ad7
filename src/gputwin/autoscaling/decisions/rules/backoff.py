"""Exponential back-off: the more often the direction reverses, the longer the next reversal waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gputwin.autoscaling.decisions.interface import Decision, Observation, Rule
from gputwin.autoscaling.decisions.limiting import Around, is_free, limited
from gputwin.autoscaling.decisions.registry import scaling_rule
from gputwin.core.units import short_duration


@dataclass(frozen=True, slots=True)
class BackoffMemory:
    """The last change (−1, 0, 1), when it was, and reversals counted so far."""

    inner: Any
    direction: int = 0
    changed_s: float = 0.0
    reversals: int = 0


@scaling_rule(
    "after n reversals of direction, the next one waits base × 2ⁿ (at most `longest_s`); forgotten after a quiet time",
    source="binary exponential back-off (Metcalfe and Boggs, 'Ethernet', CACM 1976) applied to scaling reversals",
)
@dataclass(frozen=True)
class Backoff(Around):
    """Back-off on reversals around another rule. Scaling up is delayed only where `delay_up` says so."""

    name: ClassVar[str] = "backoff"
    inner: Rule[Any]
    base_s: float = 60.0
    longest_s: float = 3600.0
    quiet_s: float = 3600.0
    """Without a change for this long, reversals are forgotten."""
    delay_up: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.base_s <= self.longest_s:
            raise ValueError("a back-off's base is above 0 and at most its longest wait")

    def start(self) -> BackoffMemory:
        """Return the inner rule's first memory, nothing changed yet."""
        return BackoffMemory(self.inner.start())

    def decide(self, observation: Observation, memory: BackoffMemory) -> tuple[Decision, BackoffMemory]:
        """Return the inner decision, or the present size where it would reverse too soon."""
        decision, inner = self.inner.decide(observation, memory.inner)
        now_s, current = observation.time_s, observation.replicas
        last, changed_s, reversals = memory.direction, memory.changed_s, memory.reversals
        if now_s - changed_s >= self.quiet_s:
            last, reversals = 0, 0
        wish = (decision.replicas > current) - (decision.replicas < current)
        if wish * last < 0 and (wish < 0 or self.delay_up) and not is_free(self.inner, observation, decision):
            # Beyond 2⁵⁰ the wait is the longest anyway.
            wait = min(self.base_s * 2.0 ** min(reversals, 50), self.longest_s)
            if now_s - changed_s < wait:
                passed = short_duration(now_s - changed_s)
                reason = f"back-off: reversal {reversals + 1} waits {short_duration(wait)}, {passed} have passed"
                decision, wish = limited(decision, current, self.name, reason), 0
        if wish != 0:
            reversals += 1 if wish * last < 0 else 0
            last, changed_s = wish, now_s
        return decision, BackoffMemory(inner, last, changed_s, reversals)
