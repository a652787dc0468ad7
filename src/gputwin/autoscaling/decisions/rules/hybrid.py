"""Hybrid scaling: a predicted base, a reactive burst on top, and prices that decide how much of either to keep."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from gputwin.autoscaling.decisions.interface import Alternative, Decision, Observation, Rule, record
from gputwin.autoscaling.decisions.reading import check_limits, within
from gputwin.autoscaling.decisions.registry import scaling_rule
from gputwin.autoscaling.decisions.rules.hpa import Hpa
from gputwin.autoscaling.decisions.rules.predictive import Predictive
from gputwin.core.units import short_duration


class HybridMemory(NamedTuple):
    """The reactive rule's memory, and sizes wanted of late with the time each was last wanted."""

    reactive: Any
    wanted: tuple[tuple[float, int], ...] = ()
    """(time, replicas), falling sizes: each stands for the latest moment at which so many were wanted."""


@scaling_rule(
    "max(forecast at quantile penalty ÷ (penalty + price), reactive rule); spare replicas stay start cost ÷ price long",
    source="newsvendor quantile (Arrow, Harris, Marschak 1951) and break-even waiting (ski rental; Lin et al., TON 2013)",
)
@dataclass(frozen=True)
class Hybrid:
    """Base from the forecast, burst from a reactive rule, economic balance between idle replicas and violations.

    Without a usable forecast the reactive rule may still add replicas, but none are taken away.
    """

    name: ClassVar[str] = "hybrid"
    minimum: int = 1
    maximum: int = 100
    base: Predictive = field(default_factory=Predictive)
    """Its quantile is replaced by the balance of prices where `penalty_per_hour` is given."""
    reactive: Rule[Any] | None = None
    """What adds the burst; None: an HPA on CPU use."""
    price_per_hour: float = 1.0
    """Of one replica."""
    penalty_per_hour: float | None = 9.0
    """Of being one replica short; None: the base's own quantile."""
    start_cost: float = 0.1
    """Of starting a replica: its start-up time at the replica's price, and requests that wait for it."""

    def __post_init__(self) -> None:
        check_limits(self.minimum, self.maximum)
        if self.price_per_hour <= 0 or self.start_cost < 0 or (self.penalty_per_hour or 1) <= 0:
            raise ValueError("price and penalty must be above 0, the start cost at least 0")

    @functools.cached_property
    def balanced(self) -> Predictive:
        """Return the base at the quantile at which an idle replica costs as much as a missing one."""
        limits = {"minimum": self.minimum, "maximum": self.maximum}
        if self.penalty_per_hour is None:
            return replace(self.base, **limits)
        level = self.penalty_per_hour / (self.penalty_per_hour + self.price_per_hour)
        return replace(self.base, quantile=level, **limits)

    @functools.cached_property
    def burst(self) -> Rule[Any]:
        """Return the reactive rule; where none is given, an HPA with the same limits."""
        return Hpa(self.minimum, self.maximum) if self.reactive is None else self.reactive

    @functools.cached_property
    def keep_s(self) -> float:
        """Return how long a spare replica stays: as long as keeping it costs no more than starting it anew."""
        return self.start_cost / self.price_per_hour * 3600.0

    @functools.cached_property
    def _spare_words(self) -> str:
        return f" spare replicas stay up to {short_duration(self.keep_s)}, which costs less than a new start"

    def start(self) -> HybridMemory:
        """Return the reactive rule's first memory."""
        return HybridMemory(self.burst.start())

    def decide(self, observation: Observation, memory: HybridMemory) -> tuple[Decision, HybridMemory]:
        """Return the larger of base and burst; what is spare stays until it has cost as much as a start."""
        now_s, current = observation.time_s, observation.replicas
        minimum, maximum = self.minimum, self.maximum
        base = self.balanced.base(observation)
        burst, reactive = self.burst.decide(observation, memory[0])
        size = minimum if current < minimum else maximum if current > maximum else current
        _, base_size, base_rule, base_reasons, _, base_held, measures = base
        _, burst_size, burst_rule, burst_reasons, _, burst_held, _ = burst
        alternatives: tuple[Alternative, ...] = (
            record(Alternative, (base_rule, base_size, base_reasons[0])),
            record(Alternative, (burst_rule, burst_size, burst_reasons[0] if burst_reasons else "")),
        )
        if base_held or burst_held:
            # What failed says nothing; the other may ask for more, but nobody may take away.
            wishes = [d.replicas for d in (base, burst) if not d.held]
            replicas = within(max([size, *wishes]), minimum, maximum)
            held = replicas == size
            failed = base if base.held else burst
            reasons = (*failed.reasons, *(burst.reasons if base.held else base.reasons))
            decision = Decision(now_s, replicas, f"{self.name}:{burst.rule}", reasons, alternatives, held)
            return decision, HybridMemory(reactive, _remembered(memory.wanted, now_s, replicas, self.keep_s))
        replicas, rule, reasons = base_size, f"hybrid:{base_rule}", base_reasons
        if burst_size > base_size:
            replicas, rule, reasons = burst_size, f"hybrid:{burst_rule}", burst_reasons
        wanted = replicas = minimum if replicas < minimum else maximum if replicas > maximum else replicas
        kept = _remembered(memory[1], now_s, wanted, self.keep_s)
        most = kept[0][1]
        if wanted < size and wanted < most:
            replicas = most if most < size else size
            alternatives += (record(Alternative, (rule, wanted, "without keeping spare ones")),)
            rule, reasons = "hybrid:break-even", (f"{replicas - wanted}{self._spare_words}", *reasons)
        decision = record(Decision, (now_s, replicas, rule, reasons, alternatives, False, measures))
        return decision, record(HybridMemory, (reactive, kept))


def _remembered(
    wanted: tuple[tuple[float, int], ...], now_s: float, size: int, keep_s: float
) -> tuple[tuple[float, int], ...]:
    """Return the sizes still within `keep_s` that exceed the later ones, with the present one last."""
    # Sizes fall and times rise along the tuple, so what is superseded stands at its end, what is too old at its beginning.
    first, last, oldest = 0, len(wanted), now_s - keep_s
    while last and wanted[last - 1][1] <= size:
        last -= 1
    while first < last and wanted[first][0] <= oldest:
        first += 1
    return (*wanted[first:last], (now_s, size))
