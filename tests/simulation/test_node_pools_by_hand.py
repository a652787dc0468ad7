"""Schedules with nodes of a pool worked by hand: booting, draining, stopping, and what jobs wait for meanwhile."""

from __future__ import annotations

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES
from gputwin.simulation.engine.kernel import Stepper
from gputwin.simulation.engine.state.outages import LOGGED
from gputwin.simulation.engine.state.records import BOOTING, DRAINING, OFF, UP
from gputwin.simulation.interruptions import Checkpoints, Faults, Maintenance, Pool
from gputwin.simulation.node_commands import drain_nodes, start_nodes, stop_nodes
from gputwin.simulation.rules import Changes, Scheduler
from gputwin.simulation.run import Run, run
from gputwin.simulation.segments import capacity_over_time
from tests.oracles.cases import Case
from tests.oracles.reference import Node
from tests.simulation.by_hand import gpus, job
from tests.simulation.test_change_by_hand import lived, part

ONE, TWO = gpus(1), gpus(2)
Commands = list[tuple[float, str, int, float]]


def play(case: Case, changes: Changes, commands: Commands) -> Run:
    workload, cluster, typical = case.engine_input

    def drive(stepper: Stepper) -> None:
        for time, what, node, delay in commands:
            stepper.run_until(time)
            if what == "start":
                start_nodes(stepper, time, {node: delay})
            elif what == "drain":
                drain_nodes(stepper, time, [node])
            else:
                stop_nodes(stepper, time, [node])

    scheduler = Scheduler("fifo", "greedy", "first-fit")
    return run(workload, cluster, scheduler, typical=typical, changes=changes, drive=drive)


def causes(done: Run, j: int) -> dict[str, float]:
    shares = done.world.lives.earlier[j] + done.world.causes.share[j]
    return {name: float(s) for name, s in zip(CAUSE_NAMES, shares, strict=True) if s > 0}


def log(done: Run) -> list[tuple[float, int, int]]:
    return done.world.outages.log[: done.world.outages.count[LOGGED]].tolist()


def test_a_job_waits_for_the_decision_and_then_for_the_boot():
    # The only node is off. A comes at 0, the node is started at 4 and takes 3 s: A runs from 7 to 9.
    case = Case((Node(1),), (job(0, 2, ONE),))
    done = play(case, Changes(pool=Pool((0,))), [(4.0, "start", 0, 3.0)])
    assert lived(done) == [(0, 7, 9, "finished")]
    assert causes(done, 0) == {"gpu_shortage": 4.0, "node_startup": 3.0}
    assert log(done) == [(0.0, 0, OFF), (4.0, 0, BOOTING), (7.0, 0, UP)]


def test_a_booting_node_that_would_not_help_is_not_blamed():
    # A needs two GPUs on one node; the node that boots has one.
    case = Case((Node(2), Node(1)), (job(0, 5, TWO), job(1, 2, TWO)))
    done = play(case, Changes(pool=Pool((1,))), [(1.0, "start", 1, 2.0)])
    assert lived(done) == [(0, 0, 5, "finished"), (1, 5, 7, "finished")]
    assert causes(done, 1) == {"gpu_shortage": 4.0}


def test_what_ends_first_decides_how_long_a_start_is_blamed():
    # B waits from 1; the second node boots from 2 to 12, but A ends at 5.
    case = Case((Node(1), Node(1)), (job(0, 5, ONE), job(1, 2, ONE)))
    done = play(case, Changes(pool=Pool((1,))), [(2.0, "start", 1, 10.0)])
    assert lived(done) == [(0, 0, 5, "finished"), (1, 5, 7, "finished")]
    assert causes(done, 1) == {"gpu_shortage": 1.0, "node_startup": 3.0}


def test_a_drained_node_of_a_pool_is_off_once_its_job_has_ended_and_can_be_started_again():
    case = Case((Node(1),), (job(0, 5, ONE), job(1, 2, ONE)))
    done = play(case, Changes(pool=Pool((0,), (0,))), [(2.0, "drain", 0, 0), (6.0, "start", 0, 1.0)])
    assert lived(done) == [(0, 0, 5, "finished"), (1, 7, 9, "finished")]
    assert log(done) == [(2.0, 0, DRAINING), (5.0, 0, OFF), (6.0, 0, BOOTING), (7.0, 0, UP)]


