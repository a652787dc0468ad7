"""The rule that knows the future: plans made from the demand to come, the best of them in hindsight."""

from __future__ import annotations

import math

import numpy as np

from gputwin.autoscaling.foresight import cheapest_course
from gputwin.autoscaling.score import Terms, preference, score
from gputwin.autoscaling.serving.run import ServedRun, Setting, replay
from gputwin.autoscaling.serving.simulator import Simulator
from gputwin.autoscaling.serving.system import Engine, Load, Slots
from gputwin.autoscaling.serving.world import Floats
from gputwin.core.units import format_duration

_SMOOTHED = (1, 4)
"""Periods over which the demand is averaged: brief peaks may wait."""
_MOST_FLEET = 400


def occupancy(
    load: Load, system: Slots | Engine, fills: tuple[float, ...], span: float, period: float
) -> tuple[Floats, Floats]:
    """Return requests in flight with capacity for all, mean over each period, and the most in each period.

    An LLM engine's latency depends on its batch: as many replicas as never fill beyond the second of `fills` serve them.
    """
    if isinstance(system, Slots):
        assert load.service is not None
        end = load.arrival + load.service
    else:
        end = load.arrival + _unhurried(load, system, fills[min(1, len(fills) - 1)])
    bins = math.ceil(span / period)
    time = np.concatenate([load.arrival, end])
    change = np.concatenate([np.ones(len(load)), -np.ones(len(load))])
    order = np.argsort(time, kind="stable")
    time, count = time[order], np.cumsum(change[order])
    edges = np.arange(bins + 1) * period
    # The integral of the count up to each edge, by the points where it changes.
    area = np.concatenate([[0.0], np.cumsum(count[:-1] * np.diff(time))])
    at = np.searchsorted(time, edges, side="right") - 1
    inside = at >= 0
    up_to = np.where(
        inside, area[np.maximum(at, 0)] + count[np.maximum(at, 0)] * (edges - time[np.maximum(at, 0)]), 0.0
    )
    mean = np.diff(up_to) / period
    most = mean.copy()
    which = np.minimum((time / period).astype(np.int64), bins - 1)
    np.maximum.at(most, which, count)
    return mean, most


def _unhurried(load: Load, system: Engine, fill: float) -> Floats:
    """Return each request's latency on a fleet so large that batches stay below `fill`."""
    replicas = 1
    while True:
        run = Simulator(load, system, replicas=replicas, most_replicas=replicas)
        run.finish()
        latency = run.latencies()
        mean_busy = float(np.nansum(latency)) / max(float(load.arrival[-1] - load.arrival[0]), 1.0) / replicas
        if mean_busy <= fill / 2 or replicas >= _MOST_FLEET:
            return np.nan_to_num(latency)
        replicas *= 2


def best_in_hindsight(
    load: Load,
    setting: Setting,
    terms: Terms,
    demands: tuple[Floats, Floats],
    fills: tuple[float, ...],
    minimum: int,
    maximum: int,
    budget: float,
    price: float,
) -> tuple[str, ServedRun]:
    """Return the plan with the lowest cost among those within the violation budget (else with the fewest violations)."""
    best: tuple[tuple[bool, float, float], str, ServedRun] | None = None
    fullest = setting.system.slots if isinstance(setting.system, Slots) else setting.system.sequences
    mean, most = demands
    courses = {
        "at its peaks": most,
        **{f"over {format_duration(w * setting.period)}": _smoothed(mean, w) for w in _SMOOTHED},
    }
    for fill in sorted({fills[0] / 2, *fills[:3], float(fullest)}):
        for demand_words, demand in courses.items():
            need = np.clip(np.ceil(demand / fill - 1e-9), minimum, maximum)
            course = cheapest_course(
                need * setting.period,
                setting.period,
                boot_seconds=setting.boot_seconds,
                price_per_hour=price,
                minimum=minimum,
                first=setting.replicas,
            )
            run = replay(load, setting, _plan(course.replicas, setting))
            found = preference(score(run, setting, terms, need), budget)
            words = f"plan for {fill:g} in flight per replica, demand {demand_words}"
            if best is None or found < best[0]:
                best = (found, words, run)
    assert best is not None
    return best[1], best[2]


def _smoothed(values: Floats, width: int) -> Floats:
    """Return the mean over the last `width` entries."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    at = np.arange(len(values)) + 1
    low = np.maximum(at - width, 0)
    return np.asarray((total[at] - total[low]) / (at - low))


def _plan(replicas: np.ndarray, setting: Setting) -> list[tuple[float, int]]:
    """Return when to ask for how many, so that each replica is ready when its bin begins."""
    change = np.diff(replicas, prepend=setting.replicas)
    moves = [
        (max(t * setting.period - (setting.boot_seconds if d > 0 else 0.0), 0.0), int(d))
        for t, d in enumerate(change)
        if d
    ]
    moves.sort()
    plan, target = [], setting.replicas
    for time, by in moves:
        target += by
        plan.append((time, max(target, 0)))
    return plan
