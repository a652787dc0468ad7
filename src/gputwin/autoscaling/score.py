"""How a run of a serving system went: cost, SLA, response times, and how far capacity was from demand."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gputwin.autoscaling.cost import Cost, Prices, bill, split_purchases
from gputwin.autoscaling.serving.run import ServedRun, Setting
from gputwin.autoscaling.serving.system import Engine, Load, Slots
from gputwin.autoscaling.serving.world import N_LOADS, Floats
from gputwin.core.percentiles import percentile
from gputwin.core.units import HOUR, MINUTE

MISSED_SHARE = 0.05
"""A minute is violated where more than this share of its requests missed the target: the 95th percentile is too long."""


@dataclass(frozen=True)
class Terms:
    """What a run is judged by."""

    target_seconds: float
    prices: Prices
    reserved: int = 0
    spot_share: float = 0.0


@dataclass(frozen=True)
class Score:
    """One row of the comparison."""

    cost: Cost
    violation_minutes: int
    active_minutes: int
    """Minutes in which a request came."""
    missed_share: float
    p50_response: float
    p95_response: float
    p99_response: float
    p95_latency: float
    mean_replicas: float
    """Paid for, on average over `paid_seconds`."""
    paid_seconds: float
    """From the beginning to the end of the period in which the last request was done: what replicas are paid over."""
    over_replica_hours: float
    under_replica_hours: float
    scale_events: int
    cold_starts: int
    model_loads: int
    refused: int
    requests: int
    impossible: int = 0
    """Requests that miss the target even alone on a replica; no minute counts as violated because of them."""


def score(run: ServedRun, setting: Setting, terms: Terms, need: Floats) -> Score:
    """Return how the run went; `need` is the demand in replicas at each period, the same for every rule."""
    simulator = run.simulator
    response, refused = run.response_seconds(), simulator.refused()
    possible = alone_seconds(simulator.load, setting.system) <= terms.target_seconds
    missed = (np.nan_to_num(response, nan=math.inf) > terms.target_seconds) & possible
    minute = (simulator.load.arrival / MINUTE).astype(np.int64)
    came = np.bincount(minute, weights=possible, minlength=1) if len(minute) else np.zeros(1)
    missed_in = np.bincount(minute, weights=missed, minlength=len(came)) if len(minute) else np.zeros(1)
    lives = simulator.lives()
    paid = lives[:, 3] - lives[:, 0]
    slots = setting.system.slots if isinstance(setting.system, Slots) else 1
    groups = split_purchases(
        lives[:, 0],
        paid,
        np.minimum(lives[:, 4] / slots, paid),
        run.end,
        reserved=terms.reserved,
        spot_share=terms.spot_share,
    )
    cost = bill(
        groups,
        terms.prices,
        response_seconds=response,
        target_seconds=terms.target_seconds,
        used_by_tenant=_used(simulator.load, setting.system),
    )
    up = np.array(run.series.up, dtype=float)
    bins = min(len(need), len(up))
    gap = (up[:bins] - need[:bins]) * setting.period / HOUR
    known = response[~np.isnan(response)]
    p50, p95, p99 = (percentile(known, q) for q in (0.5, 0.95, 0.99))
    latency = simulator.latencies()
    return Score(
        cost,
        int((missed_in > MISSED_SHARE * came).sum()),
        int((came > 0).sum()),
        float(missed.sum() / max(possible.sum(), 1)),
        p50,
        p95,
        p99,
        percentile(latency[~np.isnan(latency)], 0.95),
        float(paid.sum()) / run.end,
        run.end,
        float(np.maximum(gap, 0.0).sum()),
        float(np.maximum(-gap, 0.0).sum()),
        sum(run.series.changes),
        max(run.cold_starts - setting.replicas, 0),
        int(simulator.world.counters[N_LOADS]),
        int(refused.sum()),
        len(simulator.load),
        int((~possible).sum()),
    )


def preference(found: Score, budget: float) -> tuple[bool, float, float]:
    """Return the order of settings: those within the budget by cost, the others by violations."""
    share = found.violation_minutes / max(found.active_minutes, 1)
    is_over = share > budget
    return is_over, share if is_over else 0.0, found.cost.total


def _used(load: Load, system: Slots | Engine) -> dict[str, float]:
    """Return each tenant's work: service seconds, or seconds of engine steps."""
    if not load.tenant:
        return {}
    work = work_seconds(load, system)
    names, which = np.unique(np.array(load.tenant), return_inverse=True)
    return dict(zip(names.tolist(), np.bincount(which, weights=work).tolist(), strict=True))


def alone_seconds(load: Load, system: Slots | Engine) -> Floats:
    """Return the response time of each request alone on a replica that is up: no rule can do better.

    The whole service, or the steps that compute the prompt up to the first token. Models and adapters are loaded already.
    """
    if isinstance(system, Slots):
        assert load.service is not None
        return load.service
    assert load.input_tokens is not None
    prompt = load.input_tokens.astype(float)
    steps = np.maximum(np.ceil(prompt / system.batched_tokens), 1.0)
    pairs = 0.5 * prompt**2 * system.attention_seconds
    return np.asarray(steps * system.step_seconds + prompt * system.prefill_seconds + pairs)


def work_seconds(load: Load, system: Slots | Engine) -> Floats:
    """Return the least replica-seconds each request takes: with every slot in use, or in a full batch."""
    if isinstance(system, Slots):
        assert load.service is not None
        return load.service / system.slots
    assert load.input_tokens is not None
    assert load.output_tokens is not None
    prompt, made = load.input_tokens.astype(float), load.output_tokens.astype(float)
    decode = (made - 1) * (system.decode_seconds + system.step_seconds / system.sequences)
    context = (made - 1) * (prompt + made / 2) * system.context_seconds
    return np.asarray(prompt * system.prefill_seconds + 0.5 * prompt**2 * system.attention_seconds + decode + context)
