"""Gangs wait for one node, then for one rack, then go anywhere: schedules worked by hand."""

from __future__ import annotations

import pytest

from gputwin.core.errors import UserError
from gputwin.simulation.engine.attribution.causes import FRAGMENTATION
from gputwin.simulation.locality import Locality
from gputwin.simulation.rules import Changes
from gputwin.simulation.run import Run
from tests.oracles.cases import Case
from tests.oracles.reference import Job, Node
from tests.simulation.by_hand import gpus, job
from tests.simulation.test_change_by_hand import lived, play

ONE, TWO = gpus(1), gpus(2)
NODES = (Node(3, rack="r0"), Node(3, rack="r0"), Node(3, rack="r1"), Node(3, rack="r1"))


def near(
    nodes: tuple[Node, ...], jobs: tuple[Job, ...], node: float, rack: float = 0.0, backfill: str = "greedy"
) -> Run:
    """Return the run; on several nodes jobs do half of their work a second, on several racks a quarter."""
    speed = {"nodes": 0.5, "racks": 0.25}
    changes = Changes(locality=Locality(node, rack), speed="spread", speed_parameters=speed)
    return play(Case(nodes, jobs), "fifo", changes, backfill)


def of_job(done: Run, j: int) -> list[tuple[float, float]]:
    return [(start, end) for number, start, end, _ in lived(done) if number == j]


def filled(*seconds: float) -> tuple[Job, ...]:
    """Return jobs that leave one GPU of each node of three free for so long."""
    return tuple(job(0, s, TWO) for s in seconds)


@pytest.mark.parametrize("backfill", ["greedy", "strict"])
def test_a_gang_waits_for_one_node(backfill: str):
    # Each node has one free GPU. At 20 the second has all three: the gang runs there at full speed.
    jobs = (*filled(100, 20), job(5, 10, ONE, 2))
    assert of_job(near(NODES[:2], jobs, 30, backfill=backfill), 2) == [(20, 30)]
    # Without patience it would have started at once on two nodes, and ended sooner: holding out can lose.
    assert of_job(near(NODES[:2], jobs, 0), 2) == [(5, 25)]


@pytest.mark.parametrize("backfill", ["greedy", "strict"])
def test_who_has_waited_long_enough_goes_to_several_nodes(backfill: str):
    done = near(NODES[:2], (*filled(100, 100), job(5, 10, ONE, 2)), 10, backfill=backfill)
    assert of_job(done, 2) == [(15, 35)]
    causes = done.world.causes.share[2] + done.world.lives.earlier[2]
    assert causes.sum() == 10.0
    assert done.world.lives.records["waited"][2] == 10.0
    if backfill == "greedy":
        assert causes[FRAGMENTATION] == 10.0


def test_after_the_node_a_gang_waits_for_a_rack():
    # One free GPU on each of four nodes in two racks. Two instances fit into a rack, three do not.
    held = filled(100, 100, 100, 100)
    assert of_job(near(NODES, (*held, job(5, 10, ONE, 2)), 10, 20), 4) == [(15, 35)]
    assert of_job(near(NODES, (*held, job(5, 10, ONE, 3)), 10, 20), 4) == [(35, 75)]
    # Four never fit on a node, so they wait for a rack at once: at 20 the last node is free, three go there, one beside it.
    held = filled(100, 100, 100, 20)
    assert of_job(near(NODES, (*held, job(5, 10, ONE, 4)), 10, 20), 4) == [(20, 40)]


def test_a_place_that_cannot_exist_is_not_waited_for():
    # Four GPUs on nodes of three; a rack has six.
    assert of_job(near(NODES, (job(0, 10, ONE, 4),), 50, 50), 0) == [(0, 20)]
    assert of_job(near((Node(3), Node(3)), (job(0, 10, ONE, 4),), 50, 50), 0) == [(0, 20)]


def test_a_gang_that_holds_out_lets_others_pass_or_not_as_backfill_says():
    jobs = (*filled(100, 100), job(5, 10, ONE, 2), job(6, 5, ONE))
    assert of_job(near(NODES[:2], jobs, 10), 3) == [(6, 11)]
    # In strict order the small job waits behind the gang, which is a convoy.
    assert of_job(near(NODES[:2], jobs, 10, backfill="strict"), 3) == [(35, 40)]


def test_what_does_not_go_with_holding_out_is_refused():
    case = Case((Node(2),), (job(0, 1, ONE),))
    with pytest.raises(UserError, match="use strict or greedy"):
        play(case, "fifo", Changes(locality=Locality(10)), "easy")
    with pytest.raises(UserError, match="does not go with preemption"):
        play(case, "srtf", Changes(locality=Locality(10)))
    with pytest.raises(UserError, match="node_seconds is -1"):
        Locality(-1)
