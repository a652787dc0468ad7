"""Who must yield: kube-scheduler's choice of node, benefit against cost, and a grace period, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.simulation.interruptions import Checkpoints
from gputwin.simulation.rules import Changes, Scheduler, check_rules
from gputwin.simulation.run import Run, run
from tests.oracles.cases import Case
from tests.oracles.reference import Job, Node
from tests.simulation.by_hand import gpus, job
from tests.simulation.test_change_by_hand import lived


def played(
    nodes: tuple[Node, ...], jobs: list[Job], rule: str, checkpoints: Checkpoints | None = None, **parameters: float
) -> Run:
    workload, cluster, typical = Case(nodes, tuple(jobs)).engine_input
    changes = Changes(
        preemption=rule, preemption_parameters=parameters, checkpoints=checkpoints or Checkpoints(grace_seconds=0.0)
    )
    return run(
        workload,
        cluster,
        Scheduler("priority", "greedy", order_parameters={"aging": 0.0}),
        typical=typical,
        changes=changes,
    )


def preempted(done: Run) -> list[int]:
    return [row[0] for row in lived(done) if row[3] == "preempted"]


def starts(done: Run) -> list[float]:
    return np.asarray(done.world.queue.jobs["start"]).tolist()


def test_kube_scheduler_clears_the_node_whose_pods_matter_least() -> None:
    """Node 0 holds one job of priority 2, node 1 two of priority 1: the highest priority of who goes is lower there."""
    jobs = [job(0, 10, gpus(2), priority=2)] + [job(0, 10, gpus(1), priority=1)] * 2 + [job(1, 5, gpus(2), priority=3)]
    assert preempted(played((Node(2), Node(2)), jobs, "kube-scheduler")) == [1, 2]


def test_kube_scheduler_takes_the_fewest_of_equal_priority_and_those_that_started_last() -> None:
    jobs = [job(0, 10, gpus(1), priority=1)] * 2 + [job(0, 10, gpus(2), priority=1), job(1, 5, gpus(2), priority=3)]
    # The sum of priorities is lower where fewer go.
    assert preempted(played((Node(2), Node(2)), jobs, "kube-scheduler")) == [2]
    jobs = [job(0, 10, gpus(2), priority=1), job(1, 10, gpus(2), priority=1), job(2, 5, gpus(2), priority=3)]
    assert preempted(played((Node(2), Node(2)), jobs, "kube-scheduler")) == [1]


def test_kube_scheduler_spares_the_most_important_first() -> None:
    """One of three must go: of the lowest priority the one that started last."""
    jobs = [job(0, 10, gpus(1), priority=0), job(1, 10, gpus(1), priority=0), job(1, 10, gpus(1), priority=1)]
    done = played((Node(3),), [*jobs, job(2, 5, gpus(1), priority=2)], "kube-scheduler")
    assert preempted(done) == [1]
    assert starts(done)[3] == 2


def test_kube_scheduler_clears_nodes_for_a_gang_one_instance_at_a_time() -> None:
    """Three nodes of one GPU: the gang of two takes those of priority 0, then 1; the job of priority 2 stays."""
    jobs = [job(0, 10, gpus(1), priority=p) for p in (2, 1, 0)] + [job(1, 5, gpus(1), 2, priority=3)]
    done = played((Node(1), Node(1), Node(1)), jobs, "kube-scheduler")
    assert preempted(done) == [2, 1]
    assert starts(done)[3] == 1


def test_kube_scheduler_stops_nobody_in_vain() -> None:
    """The gang of three finds only two nodes with pods of lower priority."""
    jobs = [job(0, 10, gpus(1), priority=p) for p in (3, 1, 0)] + [job(1, 5, gpus(1), 3, priority=3)]
    assert preempted(played((Node(1), Node(1), Node(1)), jobs, "kube-scheduler")) == []


def test_preemption_happens_only_where_its_benefit_exceeds_its_cost() -> None:
    """One GPU. At 4 the victim has 6 s left: (3 - 1) × 6 = 12 s against 5 + 4 s; with worth 0.5 it is 6 s, too little."""
    costs = Checkpoints(save_seconds=5.0, restart_seconds=4.0)
    jobs = [job(0, 10, gpus(1), priority=1), job(4, 3, gpus(1), priority=3)]
    assert starts(played((Node(1),), jobs, "benefit", costs)) == [7, 4]
    assert starts(played((Node(1),), jobs, "benefit", costs, worth=0.5)) == [0, 10]
    # One second later: (3 - 1) × 5 = 10 is still more than 9; at 5.5 it is 9, which is not.
    assert starts(played((Node(1),), [jobs[0], job(5, 3, gpus(1), priority=3)], "benefit", costs))[1] == 5
    assert starts(played((Node(1),), [jobs[0], job(5.5, 3, gpus(1), priority=3)], "benefit", costs))[1] == 10


def test_work_that_would_be_lost_counts_as_a_cost() -> None:
    """Without a save the 4 s done are lost: 4 + 4 s against 2 × 6 s at 4; at 5.5 it is 5.5 + 4 s against 2 × 4.5 s."""
    costs = Checkpoints(on_preemption=False, interval_seconds=100.0, restart_seconds=4.0)
    first = job(0, 10, gpus(1), priority=1)
    done = played((Node(1),), [first, job(4, 3, gpus(1), priority=3)], "benefit", costs)
    assert starts(done)[1] == 4
    assert done.world.lives.records["lost"].tolist() == [4, 0]
    assert starts(played((Node(1),), [first, job(5.5, 3, gpus(1), priority=3)], "benefit", costs))[1] == 10


def test_who_has_not_waited_long_enough_displaces_nobody_yet() -> None:
    jobs = [job(0, 10, gpus(1), priority=0), job(1, 3, gpus(1), priority=9)]
    assert starts(played((Node(1),), jobs, "benefit", min_wait=4.0))[1] == 5
    assert starts(played((Node(1),), jobs, "benefit", min_wait=20.0))[1] == 10


def test_a_job_that_cannot_save_within_the_limit_is_not_displaced() -> None:
    jobs = [job(0, 10, gpus(1), priority=0), job(1, 3, gpus(1), priority=9)]
    costs = Checkpoints(save_seconds=6.0)
    assert starts(played((Node(1),), jobs, "benefit", costs, limit=5.0))[1] == 10
    assert starts(played((Node(1),), jobs, "benefit", costs, limit=6.0))[1] == 1


@pytest.mark.parametrize("rule", ["priority", "kube-scheduler"])
def test_in_the_grace_period_a_job_saves_and_leaves(rule: str) -> None:
    """It saves for 2 s, which the other waits for as overhead: 1 + 2 + 3 = 6; it goes on at 6 and pays the restart only."""
    jobs = [job(0, 10, gpus(1), priority=0), job(1, 3, gpus(1), priority=1)]
    done = played((Node(1),), jobs, rule, Checkpoints(save_seconds=2.0, restart_seconds=1.0, grace_seconds=30.0))
    assert done.world.queue.jobs["end"].tolist() == [16, 6]
    assert done.world.lives.records["overheads"].tolist() == [1, 2]
    assert done.world.lives.records["lost"].tolist() == [0, 0]


def test_who_does_not_save_in_time_is_killed() -> None:
    """A save takes 5 s, the grace period is 3: the 4 s done are lost. The other ends at 4 + 3 + 3; then 10 s of work."""
    jobs = [job(0, 10, gpus(1), priority=0), job(4, 3, gpus(1), priority=1)]
    done = played((Node(1),), jobs, "priority", Checkpoints(save_seconds=5.0, restart_seconds=1.0, grace_seconds=3.0))
    assert done.world.lives.records["lost"].tolist() == [4, 0]
    assert done.world.queue.jobs["end"].tolist() == [21, 10]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (Changes(preemption="benefit", preemption_parameters={"wait": 1.0}), "no parameter 'wait'"),
        (Changes(preemption="benefit", preemption_parameters={"min_wait": -1.0}), "give 0 or more"),
        (Changes(preemption="kube-scheduler", preemption_parameters={"grace": 1.0}), "no parameter 'grace'"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(changes: Changes, said: str) -> None:
    with pytest.raises(UserError, match=said):
        check_rules(Scheduler("priority", "greedy", order_parameters={"aging": 0.0}), changes)


def test_slices_that_are_over_before_work_goes_on_are_refused() -> None:
    """A save of 30 s and a restart of 60 s: in slices of 90 s nobody would ever do any work; a warned job saves before."""
    costs = {"save_seconds": 30.0, "restart_seconds": 60.0}

    def check(quantum: float, **more: float) -> None:
        rules = Scheduler("round-robin", "greedy", order_parameters={"quantum": quantum})
        check_rules(rules, Changes(checkpoints=Checkpoints(**costs, **more)))

    with pytest.raises(UserError, match="a slice of 90 s is over before a stopped job goes on with its work"):
        check(90.0)
    check(91.0)
    check(61.0, grace_seconds=30.0)
