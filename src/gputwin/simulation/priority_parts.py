"""A job's priority at some time as the sum of its parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gputwin.simulation.ordering.priority import PARAMETERS

FACTORS = {"age": "age", "fairshare": "fair share", "job_size": "job size", "qos": "QOS"}
"""Factors of a priority as people say them."""


@dataclass(frozen=True)
class PriorityParts:
    """A job's priority at some time, and what each factor added to it."""

    time: float
    """When priorities were worked out, s."""
    priority: float
    parts: dict[str, float]
    factors: dict[str, float] = field(default_factory=dict)

    def sentence(self, when: str) -> str:
        """Return it in words."""
        parts = [f"{FACTORS.get(k, k)} {points(v)}" for k, v in sorted(self.parts.items(), key=lambda p: -p[1]) if v]
        return f"Its priority when it {when} was {points(self.priority)}: {', '.join(parts) or 'no factor added anything'}."


def points(value: float) -> str:
    """Return points of a priority: whole numbers without decimals, others with one."""
    return f"{value:,.1f}".removesuffix(".0")


def aged_parts(scheduler: dict[str, Any], job: dict[str, Any], time: float) -> PriorityParts | None:
    """Return the priority of a job (a row of the run's jobs) at `time` under the order 'priority'; None under others."""
    own = job.get("priority")
    if scheduler["order"] != "priority" or own is None:
        return None
    aging = scheduler["order_parameters"].get("aging", PARAMETERS["aging"])
    parts = {"its own": float(own), "age": aging * (time - job["submit_time"])}
    return PriorityParts(time, sum(parts.values()), {name: value for name, value in parts.items() if value})
