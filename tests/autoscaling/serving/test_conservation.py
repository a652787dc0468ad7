"""At every event: arrived = served + dropped + left + in flight, and every replica's work is somebody's."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gputwin.autoscaling.serving.simulator import Simulator
from gputwin.autoscaling.serving.system import Engine, Load, Slots
from gputwin.autoscaling.serving.world import (
    ABANDONED,
    COMING,
    DRAINING,
    DROPPED,
    N_ABANDONED,
    N_ARRIVED,
    N_DROPPED,
    N_FREE_SLOTS,
    N_RUNNING,
    N_SERVED,
    N_WAITING,
    OFF,
    RUNNING,
    SERVED,
    UP,
    WAITING,
)

COUNTER = {
    SERVED: N_SERVED,
    DROPPED: N_DROPPED,
    ABANDONED: N_ABANDONED,
    WAITING: N_WAITING,
    RUNNING: N_RUNNING,
}


def check(run: Simulator, slots: int) -> None:
    w = run.world
    status, counted = w.requests.status, w.counters
    for state, counter in COUNTER.items():
        assert (status == state).sum() == counted[counter]
    assert (status != COMING).sum() == counted[N_ARRIVED]
    assert counted[N_ARRIVED] == sum(counted[c] for c in COUNTER.values())
    p = w.replicas
    assert p.busy.sum() == counted[N_RUNNING]
    up = p.state == UP
    assert counted[N_FREE_SLOTS] == (slots - p.busy[up] - p.routed[up]).sum()
    assert not p.busy[p.state == OFF].any()
    assert np.all(p.busy[p.state == DRAINING] + p.routed[p.state == DRAINING] > 0)
    # Nobody waits in the shared queue beside a free place.
    assert counted[N_FREE_SLOTS] == 0 or w.queues.head[0] == -1


def check_cache(run: Simulator) -> None:
    """The batches' totals are those of their members, and fit into the cache."""
    w = run.world
    r, b = w.requests, w.batches
    for row in range(len(w.replicas.state)):
        members = b.members[row, : w.replicas.busy[row]]
        filling = [j for j in members if r.computed[j] < r.input_tokens[j] + r.produced[j] or r.ends_at_step[j] > 2**60]
        made = {j: r.output_tokens[j] - (r.ends_at_step[j] - b.steps[row]) for j in members if j not in filling}
        assert b.decoding[row] == len(made)
        assert b.context[row] == sum(r.input_tokens[j] + k for j, k in made.items())
        assert b.filling[row] == sum(r.input_tokens[j] + r.produced[j] for j in filling)
        assert b.context[row] + b.filling[row] <= w.limits.cache_tokens
        assert len(filling) <= 1 or b.is_stepping[row]


SCENARIOS = st.fixed_dictionaries(
    {
        "gaps": st.lists(st.sampled_from([0.0, 0.1, 0.5, 3.0]), min_size=1, max_size=40),
        "seed": st.integers(0, 1000),
        "targets": st.lists(st.integers(0, 4), min_size=1, max_size=12),
        "boot": st.sampled_from([0.0, 0.4, 2.5]),
        "queue_limit": st.sampled_from([None, 0, 3]),
        "patient": st.booleans(),
        "slots": st.integers(1, 3),
        "replicas": st.integers(0, 3),
        "tokens": st.booleans(),
    }
)


def made(s: dict[str, Any]) -> Simulator:
    rng = np.random.default_rng(s["seed"])
    arrival = np.cumsum(s["gaps"])
    n = len(arrival)
    patience = None if s["patient"] else rng.exponential(2.0, n)
    more = {
        "replicas": s["replicas"],
        "most_replicas": 5,
        "boot_seconds": s["boot"],
        "queue_limit": s["queue_limit"],
    }
    if s["tokens"]:
        engine = Engine(0.05, 0.01, 0.02, 1e-4, 1e-4, sequences=s["slots"], batched_tokens=8, cache_tokens=40)
        sizes = {"input_tokens": rng.integers(1, 25, n), "output_tokens": rng.integers(1, 20, n)}
        return Simulator(Load(arrival, patience=patience, **sizes), engine, **more)
    models = rng.integers(-1, 3, n) if s["slots"] == 1 else None
    adapters = rng.integers(-1, 2, n) if s["slots"] == 1 else None
    load = Load(
        arrival,
        service=rng.exponential(1.0, n),
        patience=patience,
        model=models,
        adapter=adapters,
        model_load=np.full(n, 0.7),
        adapter_load=np.full(n, 0.2),
    )
    return Simulator(load, Slots(s["slots"]), **more)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SCENARIOS)
def test_requests_are_conserved_at_every_event(scenario: dict[str, Any]) -> None:
    run = made(scenario)
    slots = scenario["slots"]
    period, decided = 0.9, 0
    while True:
        w = run.world
        pending = [w.events.time[0]] if w.events.size[0] else []
        if w.counters[N_ARRIVED] < len(run.load):
            pending.append(run.load.arrival[w.counters[N_ARRIVED]])
        due = (decided + 1) * period if decided < len(scenario["targets"]) else np.inf
        if not pending and due == np.inf:
            break
        if due < min(pending, default=np.inf):
            run.advance(due)
            run.scale(scenario["targets"][decided])
            decided += 1
        else:
            run.advance(min(pending))
        check(run, slots)
        if scenario["tokens"]:
            check_cache(run)
    # At the end nobody is in flight, unless no replica is left.
    left = run.world.counters[N_WAITING] + run.world.counters[N_RUNNING]
    assert left == 0 or sum(run.states()) == 0
    lives = run.lives()
    assert np.all(lives[:, 3] >= lives[:, 0])
    assert lives[:, 5].sum() == run.world.counters[N_SERVED]
    slot_seconds = lives[:, 4] / (1 if scenario["tokens"] else slots)
    assert np.all(slot_seconds <= lives[:, 3] - lives[:, 0] + 1e-9)
    served = run.world.requests.status == SERVED
    assert np.all(run.waits()[served] >= 0)
