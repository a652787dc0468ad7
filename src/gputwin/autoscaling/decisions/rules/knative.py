"""Knative's pod autoscaler (KPA): a stable and a panic window, rate limits, delayed scale-down, scale to zero with grace."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from gputwin.autoscaling.decisions.interface import Alternative, Decision, Observation
from gputwin.autoscaling.decisions.reading import check_limits, hold, read, why_unreadable, within
from gputwin.autoscaling.decisions.registry import scaling_rule
from gputwin.core.units import short_duration

TICK_S = 2.0
"""How often the KPA decides, and the width of the delay window's buckets."""
FIELDS = {"concurrency": "in_flight", "rps": "arrival_rate_per_s"}
"""The observation's field that a metric of Knative is read from where `metrics` lacks it."""


@dataclass(frozen=True, slots=True)
class KpaMemory:
    """What the KPA remembers."""

    panic_since_s: float | None = None
    most_in_panic: int = 0
    delayed: tuple[tuple[int, int], ...] = ()
    """(bucket, replicas) decided within the scale-down delay, highest first; older and lower ones are dropped."""
    samples: tuple[tuple[float, float], ...] = ()
    """(time, value) of the stable window, where the observation brings no averages."""
    zero_since_s: float | None = None
    """Since when the wish is zero replicas."""
    is_first: bool = True


