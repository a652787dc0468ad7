"""One battery for rules that take jobs back in a run: what holds whatever they do."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml

from gputwin.simulation.engine.state.lives import BY_PREEMPTION, SEGMENTS
from gputwin.simulation.engine.state.records import WHOLE
from gputwin.simulation.engine.world import FINISHED, NEVER_FITS
from gputwin.simulation.interruptions import Checkpoints
from gputwin.simulation.rules import Changes, Scheduler
from gputwin.simulation.run import Run, run
from gputwin.simulation.tenants import Fairness
from tests.conformance.crowd import crowd
from tests.oracles.cases import Case, bits
from tests.oracles.reference import Machine
from tests.simulation.test_kueue_by_hand import queue

_CROWD = crowd(2, 120)
CROWD = Case(_CROWD.nodes, tuple(replace(job, tenant=k % 3) for k, job in enumerate(_CROWD.jobs)))
GPUS = sum(node.gpus for node in CROWD.nodes)
COSTS = Checkpoints(interval_seconds=2.0, save_seconds=0.1, restart_seconds=0.2)
POLICY = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
RULES = ("quota", "kueue-classical", "kueue-fair", "kube-scheduler", "benefit")
every_rule = pytest.mark.parametrize("rule", RULES)


@pytest.fixture(scope="module")
def queues(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("queues") / "queues.yaml"
    # Quotas of half the cluster, so that they bind before nodes are full.
    objects = [queue(f"tenant-{t}", GPUS // 6, preemption=POLICY) for t in range(3)]
    file.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return file


@cache
def lived(rule: str, queues: Path) -> Run:
    workload, cluster, typical = CROWD.engine_input
    preemption = rule if rule in ("kube-scheduler", "benefit") else ""
    fairness = None if preemption else Fairness(rule, {"reclaim": 1.0} if rule == "quota" else {})
    if fairness is not None and rule != "quota":
        fairness = replace(fairness, queues=str(queues))
    scheduler = Scheduler("priority", "greedy", "first-fit", {"aging": 0.0}, fairness=fairness)
    changes = Changes(preemption=preemption, checkpoints=COSTS)
    return run(workload, cluster, scheduler, typical=typical, changes=changes)


@every_rule
def test_nothing_is_given_twice_and_jobs_are_taken_back(rule: str, queues: Path) -> None:
    lives, machines, asks = lived(rule, queues).world.lives, [Machine(node) for node in CROWD.nodes], CROWD.asks
    log = lives.segments[: lives.counts[SEGMENTS]]
    moments = [
        moment
        for k, segment in enumerate(log)
        if segment["end"] > segment["start"]
        for moment in ((segment["start"], 1, k), (segment["end"], 0, k))
    ]
    for _, starts, k in sorted(moments):
        for spot in lives.spots[log[k]["first_spot"] : log[k]["first_spot"] + log[k]["spots"]]:
            machine, ask = machines[spot["node"]], asks[spot["request"]]
            assert not starts or machine.holds(ask)
            machine.take(ask, bits(int(spot["devices"])), 1 if starts else -1)
    assert (log["why"] == BY_PREEMPTION).any()
    assert (log["by"][log["why"] == BY_PREEMPTION] >= 0).all()


@every_rule
def test_every_job_ends_and_its_time_is_accounted_for(rule: str, queues: Path) -> None:
    world = lived(rule, queues).world
    jobs, lives = world.queue.jobs, world.lives.records
    assert np.isin(jobs["outcome"], (FINISHED, NEVER_FITS)).all()
    done = jobs["outcome"] == FINISHED
    parts = jobs["duration"] + lives["waited"] + lives["lost"] + lives["overheads"]
    assert parts[done] == pytest.approx((jobs["end"] - jobs["submit"])[done], abs=1e-6)
    causes = (world.causes.share + world.lives.earlier).sum(axis=1)
    assert causes[done] == pytest.approx(lives["waited"][done], abs=1e-6)


@every_rule
def test_the_same_seed_gives_the_same_run(rule: str, queues: Path) -> None:
    first, again = lived(rule, queues).world, lived.__wrapped__(rule, queues).world
    assert first.queue.jobs["end"].tobytes() == again.queue.jobs["end"].tobytes()


def test_nobody_at_or_below_its_guarantee_loses_a_job(queues: Path) -> None:
    """Whenever a job is taken back, its tenant held more GPUs than guaranteed just before; who gained holds no more."""
    done = lived("quota", queues)
    world = done.world
    log = world.lives.segments[: world.lives.counts[SEGMENTS]]
    guaranteed = world.tenants.guaranteed
    tenant, milli = world.queue.jobs["tenant"], world.queue.jobs["gpu_milli"]
    for segment in log[log["why"] == BY_PREEMPTION]:
        held = (log["start"] < segment["end"]) & (log["end"] >= segment["end"])
        # Those that ended by themselves at this instant had left already.
        held &= ~((log["end"] == segment["end"]) & (log["why"] != BY_PREEMPTION))
        loser, gainer = tenant[segment["job"]], tenant[segment["by"]]
        assert milli[log["job"][held & (tenant[log["job"]] == loser)]].sum() > guaranteed[loser]
        assert loser != gainer
        assert milli[segment["by"]] <= guaranteed[gainer]
    assert guaranteed.sum() == pytest.approx(GPUS * WHOLE)


def test_usage_in_the_tree_is_that_of_who_runs(queues: Path) -> None:
    for rule in ("kueue-classical", "kueue-fair"):
        assert np.abs(lived(rule, queues).world.cohorts.usage).max() < 1e-6
