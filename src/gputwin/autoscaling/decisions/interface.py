"""What a scaling rule sees, what it answers, and the object that keeps its memory between decisions.

A rule is a frozen dataclass of parameters: `decide(observation, memory)` returns a decision and the next memory, reads no
clock and changes nothing. `Autoscaler` holds a rule with its memory, so that a simulator and a live loop call the same
`decide(observation)`. Observations, decisions, rules and memories become plain JSON values and come back (`plain.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar


@dataclass(frozen=True, slots=True)
class Pod:
    """One replica as the metrics source sees it."""

    name: str
    is_ready: bool = True
    phase: str = "Running"
    """Pending, Running, Succeeded or Failed."""
    is_deleting: bool = False
    age_s: float | None = None
    """Seconds since it started; None: long ago."""
    readiness_age_s: float | None = None
    """Seconds since readiness last changed; None: it has not changed since the start."""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    """Value by metric name; of one container by "container/metric". A missing name is a metric that could not be read."""
    requests: Mapping[str, float] = field(default_factory=dict)
    """What it reserves of each resource, under the same names and in the same unit as `metrics`."""


@dataclass(frozen=True, slots=True)
class LoadForecast:
    """Arrival rates to come, requests per second: entry k of a quantile is for the k-th step after `made_at_s`."""

    made_at_s: float
    step_s: float
    quantiles: Mapping[float, tuple[float, ...]]
    """Arrival rates by quantile level, as in {0.5: (10.0, 12.0), 0.95: (14.0, 19.0)}."""
    failed: str = ""
    """Why there is no forecast; empty where there is one."""


NO_FIGURES: Mapping[str, float] = {}


class Observation(NamedTuple):
    """What is known at `time_s`. None or NaN is a value that could not be read; rules hold where they need it.

    A rule names the metric it looks at: a key of `metrics`, or one of the fields `queue_length`, `in_flight`,
    `arrival_rate_per_s`, `service_time_s`, or "latency:p95" for an entry of `latency_s` (see `read`).
    """

    time_s: float
    replicas: int
    """Replicas asked for, whether or not they have started."""
    ready: int | None = None
    """Replicas that serve; None: they could not be counted."""
    starting: int = 0
    stopping: int = 0
    metrics: Mapping[str, float | None] = NO_FIGURES
    """Value by name, over all replicas (a total or a mean, as the rule says); no targets here."""
    ages_s: Mapping[str, float] = NO_FIGURES
    """Seconds since each metric was measured, where it is late; 0 for names not given."""
    queue_length: float | None = None
    """Requests or jobs that wait."""
    in_flight: float | None = None
    """Requests in service."""
    arrival_rate_per_s: float | None = None
    service_time_s: float | None = None
    """Mean service time of a request on one replica."""
    latency_s: Mapping[str, float | None] = NO_FIGURES
    """Response time by quantile, as in {"p50": 0.2, "p95": 0.9}."""
    forecast: LoadForecast | None = None
    pods: tuple[Pod, ...] | None = None
    """Samples per replica; None: only totals are known."""

    def read(self, name: str) -> float | None:
        """Return the metric called `name`; None where it is missing, NaN, infinite or negative."""
        value = self.metrics.get(name)
        if value is None:
            if name in _FIELDS:
                value = getattr(self, name)
            elif name.startswith("latency:"):
                value = self.latency_s.get(name[8:])
        # A comparison with NaN is false.
        return value if value is not None and 0.0 <= value < math.inf else None


_FIELDS = frozenset({"queue_length", "in_flight", "arrival_rate_per_s", "service_time_s"})


class Alternative(NamedTuple):
    """What one rule, metric or step would have asked for by itself."""

    rule: str
    replicas: int
    reason: str = ""


class Decision(NamedTuple):
    """How many replicas to ask for, which rule says so, why, and what the others would have done."""

    time_s: float
    replicas: int
    rule: str
    """The rule that set the number, which may be a limit around another rule."""
    reasons: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    held: bool = False
    """True where the rule could not decide (a metric or forecast is missing, late or no number) and kept what is there."""
    measures: Mapping[str, float] = NO_FIGURES
    """Figures the decision rests on, by name."""


Memory = TypeVar("Memory")

record = tuple.__new__
"""Makes a named tuple from the values of all its fields, in half the time that calling its class takes."""


class Rule(Protocol[Memory]):
    """A way to decide: parameters only, no state."""

    name: ClassVar[str]
    """Its name in the registry."""

    @property
    def minimum(self) -> int:
        """Return the fewest replicas it asks for."""

    @property
    def maximum(self) -> int:
        """Return the most replicas it asks for."""

    def start(self) -> Memory:
        """Return the memory before the first decision."""

    def decide(self, observation: Observation, memory: Memory) -> tuple[Decision, Memory]:
        """Return the decision and what to remember of it."""


def tick_of(rule: Rule[Any]) -> float | None:
    """Return the time between decisions that belongs to the rule itself, s; None: whatever its controller is set to.

    A limit around another rule decides as often as that one.
    """
    own: float | None = getattr(rule, "tick_s", None)
    inner = getattr(rule, "inner", None)
    return own if own is not None or inner is None else tick_of(inner)


class Autoscaler(Generic[Memory]):
    """A rule with its memory: `decide(observation)`, in simulation and live alike.

    Save `memory` and give it back later to go on where it stopped.
    """

    __slots__ = ("memory", "rule")

    def __init__(self, rule: Rule[Memory], memory: Memory | None = None) -> None:
        self.rule = rule
        self.memory: Memory = rule.start() if memory is None else memory

    def decide(self, observation: Observation) -> Decision:
        """Return the decision for `observation` and remember what the rule needs for the next one."""
        decision, self.memory = self.rule.decide(observation, self.memory)
        return decision
