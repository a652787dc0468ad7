"""KEDA's ScaledObject: activation apart from the target, cool-down only on the step to zero, fallback, formulas."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from gputwin.autoscaling.decisions.hpa.controller import Memory as HpaMemory
from gputwin.autoscaling.decisions.hpa.spec import Behavior, MetricTarget
from gputwin.autoscaling.decisions.interface import Alternative, Decision, Observation
from gputwin.autoscaling.decisions.keda.executor import Switch, switched
from gputwin.autoscaling.decisions.keda.formula import compiled, names
from gputwin.autoscaling.decisions.reading import check_limits, hold, read, why_unreadable, within
from gputwin.autoscaling.decisions.registry import scaling_rule
from gputwin.autoscaling.decisions.rules.hpa import Hpa

BEHAVIORS = ("static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower")
COMPOSITE = "composite"
"""Name of the metric a formula makes."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """One event source: active above `activation`, and a target per replica (or of the whole)."""

    metric: str
    target: float
    activation: float = 0.0
    target_type: str = "AverageValue"
    label: str = ""
    """Its name in formulas; empty: the metric's."""

    def __post_init__(self) -> None:
        if not 0 < self.target < math.inf:
            raise ValueError(f"the target of {self.metric} must be above 0, not {self.target:g}")
        if self.target_type not in ("AverageValue", "Value", "Utilization"):
            raise ValueError(f"a trigger's target is AverageValue, Value or Utilization, not '{self.target_type}'")

    @property
    def is_use(self) -> bool:
        """Return whether it is a utilisation (percent of the request), which never decides about zero."""
        return self.target_type == "Utilization"


@dataclass(frozen=True, slots=True)
class Formula:
    """One metric made of all triggers; only its own target and activation count then."""

    text: str
    target: float
    activation: float = 0.0
    target_type: str = "AverageValue"

    def __post_init__(self) -> None:
        compiled(self.text)


@dataclass(frozen=True, slots=True)
class Fallback:
    """Replicas once a trigger has failed more than `failures` times in a row."""

    failures: int
    replicas: int
    behavior: str = "static"

    def __post_init__(self) -> None:
        if self.behavior not in BEHAVIORS:
            raise ValueError(f"a fallback's behaviour is one of {', '.join(BEHAVIORS)}, not '{self.behavior}'")
        if self.failures < 0 or self.replicas < 0:
            raise ValueError("a fallback's failures and replicas are at least 0")

    def size(self, current: int) -> int:
        """Return the replicas to fall back to."""
        if self.behavior == "currentReplicas":
            return current
        if self.behavior == "currentReplicasIfHigher":
            return max(current, self.replicas)
        return min(current, self.replicas) if self.behavior == "currentReplicasIfLower" else self.replicas


class KedaMemory(NamedTuple):
    """What KEDA and the HPA it drives remember."""

    hpa: HpaMemory = HpaMemory()
    last_active_s: float | None = None
    created_s: float | None = None
    failures: tuple[int, ...] = ()
    """Failures in a row, per trigger."""


