"""Cool-downs: no scale-out soon after a scale-out, no scale-in soon after any change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gputwin.autoscaling.decisions.interface import Decision, Observation, Rule
from gputwin.autoscaling.decisions.limiting import Around, is_free, limited
from gputwin.autoscaling.decisions.registry import scaling_rule
from gputwin.core.units import short_duration


@dataclass(frozen=True, slots=True)
class CooldownMemory:
    """When it last scaled out and in."""

    inner: Any
    out_s: float | None = None
    in_s: float | None = None


@scaling_rule(
    "scale-out not before `out_s` after the last scale-out; scale-in not before `in_s` after any change",
    source="AWS Application Auto Scaling, 'cooldown period'",
)
@dataclass(frozen=True)
class Cooldown(Around):
    """Separate cool-downs out and in around another rule. A scale-in never delays a scale-out."""

    name: ClassVar[str] = "cooldown"
    inner: Rule[Any]
    out_s: float = 60.0
    in_s: float = 300.0

    def __post_init__(self) -> None:
        if self.out_s < 0 or self.in_s < 0:
            raise ValueError("cool-downs are at least 0 s")

    def start(self) -> CooldownMemory:
        """Return the inner rule's first memory, nothing scaled yet."""
        return CooldownMemory(self.inner.start())

    def decide(self, observation: Observation, memory: CooldownMemory) -> tuple[Decision, CooldownMemory]:
        """Return the inner decision, or the present size during a cool-down."""
        decision, inner = self.inner.decide(observation, memory.inner)
        now_s, current = observation.time_s, observation.replicas
        out_s, in_s = memory.out_s, memory.in_s
        if not is_free(self.inner, observation, decision):
            grows = decision.replicas > current
            last = out_s if grows else max((at for at in (out_s, in_s) if at is not None), default=None)
            wait = self.out_s if grows else self.in_s
            if last is not None and now_s - last < wait:
                way = "out" if grows else "in"
                reason = (
                    f"cool-down {way}: {short_duration(now_s - last)} of {short_duration(wait)} since the last change"
                )
                decision = limited(decision, current, self.name, reason)
        if decision.replicas > current:
            out_s = now_s
        elif decision.replicas < current:
            in_s = now_s
        return decision, CooldownMemory(inner, out_s, in_s)
