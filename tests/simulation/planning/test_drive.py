"""A planner in the engine: schedules worked by hand, and the same ends as the published rounds where both apply."""

from __future__ import annotations

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.simulation.engine.attribution.causes import QUOTA
from gputwin.simulation.interruptions import Checkpoints, Faults, Maintenance
from gputwin.simulation.planning.drive import Planning
from gputwin.simulation.planning.mechanism import RoundSettings
from gputwin.simulation.planning.rounds import RoundJobs, simulate_rounds
from gputwin.simulation.planning.snapshot import PLANNERS
from gputwin.simulation.rules import Changes, Scheduler
from gputwin.simulation.run import run
from gputwin.simulation.tenants import Fairness
from tests.oracles.cases import Case
from tests.oracles.reference import Node
from tests.simulation.by_hand import gang, gpus, job
from tests.simulation.test_change_by_hand import lived, play

ONE, TWO, CPU = gpus(1), gpus(2), gpus(0)


def plan(case: Case, planner: str, round_seconds: float = 5.0, **more: object):
    return play(case, "fifo", Changes(planning=Planning(planner, round_seconds), **more))


def test_max_min_fairness_takes_turns():
    # One GPU, three jobs of 10 s: each has a third of the time, so rounds of 5 s go to them in turn.
    case = Case((Node(1),), (job(0, 10, ONE), job(0, 10, ONE), job(3, 10, ONE)))
    assert lived(plan(case, "max-min")) == [
        (0, 0, 5, "preempted"),
        (1, 5, 10, "preempted"),
        (2, 10, 15, "preempted"),
        (0, 15, 20, "finished"),
        (1, 20, 25, "finished"),
        (2, 25, 30, "finished"),
    ]


def test_who_is_picked_again_keeps_its_place_and_pays_nothing():
    case = Case((Node(2),), (job(0, 12, ONE), job(0, 12, ONE)))
    done = plan(case, "max-min", checkpoints=Checkpoints(save_seconds=1, restart_seconds=2))
    assert lived(done) == [(0, 0, 12, "finished"), (1, 0, 12, "finished")]


def test_a_stopped_job_pays_for_its_checkpoint_and_restart():
    # A runs 0 to 5, B 5 to 10, A again from 10: 1 s to save and 1 s to restart, so 3 s of work until 15, and so on.
    case = Case((Node(1),), (job(0, 8, ONE), job(0, 5, ONE)))
    done = plan(case, "max-min", checkpoints=Checkpoints(save_seconds=1, restart_seconds=1))
    assert lived(done) == [(0, 0, 5, "preempted"), (1, 5, 10, "finished"), (0, 10, 15, "finished")]


def test_gpus_left_within_a_round_are_idle_until_the_next():
    case = Case((Node(1),), (job(0, 2, ONE), job(0, 2, ONE)))
    assert lived(plan(case, "fifo-in-place")) == [(0, 0, 2, "finished"), (1, 5, 7, "finished")]


def test_the_faster_model_goes_to_whom_the_plan_gives_it():
    # Type-aware shortest job first: the short job has the fast GPU, the long one the slow GPU until the fast one is free.
    case = Case((Node(1, "slow"), Node(1, "fast")), (job(0, 40, ONE), job(0, 8, ONE)))
    done = plan(case, "sjf-speed", speed="gpu-model", speeds={"slow": 0.5, "fast": 2.0})
    assert lived(done)[0] == (1, 0, 4, "finished")
    assert [(s[0], s[3]) for s in lived(done)[1:]] == [(0, "preempted"), (0, "finished")]
    # 5 s at half speed, then 37.5 s of work at double speed.
    assert lived(done)[-1][2] == pytest.approx(5 + 37.5 / 2)


def test_jobs_without_gpus_start_whatever_the_plan():
    case = Case((Node(1, cpu=4),), (job(0, 10, ONE), job(0, 3, gpus(0, cpu=2)), job(1, 3, gpus(0, cpu=4))))
    assert sorted(lived(plan(case, "fifo-in-place"))) == [
        (0, 0, 10, "finished"),
        (1, 0, 3, "finished"),
        (2, 5, 8, "finished"),
    ]


def test_a_gang_of_two_roles_is_placed_on_one_model():
    workers = gang(0, 5, (gpus(0, cpu=1), 1), (gpus(1, cpu=1), 2))
    case = Case((Node(2, "a", cpu=8), Node(2, "b", cpu=8)), (workers, workers))
    assert sorted(lived(plan(case, "max-min"))) == [(0, 0, 5, "finished"), (1, 0, 5, "finished")]


def test_a_node_that_is_out_is_not_planned_with():
    # Two nodes of one GPU; the second is out from 3 on. B is stopped there and takes turns with A.
    case = Case((Node(1), Node(1)), (job(0, 10, ONE), job(0, 10, ONE)))
    done = plan(case, "max-min", faults=Faults(maintenance=(Maintenance(1, np.inf, 3.0, np.inf),)))
    held = [(start, end) for _, start, end, _ in lived(done) if end > 3]
    assert all(a[1] <= b[0] for a, b in zip(sorted(held), sorted(held)[1:], strict=False))
    assert (1, 0, 3, "failed") in lived(done)


def test_waits_are_charged_to_the_plan():
    case = Case((Node(1),), (job(0, 10, ONE), job(0, 10, ONE)))
    world = plan(case, "max-min").world
    waited = world.causes.share.sum(axis=0) + world.lives.earlier.sum(axis=0)
    assert waited[QUOTA] == waited.sum() == 15.0


def test_what_does_not_go_with_a_planner_is_refused():
    case = Case((Node(1),), (job(0, 10, ONE),))
    with pytest.raises(UserError, match="unknown planner 'best'"):
        plan(case, "best")
    with pytest.raises(UserError, match="share a GPU"):
        plan(case, "max-min-sharing")
    workload, cluster, typical = case.engine_input
    fair = Scheduler("fifo", "greedy", "first-fit", fairness=Fairness("drf"))
    with pytest.raises(UserError, match="does not go with a planner"):
        run(workload, cluster, fair, typical=typical, changes=Changes(planning=Planning("max-min")))
    with pytest.raises(UserError, match="leave out preemption"):
        play(case, "srtf", Changes(planning=Planning("max-min")))


@pytest.mark.parametrize("planner", ["max-min", "max-min-speed", "fifo-in-place", "finish-time", "makespan", "allox"])
def test_ends_are_those_of_the_published_rounds(planner: str):
    """Where every job takes whole rounds and one node has all GPUs, both ways to simulate rounds are the same."""
    rng = np.random.default_rng(sum(planner.encode()))
    for _ in range(6):
        count, length = int(rng.integers(3, 12)), 8.0
        submit = np.sort(rng.integers(0, 100, count)).astype(np.float64)
        rounds, size = rng.integers(1, 6, count), rng.integers(1, 4, count)
        case = Case(
            (Node(4),), tuple(job(t, length * k, gpus(int(n))) for t, k, n in zip(submit, rounds, size, strict=True))
        )
        done = plan(case, planner, length)
        published = simulate_rounds(
            RoundJobs(submit, length * rounds, size.astype(float), np.ones((count, 1)), np.ones(count)),
            ("",),
            np.array([4.0]),
            PLANNERS.get(planner),
            RoundSettings(length, 0.0),
        )
        assert done.world.queue.jobs["end"].tolist() == published.end.tolist()
