"""Reading metrics with suspicion: what is missing, late, NaN, infinite or negative is no figure to scale on."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gputwin.autoscaling.decisions.interface import Alternative, Decision, Observation
from gputwin.core.units import short_duration


def read(observation: Observation, name: str, late_after_s: float) -> float | None:
    """Return the metric called `name`; None where it is missing, no finite number at or above 0, or too old."""
    age = observation.ages_s.get(name, 0.0)
    # Written so that an age of NaN counts as late.
    return observation.read(name) if age <= late_after_s else None


def why_unreadable(observation: Observation, name: str, late_after_s: float) -> str:
    """Return in words why `read` gave None for `name`."""
    age = observation.ages_s.get(name, 0.0)
    if not age <= late_after_s:
        return f"{name} is {short_duration(age)} old, later than {short_duration(late_after_s)}"
    given = observation.metrics.get(name, getattr(observation, name, None))
    if given is None and name.startswith("latency:"):
        given = observation.latency_s.get(name[8:])
    if given is None:
        return f"{name} is missing"
    if isinstance(given, float) and math.isnan(given):
        return f"{name} is NaN"
    return f"{name} is {given:g}, which cannot be"


def within(replicas: int, minimum: int, maximum: int) -> int:
    """Return `replicas`, or the nearer limit."""
    return minimum if replicas < minimum else maximum if replicas > maximum else replicas


def hold(
    observation: Observation,
    rule: str,
    minimum: int,
    maximum: int,
    why: str,
    alternatives: Iterable[Alternative] = (),
) -> Decision:
    """Return the decision to keep what is there (within the limits), since `rule` cannot decide."""
    kept = within(observation.replicas, minimum, maximum)
    return Decision(observation.time_s, kept, rule, (f"holds: {why}",), tuple(alternatives), held=True)


def check_limits(minimum: int, maximum: int) -> None:
    """Raise `ValueError` where the limits are no limits."""
    if minimum < 0 or maximum < 1 or minimum > maximum:
        raise ValueError(f"the limits {minimum} to {maximum} are not 0 ≤ minimum ≤ maximum with maximum at least 1")