@pytest.mark.parametrize(("on_drain", "end", "lost"), [(False, 17.0, 5.0), (True, 13.0, 0.0)])
def test_what_a_stop_costs_depends_on_notice(on_drain, end, lost):
    # 10 s of work; notice at 3, gone at 5; started at 6, up at 7. Without a checkpoint all 10 s follow; saved at the
    # notice, 5 s of work and 1 s for the save.
    case = Case((Node(1),), (job(0, 10, ONE),))
    checkpoints = Checkpoints(save_seconds=1.0, on_drain=on_drain)
    commands = [(3.0, "drain", 0, 0), (5.0, "stop", 0, 0), (6.0, "start", 0, 1.0)]
    done = play(case, Changes(checkpoints=checkpoints, pool=Pool((0,), (0,))), commands)
    assert lived(done) == [(0, 0, 5, "drained"), (0, 7, end, "finished")]
    assert part(done, 0, "lost") == lost


def test_a_node_stopped_without_notice_fails_its_jobs():
    case = Case((Node(1), Node(1)), (job(0, 4, ONE),))
    done = play(case, Changes(pool=Pool((0, 1), (0, 1))), [(1.0, "stop", 0, 0)])
    assert lived(done) == [(0, 0, 1, "failed"), (0, 1, 5, "finished")]


def test_a_boot_that_is_called_off_does_not_end_a_later_one():
    # Started at 0 for 5 s, stopped at 1, started at 2 for 6 s: up at 8, not at 5.
    case = Case((Node(1),), (job(0, 1, ONE),))
    commands = [(0.0, "start", 0, 5.0), (1.0, "stop", 0, 0), (2.0, "start", 0, 6.0)]
    done = play(case, Changes(pool=Pool((0,))), commands)
    assert lived(done) == [(0, 8, 9, "finished")]


def test_jobs_that_only_a_pool_can_hold_wait_for_it_and_others_never_fit():
    case = Case((Node(1), Node(2)), (job(0, 1, TWO), job(0, 1, gpus(3))))
    done = play(case, Changes(pool=Pool((1,))), [(3.0, "start", 1, 1.0)])
    assert lived(done) == [(0, 4, 5, "finished")]


def test_a_failed_node_of_a_pool_is_off_and_is_not_repaired():
    case = Case((Node(1), Node(1)), (job(0, 400, ONE), job(0, 400, ONE)))
    changes = Changes(pool=Pool((0, 1), (0, 1)), faults=Faults(mtbf_seconds=50.0, repair_seconds=1.0))
    done = play(case, changes, [])
    assert {state for _, _, state in log(done)} == {OFF}
    assert [why for *_, why in lived(done)].count("failed") == 2


def test_capacity_is_a_series():
    # One node of two GPUs from the start, one from 4 + 2 on: the mean over [0, 12) is ½ for 6 s, then 1.
    case = Case((Node(2), Node(2)), (job(0, 12, TWO), job(0, 6, TWO)))
    done = play(case, Changes(pool=Pool((1,))), [(4.0, "start", 1, 2.0)])
    shares = capacity_over_time(done, done.world.series.clock[0] + done.bin_seconds * np.arange(12))
    assert shares.tolist() == [0.5] * 6 + [1.0] * 6


def test_a_pool_of_nodes_that_do_not_exist_or_have_maintenance_is_refused():
    case = Case((Node(1),), (job(0, 1, ONE),))
    with pytest.raises(UserError, match="the cluster has 1 nodes"):
        play(case, Changes(pool=Pool((1,))), [])
    window = Faults(maintenance=(Maintenance(0, 1.0, 2.0, 3.0),))
    with pytest.raises(UserError, match="cannot have maintenance"):
        play(case, Changes(pool=Pool((0,)), faults=window), [])
