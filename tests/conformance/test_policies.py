"""One battery for every order that stops nobody, rule of overtaking and placement, in every combination."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from gputwin.simulation.engine.state.series import WAITING_JOBS
from gputwin.simulation.engine.world import FINISHED, LOST, NEVER_FITS
from gputwin.simulation.machines import cluster_models, make_machines
from gputwin.simulation.policy import BACKFILLS, ORDERINGS, PLACEMENTS
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.run import Run, run
from gputwin.simulation.workload import workload_of
from tests.conformance.crowd import IMPOSSIBLE, NODES, crowd
from tests.oracles import reference
from tests.oracles.cases import Case, cluster_of, outcomes_of, trace_of_jobs
from tests.oracles.reference import Machine, Outcome, Reference, Spot

JOBS = 160
CROWD = crowd(1, JOBS)
SCHEDULERS = [
    pytest.param(Scheduler(*names), id="/".join(names))
    for names in product((o.name for o in ORDERINGS if not o.preemption), BACKFILLS.names(), PLACEMENTS.names())
    # Plans cannot follow keys that change with the use of tenants: that is refused.
    if not (ORDERINGS.get(names[0]).weighs_tenants and names[1] in ("conservative", "loss"))
]
every_scheduler = pytest.mark.parametrize("scheduler", SCHEDULERS)


@cache
def simulated(order: str, backfill: str, placement: str) -> Run:
    return CROWD.run(order, backfill, placement)


def done(scheduler: Scheduler) -> Run:
    """Return the crowd's run under these rules, made once."""
    return simulated(scheduler.order, scheduler.backfill, scheduler.placement)


def outcomes(scheduler: Scheduler) -> list[Outcome]:
    return outcomes_of(done(scheduler), CROWD.asks)


def waits(outcome: Run) -> np.ndarray:
    """Return the wait of each job that started, s."""
    jobs = outcome.world.queue.jobs
    return (jobs["start"] - jobs["submit"])[~np.isnan(jobs["start"])]


def test_the_crowd_is_one():
    """The battery says little unless jobs wait, for several reasons, and overtake each other."""
    outcome = simulated("fifo", "strict", "first-fit")
    assert (waits(outcome) > 0).sum() > JOBS / 3
    causes = outcome.world.causes.share.sum(axis=0) + simulated("sjf", "greedy", "best-fit").world.causes.share.sum(
        axis=0
    )
    assert (causes > 0).sum() >= 6


@every_scheduler
def test_nothing_is_given_twice_and_nobody_gets_what_he_must_not(scheduler):
    """Replay all starts and ends: machines that refuse what does not fit take every instance."""
    ran, machines = outcomes(scheduler), [Machine(node) for node in CROWD.nodes]
    moments: list[tuple[float, int, int]] = []
    for j, outcome in enumerate(ran):
        if outcome.spots:
            moments += [(outcome.start, 1, j), (outcome.start + CROWD.jobs[j].duration, 0, j)]
    for _, starts, j in sorted(moments):
        for spot in ran[j].spots:
            if starts:
                assert_holds(machines[spot.node], spot)
            machines[spot.node].take(spot.ask, spot.devices, 1 if starts else -1)


def assert_holds(machine: Machine, spot: Spot) -> None:
    assert machine.holds(spot.ask)
    assert len(spot.devices) == spot.ask.gpus
    assert all(machine.device_fits(spot.ask, d) for d in spot.devices)


@every_scheduler
def test_everything_is_free_again_at_the_end(scheduler):
    outcome = done(scheduler)
    empty, left = make_machines(outcome.cluster, outcome.workload), outcome.world.machines
    for name in (name for name in empty.nodes.dtype.names if name != "fragmentation"):
        np.testing.assert_array_equal(left.nodes[name], empty.nodes[name], err_msg=name)
    assert left.gpus.tobytes() == empty.gpus.tobytes()
    assert not left.residents.any()
    np.testing.assert_array_equal(left.free, empty.free)


@every_scheduler
def test_every_job_is_accounted_for_and_starts_whole(scheduler):
    jobs = done(scheduler).world.queue.jobs
    possible = {"finished", "lost"} if scheduler.backfill == "loss" else {"finished"}
    for job, outcome, record in zip(CROWD.jobs, outcomes(scheduler), jobs, strict=True):
        if (IMPOSSIBLE, 1) in job.groups:
            assert outcome.fate == "never fits"
        else:
            assert outcome.fate in possible
        if outcome.fate != "finished":
            assert np.isnan(record["start"])
            assert np.isnan(record["end"])
            continue
        assert record["start"] >= job.submit
        assert record["end"] == record["start"] + job.duration
        placed = Counter(spot.ask for spot in outcome.spots)
        assert placed == Counter(dict(job.groups))
    assert set(np.unique(jobs["outcome"])) <= {FINISHED, NEVER_FITS, LOST}


