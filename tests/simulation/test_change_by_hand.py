"""Schedules with change worked by hand: preemption, failures, drain, GPU speeds, resizing, and what each costs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.simulation import make_world
from gputwin.simulation.engine.state.lives import REASONS, SEGMENTS
from gputwin.simulation.interruptions import Checkpoints, Elasticity, Faults, Maintenance
from gputwin.simulation.rules import Changes, Scheduler
from gputwin.simulation.run import Run, run
from tests.oracles.cases import Case
from tests.oracles.reference import Node
from tests.simulation.by_hand import gpus, job

ONE, TWO = gpus(1), gpus(2)


def play(case: Case, order: str, changes: Changes | None = None, backfill: str = "greedy", **parameters: float) -> Run:
    workload, cluster, typical = case.engine_input
    return run(workload, cluster, Scheduler(order, backfill, "first-fit", parameters), typical=typical, changes=changes)


def lived(done: Run) -> list[tuple[int, float, float, str]]:
    """Return (job, start, end, why it ended) of each segment, in the order in which they ended."""
    lives = done.world.lives
    return [
        (int(s["job"]), float(s["start"]), float(s["end"]), REASONS[s["why"]])
        for s in lives.segments[: lives.counts[SEGMENTS]]
    ]


def part(done: Run, j: int, name: str) -> float:
    lives = done.world.lives
    return float((lives.factors if name.startswith("slow_") else lives.records)[j][name])


def test_the_shortest_remaining_time_takes_over():
    # A (10 s) runs; at 1 B needs 5 < 9 left: B takes over. At 2 C needs 1 < 4: C, until 3. At 3 D arrives with 3 < 4.
    # Then B has 4 left, then A 9.
    case = Case((Node(1),), (job(0, 10, ONE), job(1, 5, ONE), job(2, 1, ONE), job(3, 3, ONE)))
    assert lived(play(case, "srtf")) == [
        (0, 0, 1, "preempted"),
        (1, 1, 2, "preempted"),
        (2, 2, 3, "finished"),
        (3, 3, 6, "finished"),
        (1, 6, 10, "finished"),
        (0, 10, 19, "finished"),
    ]


def test_who_needs_as_long_as_is_left_does_not_take_over():
    case = Case((Node(1),), (job(0, 10, ONE), job(4, 6, ONE)))
    assert lived(play(case, "srtf")) == [(0, 0, 10, "finished"), (1, 10, 16, "finished")]


def test_a_restart_and_a_save_are_paid_when_the_job_goes_on():
    # A runs 0 to 4, is preempted by B (2 s); at 6 it pays 1 s for the save and 2 s for the restart, then 6 s of work.
    case = Case((Node(1),), (job(0, 10, ONE), job(4, 2, ONE)))
    done = play(case, "srtf", Changes(checkpoints=Checkpoints(save_seconds=1, restart_seconds=2)))
    assert lived(done) == [(0, 0, 4, "preempted"), (1, 4, 6, "finished"), (0, 6, 15, "finished")]
    assert (part(done, 0, "waited"), part(done, 0, "overheads"), part(done, 0, "lost")) == (2, 3, 0)


def test_without_a_save_the_work_since_the_last_checkpoint_is_lost():
    # Checkpoints after 3 s of work: at 4, A has 3 safe and loses 1. It goes on at 6 with 7 s of work left.
    case = Case((Node(1),), (job(0, 10, ONE), job(4, 2, ONE)))
    costs = Checkpoints(interval_seconds=3, on_preemption=False)
    done = play(case, "srtf", Changes(checkpoints=costs))
    assert lived(done)[-1] == (0, 6, 13, "finished")
    assert part(done, 0, "lost") == 1


def test_saving_a_checkpoint_takes_time():
    # 10 s of work with a checkpoint after each 4 s, half a second each: two of them (none at the end): 11 s.
    case = Case((Node(1),), (job(0, 10, ONE),))
    costs = Checkpoints(interval_seconds=4, save_seconds=0.5)
    done = play(case, "fifo", Changes(checkpoints=costs, faults=Faults()))
    assert lived(done) == [(0, 0, 11, "finished")]
    assert part(done, 0, "overheads") == 1


def test_least_attained_service_in_two_queues():
    # The first queue ends at 4 GPU-seconds. A runs until 4, when B, waiting since 1, takes over; at 8 B is in the second
    # queue too, and there A, submitted first, does not yield nor take over: queues are in order of submission and only a
    # later queue yields. B goes on until C comes at 9 (3 s), which is new. At 12 A goes first of the two: 6 s left, then B.
    case = Case((Node(1),), (job(0, 10, ONE), job(1, 10, ONE), job(9, 3, ONE)))
    assert lived(play(case, "las", first=4, queues=2)) == [
        (0, 0, 4, "preempted"),
        (1, 4, 9, "preempted"),
        (2, 9, 12, "finished"),
        (0, 12, 18, "finished"),
        (1, 18, 23, "finished"),
    ]


def test_service_counts_gpus():
    # With 2 GPUs, A reaches 4 GPU-seconds after 2 s.
    case = Case((Node(2),), (job(0, 10, TWO), job(1, 1, ONE)))
    assert lived(play(case, "las", first=4, queues=2))[0] == (0, 0, 2, "preempted")


def test_who_waits_long_is_promoted():
    # A (6 s) yields to B at 2, having run 2 s. B is in the second queue at 4 too and goes on. A is promoted after it has
    # waited 1.5 times 2 s, at 5, and takes over from B. At 7 it is back in the second queue, where B waits too and does
    # not take over: A ends at 9.
    case = Case((Node(1),), (job(0, 6, ONE), job(1, 9, ONE)))
    done = play(case, "las", first=2, queues=2, promote=1.5)
    assert lived(done)[:3] == [(0, 0, 2, "preempted"), (1, 2, 5, "preempted"), (0, 5, 9, "finished")]


def test_time_slices_in_turn():
    # Slices of 2 s: A 0-2, B 2-4, A 4-6, B 6-7 (3 s in all), A 7-9 (6 s in all): alone, it keeps the GPU.
    case = Case((Node(1),), (job(0, 6, ONE), job(0, 3, ONE)))
    assert lived(play(case, "round-robin", quantum=2)) == [
        (0, 0, 2, "preempted"),
        (1, 2, 4, "preempted"),
        (0, 4, 6, "preempted"),
        (1, 6, 7, "finished"),
        (0, 7, 9, "finished"),
    ]


def test_shapes_that_begin_to_wait_many_times_at_one_instant_are_listed_once(monkeypatch):
    # 16 jobs of two shapes in turn have run for a slice when one more waits: each makes room by stopping one of the other
    # shape, so that both shapes begin and end to wait eight times at that instant. The list has one place per shape.
    make, lists = make_world.make_totals, []

    def guarded(*given):
        totals = make(*given)
        rows, width = totals.lists.shape
        lists.append(np.full((rows + 40, width), -7, np.int32))
        return totals._replace(lists=lists[-1][:rows])

    monkeypatch.setattr(make_world, "make_totals", guarded)
    asks = gpus(1, cpu=1000), gpus(1, cpu=2000)
    case = Case((Node(16),), tuple(job(0, 35, asks[k % 2]) for k in range(17)))
    done = play(case, "round-robin", quantum=10)
    assert sum(end == 10 and why == "preempted" for _, _, end, why in lived(done)) == 16
    assert all((guard[4:] == -7).all() for guard in lists)


PRIORITY = Changes(preemption="priority")


def test_the_lowest_priority_yields_first_and_nobody_in_vain():
    # At 5 C (priority 2) needs one GPU: of A (1) and B (0) the lowest goes. At 6 D (1) finds nobody lower and waits.
    jobs = (
        job(0, 20, ONE, priority=1),
        job(0, 20, ONE, priority=0),
        job(5, 4, ONE, priority=2),
        job(6, 1, ONE, priority=1),
    )
    done = play(Case((Node(2),), jobs), "priority", PRIORITY, aging=0)
    assert lived(done) == [
        (1, 0, 5, "preempted"),
        (2, 5, 9, "finished"),
        (3, 9, 10, "finished"),
        (0, 0, 20, "finished"),
        (1, 10, 25, "finished"),
    ]
    assert done.world.lives.segments["by"][0] == 2


def test_a_gang_takes_the_place_of_as_many_as_it_needs_and_spares_the_rest():
    # Three jobs of priority 0 on one node with 4 GPUs; the gang of two needs one more GPU than is free.
    jobs = (
        job(0, 9, ONE),
        job(0, 9, ONE),
        job(0, 9, ONE),
        job(1, 2, ONE, 2, priority=1),
    )
    done = play(Case((Node(4),), jobs), "priority", PRIORITY, aging=0)
    assert lived(done)[0] == (2, 0, 1, "preempted")
    assert sum(why == "preempted" for *_, why in lived(done)) == 1


def test_a_failed_node_stops_its_jobs_which_go_on_from_the_last_checkpoint():
    # A runs on the only node; it fails at 5 and is back at 8. Checkpoints after 2 s: 4 of 10 s are safe, 6 s remain, and
    # the restart takes 1 s: 8 + 1 + 6 = 15.
    window = Maintenance(0, math.inf, 5, 8)
    changes = Changes(
        faults=Faults(maintenance=(window,)), checkpoints=Checkpoints(interval_seconds=2, restart_seconds=1)
    )
    done = play(Case((Node(1),), (job(0, 10, ONE),)), "fifo", changes)
    assert lived(done) == [(0, 0, 5, "failed"), (0, 8, 15, "finished")]
    assert (part(done, 0, "lost"), part(done, 0, "overheads"), part(done, 0, "waited")) == (1, 1, 3)


@pytest.mark.parametrize(
    ("fails", "safe", "paid"),
    [
        # Each 10 s of work and its save take 12 s: at 12,000 the thousandth save has just ended.
        (12_000, 10_000, 2_000),
        (11_999, 9_990, 1_999),
        (12_005, 10_000, 2_000),
        # 20,000 s of work have 1,999 saves, the last at 23,988; from there 10 s remain.
        (23_995, 19_990, 3_998),
    ],
)
def test_of_thousands_of_checkpoints_the_last_counts(fails, safe, paid):
    window = Maintenance(0, math.inf, fails, fails + 100)
    changes = Changes(
        faults=Faults(maintenance=(window,)), checkpoints=Checkpoints(interval_seconds=10, save_seconds=2)
    )
    done = play(Case((Node(1),), (job(0, 20_000, ONE),)), "fifo", changes)
    left = 20_000 - safe
    end = fails + 100 + left + 2 * (math.ceil(left / 10) - 1)
    assert lived(done) == [(0, 0, fails, "failed"), (0, fails + 100, end, "finished")]
    assert part(done, 0, "lost") == fails - paid - safe
    assert part(done, 0, "overheads") == paid + 2 * (math.ceil(left / 10) - 1)


def test_waiting_for_a_node_that_is_out_is_an_outage():
    changes = Changes(faults=Faults(maintenance=(Maintenance(0, math.inf, 5, 8),)))
    done = play(Case((Node(1),), (job(0, 10, ONE),)), "fifo", changes, "strict")
    assert done.world.causes.share[0].sum() + done.world.lives.earlier[0].sum() == 3
    from gputwin.simulation.engine.attribution.causes import OUTAGE

    assert done.world.causes.share[0, OUTAGE] == 3


def test_a_draining_node_takes_no_jobs_and_lets_its_own_end():
    # The first node drains from 1 on: A, on it since 0, ends at 4; B, submitted at 2, waits for the other node, busy until
    # 6, though the first has a free GPU; at 8 the first node is down, and back at 9.
    window = Maintenance(0, 1, 8, 9)
    jobs = (job(0, 4, ONE), job(0, 4, ONE), job(0, 6, ONE), job(2, 2, ONE), job(7, 1, TWO))
    done = play(Case((Node(2), Node(1)), jobs), "fifo", Changes(faults=Faults(maintenance=(window,))))
    assert lived(done) == [
        (0, 0, 4, "finished"),
        (1, 0, 4, "finished"),
        (2, 0, 6, "finished"),
        (3, 6, 8, "finished"),
        (4, 9, 10, "finished"),
    ]


def test_who_is_left_on_a_draining_node_when_it_goes_down_is_stopped():
    window = Maintenance(0, 1, 3, 5)
    done = play(Case((Node(1),), (job(0, 4, ONE),)), "fifo", Changes(faults=Faults(maintenance=(window,))))
    assert lived(done) == [(0, 0, 3, "drained"), (0, 5, 9, "finished")]


@pytest.mark.parametrize(
    ("nodes", "end"),
    [
        ((Node(2),), 3),  # on one node at full speed
        ((Node(1, rack="r"), Node(1, rack="r")), 6),  # on two nodes of a rack at half speed
        ((Node(1), Node(1)), 6),  # nodes of no stated rack are in one
        ((Node(1, rack="r"), Node(1, rack="s")), 12),  # on two racks at a quarter of it
    ],
)
def test_a_gang_is_slower_the_further_it_is_spread(nodes, end):
    # 3 s of work on two GPUs, then 1 s on one: the second job waits until the first has ended and is not slowed.
    case = Case(nodes, (job(0, 3, ONE, 2), job(1, 1, ONE)))
    done = play(case, "fifo", Changes(speed="spread", speed_parameters={"nodes": 0.5, "racks": 0.25}))
    assert lived(done) == [(0, 0, end, "finished"), (1, end, end + 1, "finished")]
    assert part(done, 0, "slow_spread") == end - 3
    assert part(done, 0, "slow_model") == 0
    assert part(done, 1, "slow_spread") == 0


def test_spread_and_gpu_model_slow_together():
    # Half the speed for the model, half for two nodes: 3 s of work take 12 s.
    case = Case((Node(1, "A"), Node(1, "A")), (job(0, 3, ONE, 2),))
    changes = Changes(speed="spread", speeds={"A": 0.5}, speed_parameters={"nodes": 0.5})
    done = play(case, "fifo", changes)
    assert lived(done) == [(0, 0, 12, "finished")]
    assert part(done, 0, "slow_model") + part(done, 0, "slow_spread") == 9


def test_a_job_runs_at_the_speed_of_its_slowest_gpu():
    # A gang over a node of model A (half speed) and one of model B (full speed): 3 s of work take 6 s.
    case = Case((Node(1, "A"), Node(1, "B")), (job(0, 3, ONE, 2), job(0, 3, ONE)))
    done = play(case, "fifo", Changes(speed="gpu-model", speeds={"A": 0.5, "B": 1.0}))
    assert lived(done) == [(0, 0, 6, "finished"), (1, 6, 12, "finished")]
    assert part(done, 0, "slow_model") == 3


def test_a_faster_gpu_saves_time():
    case = Case((Node(1, "B"),), (job(0, 3, ONE),))
    done = play(case, "fifo", Changes(speed="gpu-model", speeds={"B": 2.0}))
    assert lived(done) == [(0, 0, 1.5, "finished")]
    assert part(done, 0, "slow_model") == -1.5


def test_a_job_is_shrunk_to_let_another_in_and_grows_again():
    # A has 4 instances on 4 GPUs, 8 s of work. At 2 B (one GPU, 3 s) needs room: A goes on with 2 at half speed. At 5 B
    # ends and nobody waits: A grows to 4 again. Done by then: 2 + 1.5; 4.5 s remain: 9.5.
    case = Case((Node(4),), (job(0, 8, ONE, 4), job(2, 3, ONE)))
    done = play(case, "fifo", Changes(elasticity=Elasticity(0.5, 1.0)))
    assert lived(done) == [(0, 0, 2, "resized"), (1, 2, 5, "finished"), (0, 2, 5, "resized"), (0, 5, 9.5, "finished")]
    assert part(done, 0, "slow_size") == 1.5


def test_resizing_takes_time():
    # The same with 0.5 s for each resize, and a speed that grows as the square root of the size.
    case = Case((Node(4),), (job(0, 8, ONE, 4), job(2, 3, ONE)))
    changes = Changes(elasticity=Elasticity(0.5, 0.5), checkpoints=Checkpoints(resize_seconds=0.5))
    done = play(case, "fifo", changes)
    work = 2 + 2.5 * math.sqrt(0.5)
    assert lived(done)[-1][2] == pytest.approx(5 + 0.5 + 8 - work)
    assert part(done, 0, "overheads") == 1


def test_jobs_are_not_shrunk_below_their_least_share():
    case = Case((Node(4),), (job(0, 8, ONE, 4), job(2, 3, gpus(3))))
    done = play(case, "fifo", Changes(elasticity=Elasticity(0.5, 1.0)))
    assert lived(done) == [(0, 0, 8, "finished"), (1, 8, 11, "finished")]


def test_a_job_that_is_stopped_too_often_gives_up():
    windows = tuple(Maintenance(0, math.inf, t, t + 1) for t in (1, 3, 5, 7))
    changes = Changes(faults=Faults(maintenance=windows), checkpoints=Checkpoints(most_stops=3))
    done = play(Case((Node(1),), (job(0, 10, ONE),)), "fifo", changes)
    assert [why for *_, why in lived(done)] == ["failed"] * 3
    assert done.world.queue.jobs["outcome"][0] == 5


@pytest.mark.parametrize(
    ("order", "changes", "backfill", "words"),
    [
        ("srtf", Changes(preemption="priority"), "greedy", "preempts by 'remaining-time'"),
        ("fifo", Changes(preemption="priority"), "greedy", "does not go with order 'fifo'"),
        ("srtf", None, "easy", "use strict or greedy"),
        ("fifo", Changes(faults=Faults()), "conservative", "use strict, greedy or easy"),
    ],
)
def test_rules_that_do_not_go_together_are_refused(order, changes, backfill, words):
    with pytest.raises(UserError, match=words):
        play(Case((Node(1),), (job(0, 1, ONE),)), order, changes, backfill)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Faults(mtbf_seconds=0), "mean time between failures is 0 s"),
        (lambda: Faults(mtbf_seconds=math.nan), "mean time between failures"),
        (lambda: Faults(repair="soon"), "unknown law of repair 'soon'"),
        (lambda: Checkpoints(interval_seconds=-1), "checkpoint interval is -1 s"),
        (lambda: Checkpoints(restart_seconds=math.inf), "restart_seconds is inf"),
        (lambda: Elasticity(0.0), "least share of instances is 0"),
        (lambda: Elasticity(0.5, 2.0), "scaling exponent is 2"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, words):
    with pytest.raises(UserError, match=words):
        make()