@scaling_rule(
    "0 ↔ minimum where value > activation (cool-down only on the way to 0); in between the HPA with value ÷ target",
    source="KEDA; keda.sh, 'ScaledObject specification' and 'Scaling modifiers'",
)
@dataclass(frozen=True)
class Keda:
    """KEDA's rule. Trigger metrics are totals."""

    name: ClassVar[str] = "keda"
    minimum: int = 0
    maximum: int = 100
    triggers: tuple[Trigger, ...] = (Trigger("queue_length", 5.0),)
    formula: Formula | None = None
    idle: int | None = None
    cooldown_s: float = 300.0
    initial_cooldown_s: float = 0.0
    fallback: Fallback | None = None
    behavior: Behavior | None = None
    pause_in: bool = False
    pause_out: bool = False
    late_after_s: float = 120.0

    def __post_init__(self) -> None:
        check_limits(self.minimum, self.maximum)
        if not self.triggers:
            raise ValueError("a ScaledObject needs a trigger")
        if self.idle is not None and self.idle >= self.minimum:
            raise ValueError(f"idle replicas ({self.idle}) must be fewer than the minimum ({self.minimum})")
        if self.formula is not None:
            known = {trigger.label or trigger.metric for trigger in self.triggers if not trigger.is_use}
            unknown = [name for name in names(self.formula.text) if name not in known]
            if unknown:
                raise ValueError(
                    f"the formula reads '{unknown[0]}', which is no trigger; known: {', '.join(sorted(known))}"
                )

    @functools.cached_property
    def hpa(self) -> Hpa:
        """Return the HPA that decides between one and the maximum."""
        targets = (
            tuple(
                MetricTarget("Resource" if t.is_use else "External", t.metric, t.target, t.target_type)
                for t in self.triggers
            )
            if self.formula is None
            else (MetricTarget("External", COMPOSITE, self.formula.target, self.formula.target_type),)
        )
        return Hpa(max(1, self.minimum), self.maximum, targets, self.behavior)

    @functools.cached_property
    def _is_always_active(self) -> bool:
        return all(trigger.is_use for trigger in self.triggers)

    @functools.cached_property
    def switch(self) -> Switch:
        """Return how it goes to zero and back."""
        return Switch(self.minimum, self.idle, self.cooldown_s, self.initial_cooldown_s, self.pause_in, self.pause_out)

    def start(self) -> KedaMemory:
        """Return an empty memory."""
        return KedaMemory(failures=(0,) * len(self.triggers))

    def decide(self, observation: Observation, memory: KedaMemory) -> tuple[Decision, KedaMemory]:
        """Return KEDA's own step to or from zero, or what the HPA makes of the triggers' values."""
        now_s, current = observation.time_s, observation.replicas
        created = now_s if memory.created_s is None else memory.created_s
        values, active, failed, failures = self._read(observation, memory)
        last = now_s if active else memory.last_active_s
        memory = KedaMemory(memory.hpa, last, created, failures)
        if failed and not active and self.fallback is not None:
            return self._by_fallback(self.fallback, observation, failed, max(failures)), memory
        size_or_none, why = switched(self.switch, current, active, bool(failed), now_s, last, created)
        if size_or_none is not None:
            if failed and not active:
                return hold(observation, self.name, min(self.minimum, current), self.maximum, failed), memory
            size = min(size_or_none, self.maximum)
            ask = self.hpa.metrics[0].target
            wish = Alternative(f"{self.name}:hpa", self._plain_wish(values, current), f"by the target {ask:g} alone")
            return Decision(now_s, size, f"{self.name}:activation", (why,), (wish,)), memory
        return self._by_hpa(observation, memory, values, failed, why)

    def _by_fallback(self, fallback: Fallback, observation: Observation, failed: str, failures: int) -> Decision:
        """Return the size where a trigger failed and no other is active.

        KEDA's executor sets the static number at the first failure; the threshold counts only for the value that the HPA is
        given. A number that depends on the present size waits for the threshold. Nobody falls back to zero.
        """
        current = observation.replicas
        is_due = fallback.replicas > 0 if fallback.behavior == "static" else failures > fallback.failures
        if not is_due:
            return hold(observation, self.name, min(self.minimum, current), self.maximum, failed)
        size = within(fallback.size(current), self.minimum, self.maximum)
        held = (Alternative(f"{self.name}:hold", current, "without a fallback"),)
        reason = f"{failed}, and no trigger is active; failures in a row: {failures}"
        return Decision(observation.time_s, size, f"{self.name}:fallback", (reason,), held)

    def _read(
        self, observation: Observation, memory: KedaMemory
    ) -> tuple[dict[str, float], bool, str, tuple[int, ...]]:
        """Return metric values, whether any is active, what failed, and failures in a row."""
        values: dict[str, float] = {}
        labelled: dict[str, float] = {}
        # CPU and memory use cannot wake a workload that does not run: alone they never switch it off.
        active, failed, counts = self._is_always_active, "", []
        before = memory.failures or (0,) * len(self.triggers)
        late_after_s, has_formula = self.late_after_s, self.formula is not None
        for trigger, count in zip(self.triggers, before, strict=True):
            value = read(observation, trigger.metric, late_after_s)
            if value is None:
                failed = failed or why_unreadable(observation, trigger.metric, self.late_after_s)
                counts.append(count + 1)
                continue
            counts.append(0)
            values[trigger.metric] = value
            if has_formula:
                labelled[trigger.label or trigger.metric] = value
            active = active or (value > trigger.activation and not trigger.is_use)
        if self.formula is not None:
            values, active, problem = _composite(self.formula, labelled)
            failed = failed or problem
        return values, active, failed, tuple(counts)

    def _plain_wish(self, values: Mapping[str, float], current: int) -> int:
        metrics = [m for m in self.hpa.metrics if m.name in values and m.type == "External"]
        wishes = [math.ceil(values[m.name] / m.target) for m in metrics]
        return within(max(wishes, default=current), self.minimum, self.maximum)

    def _by_hpa(
        self, observation: Observation, memory: KedaMemory, values: Mapping[str, float], failed: str, why: str
    ) -> tuple[Decision, KedaMemory]:
        current = observation.replicas
        if current == 0:
            return Decision(observation.time_s, 0, self.name, (why or "no trigger is active",)), memory
        given: dict[str, float | None] = dict(values)
        fallback = self.fallback
        if failed and fallback is not None and max(memory.failures) > fallback.failures:
            # KEDA reports a value for the failed trigger that makes the HPA land on the fallback's size.
            for metric in self.hpa.metrics:
                if metric.name not in given and metric.type == "External":
                    per = 1 if metric.target_type == "AverageValue" else max(observation.ready or 1, 1)
                    given[metric.name] = metric.target * fallback.size(current) / per
        # Only what was read above counts: a late or negative value does not come in by another way.
        seen = Observation(observation.time_s, current, observation.ready, observation.starting, metrics=given)
        decision, hpa = self.hpa.decide(seen, memory.hpa)
        replicas, rule = decision.replicas, f"{self.name}:{decision.rule}"
        reasons = (why, *decision.reasons) if why else decision.reasons
        if (replicas < current and self.pause_in) or (replicas > current and self.pause_out):
            direction = "scale-in" if replicas < current else "scale-out"
            replicas, rule, reasons = current, f"{self.name}:paused", (f"{direction} is paused", *reasons)
        after = KedaMemory(hpa, memory.last_active_s, memory.created_s, memory.failures)
        return Decision(decision.time_s, replicas, rule, reasons, decision.alternatives, decision.held), after


def _composite(formula: Formula, labelled: Mapping[str, float]) -> tuple[dict[str, float], bool, str]:
    try:
        value = compiled(formula.text)(labelled)
    except KeyError as missing:
        return {}, False, f"the formula needs {missing.args[0]}, which is missing"
    except (ArithmeticError, TypeError, ValueError) as error:
        return {}, False, f"the formula fails: {error}"
    if not isinstance(value, (int, float)):
        return {}, False, "the formula gives no number"
    if not 0.0 <= value < math.inf:
        return {}, False, f"the formula gives {value:g}, which cannot be"
    return {COMPOSITE: value}, value > formula.activation, ""
