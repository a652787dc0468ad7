"""Functions that a policy may consist of."""

from __future__ import annotations

from typing import Any

from gputwin.simulation.engine.state.records import draw


def reads(jobs: Any, j: int, now: float, knobs: Any) -> float:
    job = jobs[j]
    free = job.predicted
    free -= job.attained
    return free * knobs.order[0]


def keeps_numbers_of_its_own(jobs: Any, j: int, now: float, knobs: Any) -> float:
    total, weights = 0.0, (1.0, 2.0)
    for k, weight in enumerate(weights):
        total += weight * k
    return total + jobs[j].submit


def draws(machines: Any, requests: Any, r: int, n: int, knobs: Any) -> float:
    return draw(knobs)
