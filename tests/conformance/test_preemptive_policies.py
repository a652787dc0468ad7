"""One battery for every order that stops jobs and every placement: what holds whatever the policy does."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

from gputwin.simulation.engine.state.lives import SEGMENTS
from gputwin.simulation.engine.world import FINISHED, NEVER_FITS
from gputwin.simulation.interruptions import Checkpoints, Faults
from gputwin.simulation.policy import ORDERINGS, PLACEMENTS
from gputwin.simulation.rules import Changes, Scheduler
from gputwin.simulation.run import Run, run
from tests.conformance.crowd import crowd
from tests.oracles.cases import bits
from tests.oracles.reference import Machine

CROWD = crowd(2, 120)
COSTS = Checkpoints(interval_seconds=2.0, save_seconds=0.1, restart_seconds=0.2)
FAILING = Faults(mtbf_seconds=60.0, repair_seconds=3.0)
RULES = [
    (order, backfill, placement)
    for order, backfill, placement in product(
        (o.name for o in ORDERINGS if o.preemption), ("strict", "greedy"), PLACEMENTS.names()
    )
]
every_rule = pytest.mark.parametrize("rules", RULES, ids="/".join)


@cache
def lived(rules: tuple[str, str, str]) -> Run:
    workload, cluster, typical = CROWD.engine_input
    parameters = {"round-robin": {"quantum": 3.0}, "las": {"first": 4.0}}.get(rules[0], {})
    changes = Changes(checkpoints=COSTS, faults=FAILING)
    return run(workload, cluster, Scheduler(*rules, parameters), typical=typical, changes=changes)


@every_rule
def test_nothing_is_given_twice(rules):
    """Replay all segments: machines that refuse what does not fit take every instance."""
    lives, machines, asks = lived(rules).world.lives, [Machine(node) for node in CROWD.nodes], CROWD.asks
    log, moments = lives.segments[: lives.counts[SEGMENTS]], []
    for k, segment in enumerate(log):
        if segment["end"] > segment["start"]:
            moments += [(segment["start"], 1, k), (segment["end"], 0, k)]
    for _, starts, k in sorted(moments):
        for spot in lives.spots[log[k]["first_spot"] : log[k]["first_spot"] + log[k]["spots"]]:
            machine, ask = machines[spot["node"]], asks[spot["request"]]
            assert not starts or machine.holds(ask)
            machine.take(ask, bits(int(spot["devices"])), 1 if starts else -1)


@every_rule
def test_every_job_ends_and_its_time_is_accounted_for(rules):
    world = lived(rules).world
    jobs, lives = world.queue.jobs, world.lives.records
    assert np.isin(jobs["outcome"], (FINISHED, NEVER_FITS)).all()
    done = jobs["outcome"] == FINISHED
    parts = jobs["duration"] + sum(lives[name] for name in ("waited", "lost", "overheads"))
    parts = parts + sum(world.lives.factors[name] for name in ("slow_model", "slow_size"))
    assert parts[done] == pytest.approx((jobs["end"] - jobs["submit"])[done], abs=1e-6)
    causes = (world.causes.share + world.lives.earlier).sum(axis=1)
    assert causes[done] == pytest.approx(lives["waited"][done], abs=1e-6)


@every_rule
def test_segments_of_a_job_do_not_overlap_and_none_is_on_a_node_that_is_down(rules):
    world = lived(rules).world
    log = np.sort(world.lives.segments[: world.lives.counts[SEGMENTS]], order=["job", "start"])
    same = log["job"][1:] == log["job"][:-1]
    assert (log["start"][1:] >= log["end"][:-1])[same].all()
    outs: dict[int, list[list[float]]] = {}
    for time, node, state in world.outages.log[: world.outages.count[0]].tolist():
        if state:
            outs.setdefault(node, []).append([time, np.inf])
        else:
            outs[node][-1][1] = time
    for segment in log:
        for spot in world.lives.spots[segment["first_spot"] : segment["first_spot"] + segment["spots"]]:
            for begin, end in outs.get(int(spot["node"]), ()):
                assert segment["end"] <= begin or segment["start"] >= end


@every_rule
def test_the_same_seed_gives_the_same_run(rules):
    first, again = lived(rules).world, lived.__wrapped__(rules).world
    assert first.lives.counts[SEGMENTS] == again.lives.counts[SEGMENTS]
    assert first.queue.jobs["end"].tobytes() == again.queue.jobs["end"].tobytes()