@scaling_rule(
    "ceil(average over 60 s ÷ target); where 6 s ask for twice what is ready, the higher of both and never fewer (panic)",
    source="Knative Serving, autoscaler/scaling/autoscaler.go; knative.dev, 'Configuring autoscaling'",
)
@dataclass(frozen=True)
class Kpa:
    """Knative's rule. The metric is a total over all replicas: concurrency (requests in flight) or rps.

    Averages over both windows are read from `metrics` as "concurrency:stable" and "concurrency:panic"; where these are
    absent they are kept in memory from the plain metric.
    """

    name: ClassVar[str] = "knative"
    tick_s: ClassVar[float] = TICK_S
    minimum: int = 0
    maximum: int = 100
    metric: str = "concurrency"
    target: float = 70.0
    """Per replica, after the target utilisation (70 % of 100 by default)."""
    total: float = 100.0
    """What one replica can take in all, for the excess burst capacity."""
    burst_capacity: float = 211.0
    """Requests that must fit at once; −1: without limit, 0: no buffer."""
    stable_window_s: float = 60.0
    panic_window_s: float = 6.0
    panic_threshold: float = 2.0
    """Panic where the panic window asks for this many times the ready replicas."""
    max_up_rate: float = 1000.0
    max_down_rate: float = 2.0
    scale_down_delay_s: float = 0.0
    activation_scale: int = 0
    """The least replicas when coming from zero."""
    grace_s: float = 30.0
    """How long the last replica stays once none is wanted (the longer of grace and retention period)."""
    reachable: bool = True
    late_after_s: float = 30.0

    def __post_init__(self) -> None:
        check_limits(self.minimum, self.maximum)
        if not (self.target > 0 and self.max_up_rate > 1 and self.max_down_rate > 1):
            raise ValueError("the target must be above 0, and the scale-up and scale-down rates above 1")
        if self.metric not in FIELDS:
            raise ValueError(f"the metric is concurrency or rps, not '{self.metric}'")

    def start(self) -> KpaMemory:
        """Return the memory of a new revision."""
        return KpaMemory()

    def decide(self, observation: Observation, memory: KpaMemory) -> tuple[Decision, KpaMemory]:
        """Return the KPA's wish within the limits; the last replica stays for the grace period."""
        now_s = observation.time_s
        averages, samples, problem = self._averages(observation, memory)
        if averages is None or observation.ready is None:
            why = problem if averages is None else "ready replicas could not be counted"
            after = replace(memory, samples=samples)
            return hold(observation, self.name, self.minimum, self.maximum, why), after
        if memory.is_first:
            # A restarted autoscaler has no history: it starts in panic mode so as not to scale down at once.
            ready = observation.ready
            memory = replace(memory, is_first=False, panic_since_s=now_s if ready > 1 else None, most_in_panic=ready)
        stable, panic = averages
        wish, figures, after = self.scale(now_s, observation.ready, stable, panic, memory)
        return self._settled(observation, wish, figures, after, samples)

    def _averages(
        self, observation: Observation, memory: KpaMemory
    ) -> tuple[tuple[float, float] | None, tuple[tuple[float, float], ...], str]:
        """Return the averages over both windows, the samples kept, and why there are none."""
        now_s, kept = observation.time_s, memory.samples
        stable_name = f"{self.metric}:stable"
        if stable_name in observation.metrics:
            stable = read(observation, stable_name, self.late_after_s)
            panic = read(observation, f"{self.metric}:panic", self.late_after_s)
            if stable is None or panic is None:
                name = stable_name if stable is None else f"{self.metric}:panic"
                return None, kept, why_unreadable(observation, name, self.late_after_s)
            return (stable, panic), kept, ""
        name = self.metric if self.metric in observation.metrics else FIELDS[self.metric]
        value = read(observation, name, self.late_after_s)
        if value is None:
            return None, kept, why_unreadable(observation, name, self.late_after_s)
        since = now_s - self.stable_window_s
        kept = (*(sample for sample in kept if sample[0] > since), (now_s, value))
        recent = [sample for at, sample in kept if at > now_s - self.panic_window_s]
        return (sum(sample for _, sample in kept) / len(kept), sum(recent) / len(recent)), kept, ""

    def scale(
        self, now_s: float, ready: int, stable: float, panic: float, memory: KpaMemory
    ) -> tuple[int, dict[str, float], KpaMemory]:
        """Return what the KPA itself asks for (before limits and grace), its figures and the next memory."""
        pods = max(1, ready)
        most = math.ceil(self.max_up_rate * pods)
        least = math.floor(pods / self.max_down_rate) if self.reachable else 0
        for_stable, for_panic = math.ceil(stable / self.target), math.ceil(panic / self.target)
        by_stable = min(max(for_stable, least), most)
        by_panic = min(max(for_panic, least), most)
        if self.activation_scale > 1:
            by_stable = max(by_stable, self.activation_scale) if for_stable > 0 else by_stable
            by_panic = max(by_panic, self.activation_scale) if for_panic > 0 else by_panic
        since, peak = memory.panic_since_s, memory.most_in_panic
        if for_panic / pods >= self.panic_threshold:
            since = now_s
        elif since is not None and since + self.stable_window_s < now_s:
            since, peak = None, 0
        wish = by_stable
        if since is not None:
            peak = max(peak, by_stable, by_panic)
            wish = peak
        delayed = memory.delayed
        if self.scale_down_delay_s > 0:
            bucket, length = math.floor(now_s / TICK_S), math.ceil(self.scale_down_delay_s / TICK_S)
            higher = [(at, n) for at, n in delayed if bucket - at < length and n > wish]
            delayed = (*higher, (bucket, wish))
            wish = delayed[0][1]
        burst = -1.0
        if self.burst_capacity == 0:
            burst = 0.0
        elif self.burst_capacity > 0:
            burst = math.floor(ready * self.total - self.burst_capacity - panic)
        figures = {
            "stable": stable,
            "panic": panic,
            "wanted_by_stable": by_stable,
            "wanted_by_panic": by_panic,
            "excess_burst_capacity": burst,
        }
        return wish, figures, KpaMemory(since, peak, delayed, memory.samples, memory.zero_since_s, is_first=False)

    def _settled(
        self,
        observation: Observation,
        wish: int,
        figures: dict[str, float],
        memory: KpaMemory,
        samples: tuple[tuple[float, float], ...],
    ) -> tuple[Decision, KpaMemory]:
        now_s = observation.time_s
        stable, panic = int(figures["wanted_by_stable"]), int(figures["wanted_by_panic"])
        mode = "panic" if memory.panic_since_s is not None else "stable"
        reasons = [f"{mode} mode: stable window asks for {stable}, panic window for {panic}"]
        rule, replicas = f"{self.name}:{mode}", wish
        if self.scale_down_delay_s > 0 and wish > max(stable, memory.most_in_panic):
            rule = f"{self.name}:scale-down-delay"
            reasons.append(f"a decision within {short_duration(self.scale_down_delay_s)} was {wish}")
        zero_since = None
        if wish == 0 and self.minimum == 0 and observation.replicas > 0:
            zero_since = now_s if memory.zero_since_s is None else memory.zero_since_s
            if now_s - zero_since < self.grace_s:
                rule, replicas = f"{self.name}:grace", 1
                reasons.append(f"the last replica stays {short_duration(self.grace_s)}")
        limited = within(replicas, self.minimum, self.maximum)
        if limited != replicas:
            rule = f"{self.name}:limits"
            reasons.append(f"limits {self.minimum} to {self.maximum}")
        alternatives = (
            Alternative(f"{self.name}:stable", stable, f"average {figures['stable']:g}"),
            Alternative(f"{self.name}:panic", panic, f"average {figures['panic']:g}"),
        )
        decision = Decision(now_s, limited, rule, tuple(reasons), alternatives, measures=figures)
        since, peak = memory.panic_since_s, memory.most_in_panic
        return decision, KpaMemory(since, peak, memory.delayed, samples, zero_since, is_first=False)