@every_scheduler
def test_causes_are_not_negative_and_sum_to_the_wait(scheduler):
    outcome = done(scheduler)
    jobs, shares = outcome.world.queue.jobs, outcome.world.causes.share
    assert (shares >= 0).all()
    started = ~np.isnan(jobs["start"])
    # But for the last bit: not every number is the rounded sum of such parts.
    np.testing.assert_array_max_ulp(np.array([sum(row) for row in shares[started].tolist()]), waits(outcome), 1)
    assert not shares[~started].any()


@every_scheduler
def test_the_queue_over_time_holds_the_waits_of_all_jobs(scheduler):
    """Little's law on the path, as far as the series reaches."""
    outcome = done(scheduler)
    jobs, values = outcome.world.queue.jobs, outcome.world.series.values
    reaches = jobs["submit"][0] + values.shape[0] * outcome.bin_seconds
    started = jobs[~np.isnan(jobs["start"])]
    within = np.clip(started["start"], None, reaches) - np.clip(started["submit"], None, reaches)
    assert values[:, WAITING_JOBS].sum() == pytest.approx(within.sum(), rel=1e-9, abs=1e-6)


@every_scheduler
def test_the_same_run_gives_the_same_bytes(scheduler):
    first = done(scheduler)
    again = CROWD.run(scheduler.order, scheduler.backfill, scheduler.placement)
    assert first.last_event == again.last_event
    for part in ("slots", "requests"):
        assert getattr(first.world, part).tobytes() == getattr(again.world, part).tobytes()
    assert first.world.queue.jobs.tobytes() == again.world.queue.jobs.tobytes()
    assert first.world.causes.share.tobytes() == again.world.causes.share.tobytes()
    assert first.world.series.values.tobytes() == again.world.series.values.tobytes()


@every_scheduler
def test_looking_for_causes_changes_no_schedule(scheduler):
    first = done(scheduler)
    blind = CROWD.run(scheduler.order, scheduler.backfill, scheduler.placement, attribute=False)
    np.testing.assert_array_equal(blind.world.queue.jobs["start"], first.world.queue.jobs["start"])
    assert blind.world.slots.tobytes() == first.world.slots.tobytes()


@cache
def renamed() -> tuple[Case, list[str], list[int]]:
    """Return a smaller crowd with other job ids, and the order in which its rows are shuffled."""
    case, dice = crowd(2, 150), random.Random(3)
    ids = [f"{dice.randrange(1 << 40):x}" for _ in case.jobs]
    order = list(range(len(case.jobs)))
    dice.shuffle(order)
    return case, ids, order


@pytest.mark.parametrize("placement", PLACEMENTS.names())
@pytest.mark.parametrize("backfill", BACKFILLS.names())
def test_neither_names_nor_the_order_of_rows_matter(backfill, placement):
    case, ids, shuffled = renamed()
    cluster = cluster_of(case.nodes)
    scheduler, models = Scheduler("sjf", backfill, placement), cluster_models(cluster)
    plain = run(workload_of(trace_of_jobs(case.jobs), models, predict="requested"), cluster, scheduler)
    rows = trace_of_jobs([case.jobs[j] for j in shuffled], [ids[j] for j in shuffled])
    other = run(workload_of(rows, models, predict="requested"), cluster, scheduler)
    assert other.workload.job_ids.to_list() == ids
    for column in ("start", "end", "outcome"):
        np.testing.assert_array_equal(other.world.queue.jobs[column], plain.world.queue.jobs[column])


@pytest.mark.parametrize("placement", reference.PLACEMENTS)
@pytest.mark.parametrize("backfill", ["easy", "conservative"])
def test_nobody_starts_later_than_promised_where_predictions_are_true(backfill, placement):
    """The first promise made to a job is kept: by EASY to whoever is first in line, by conservative to all."""
    case = crowd(4, 60, exact=True, groups=1, nodes=NODES[2:8])
    case = Case(case.nodes, tuple(replace(job, predicted=max(job.duration, 1.0)) for job in case.jobs))
    plain = Reference(case.nodes, case.jobs, "fifo", backfill, placement)
    plain.simulate()
    starts = [outcome.start for outcome in case.by_engine("fifo", backfill, placement)]
    assert len(plain.promises) >= 4
    for j, promised in plain.promises.items():
        assert starts[j] <= promised
