"""Kueue's queues and cohorts in the engine: schedules worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from gputwin.core.errors import UserError
from gputwin.simulation.interruptions import Checkpoints
from gputwin.simulation.rules import Changes, Scheduler, check_rules
from gputwin.simulation.run import Run, run
from gputwin.simulation.tenants import Fairness
from tests.oracles.cases import Case
from tests.oracles.reference import Job, Node
from tests.simulation.by_hand import gpus, job
from tests.simulation.test_change_by_hand import lived

COSTS = Checkpoints(save_seconds=1.0, restart_seconds=2.0)
RECLAIM = {"reclaimWithinCohort": "Any"}


def queue(
    name: str, nominal: float, cohort: str | None = "all", preemption: dict[str, Any] | None = None, **limits: float
) -> dict[str, Any]:
    """Return a ClusterQueue with a quota of GPUs."""
    resource = {"name": "nvidia.com/gpu", "nominalQuota": nominal, **limits}
    spec: dict[str, Any] = {
        "resourceGroups": [
            {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "default", "resources": [resource]}]}
        ],
        "preemption": preemption or {},
    }
    if cohort:
        spec["cohortName"] = cohort
    return {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}


def cohort(name: str, nominal: float) -> dict[str, Any]:
    found = queue(name, nominal, None)
    return {
        "kind": "Cohort",
        "metadata": found["metadata"],
        "spec": {"resourceGroups": found["spec"]["resourceGroups"]},
    }


def of(tenant: int, *jobs: Job) -> list[Job]:
    return [replace(j, tenant=tenant) for j in jobs]


def played(
    tmp_path: Path,
    objects: list[dict[str, Any]],
    jobs: list[Job],
    rule: str = "kueue-classical",
    order: str = "fifo",
    nodes: tuple[Node, ...] = (Node(4),),
    default: str | None = None,
    **parameters: float,
) -> Run:
    file = tmp_path / "queues.yaml"
    file.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    case = Case(nodes, tuple(sorted(jobs, key=lambda j: j.submit)))
    workload, cluster, typical = case.engine_input
    scheduler = Scheduler(order, "greedy", fairness=Fairness(rule, parameters, {}, str(file), default))
    return run(workload, cluster, scheduler, typical=typical, changes=Changes(checkpoints=COSTS))


def starts(done: Run) -> list[float]:
    return np.asarray(done.world.queue.jobs["start"]).tolist()


def ends(done: Run) -> list[float]:
    return np.asarray(done.world.queue.jobs["end"]).tolist()


def test_a_queue_reclaims_its_nominal_quota_from_who_borrows(tmp_path: Path) -> None:
    """Two GPUs each. Queue 0 borrows two; at 4 queue 1 takes them back, from the first by name of those equally old.

    They have 6 s left and pay 3 s when GPUs are free again at 9.
    """
    queues = [queue("tenant-0", 2, preemption=RECLAIM), queue("tenant-1", 2, preemption=RECLAIM)]
    done = played(tmp_path, queues, of(0, *[job(0, 10, gpus(1))] * 4) + of(1, *[job(4, 5, gpus(1))] * 2))
    assert ends(done) == [18, 18, 10, 10, 9, 9]
    assert lived(done)[:2] == [(0, 0, 4, "preempted"), (1, 0, 4, "preempted")]
    assert done.world.lives.segments["by"][:2].tolist() == [4, 5]


def test_without_a_policy_nobody_is_preempted(tmp_path: Path) -> None:
    queues = [queue("tenant-0", 2), queue("tenant-1", 2)]
    done = played(tmp_path, queues, of(0, *[job(0, 10, gpus(1))] * 4) + of(1, *[job(4, 5, gpus(1))] * 2))
    assert starts(done) == [0, 0, 0, 0, 10, 10]
    # What keeps it waiting is the quota: all that the cohort has is used.
    assert done.world.causes.share[4].tolist()[1] == 6.0


def test_borrowing_and_lending_limits_hold(tmp_path: Path) -> None:
    """Queue 0 may borrow one of the two that queue 1 leaves unused; or queue 1 lends one only."""
    jobs = of(0, *[job(0, 10, gpus(1))] * 4) + of(1, job(20, 1, gpus(1)))
    limited = [queue("tenant-0", 2, borrowingLimit=1), queue("tenant-1", 2)]
    assert starts(played(tmp_path, limited, jobs)) == [0, 0, 0, 10, 20]
    lending = [queue("tenant-0", 2), queue("tenant-1", 2, lendingLimit=1)]
    assert starts(played(tmp_path, lending, jobs)) == [0, 0, 0, 10, 20]
    neither = [queue("tenant-0", 2), queue("tenant-1", 2)]
    assert starts(played(tmp_path, neither, jobs)) == [0, 0, 0, 0, 20]


def test_within_a_queue_lower_priorities_yield(tmp_path: Path) -> None:
    queues = [queue("tenant-0", 2, None, {"withinClusterQueue": "LowerPriority"}), queue("tenant-1", 2, None)]
    jobs = of(0, job(0, 10, gpus(1), priority=1), job(0, 10, gpus(1)), job(3, 4, gpus(1), priority=2))
    jobs += of(1, job(0, 1, gpus(1)))
    done = played(tmp_path, queues, jobs, order="priority")
    assert [row for row in lived(done) if row[3] == "preempted"] == [(1, 0, 3, "preempted")]
    assert starts(done) == [0, 7, 0, 3]


def test_who_does_not_borrow_goes_first(tmp_path: Path) -> None:
    """Queue 0's second job came first but would borrow; queue 1's is within its own quota."""
    queues = [queue("tenant-0", 2), queue("tenant-1", 2)]
    jobs = of(0, job(0, 20, gpus(2)), job(0, 5, gpus(2)), job(1, 5, gpus(2))) + of(1, job(2, 5, gpus(2)))
    assert starts(played(tmp_path, queues, jobs)) == [0, 0, 10, 5]


def test_a_job_that_exceeds_all_its_queue_could_have_never_fits(tmp_path: Path) -> None:
    queues = [queue("tenant-0", 2, borrowingLimit=1), queue("tenant-1", 2)]
    done = played(tmp_path, queues, of(0, job(0, 10, gpus(4))) + of(1, job(0, 10, gpus(4))))
    assert done.world.queue.jobs["outcome"].tolist() == [3, 2]


def test_nobody_is_preempted_for_a_job_that_finds_no_room(tmp_path: Path) -> None:
    """Two nodes of two. By quota the two jobs of lower priority would go, one on each node: no room for two together."""
    queues = [queue("tenant-0", 2, preemption=RECLAIM), queue("tenant-1", 2, preemption=RECLAIM)]
    jobs = of(0, *[job(0, 10, gpus(1), priority=p) for p in (0, 1, 0, 1)]) + of(1, job(1, 5, gpus(2), priority=1))
    done = played(tmp_path, queues, jobs, nodes=(Node(2), Node(2)))
    assert done.world.lives.records["stops"].sum() == 0
    assert starts(done)[4] == 10
    gang = of(0, *[job(0, 10, gpus(1), priority=p) for p in (0, 1, 0, 1)]) + of(1, job(1, 5, gpus(1), 2, priority=1))
    done = played(tmp_path, queues, gang, nodes=(Node(2), Node(2)))
    assert [row[0] for row in lived(done) if row[3] == "preempted"] == [0, 2]


def test_fair_sharing_evens_out_what_is_borrowed(tmp_path: Path) -> None:
    """All four GPUs belong to the cohort. Queue 0 borrows all; queue 1 preempts up to half, not more.

    Shares per mille: 250 ≤ 750 and 500 ≤ 500 are final shares that allow it; 750 against 250 is not.
    """
    any_lower = {"reclaimWithinCohort": "Any"}
    objects = [cohort("all", 4), queue("tenant-0", 0, preemption=any_lower), queue("tenant-1", 0, preemption=any_lower)]
    jobs = of(0, *[job(0, 10, gpus(1))] * 4) + of(1, *[job(4, 5, gpus(1))] * 3)
    done = played(tmp_path, objects, jobs, rule="kueue-fair")
    assert [row[:3] for row in lived(done) if row[3] == "preempted"] == [(0, 0, 4), (1, 0, 4)]
    assert starts(done)[4:6] == [4, 4]
    # At 9 the shares are 500 and 0: of those that wait, the third of queue 1 comes first, then the others in turn.
    assert starts(done)[6] == 9


def test_fair_sharing_serves_the_lowest_share_first(tmp_path: Path) -> None:
    objects = [cohort("all", 4), queue("tenant-0", 0), queue("tenant-1", 0)]
    jobs = of(0, *[job(0, 10, gpus(1))] * 4) + of(1, *[job(0, 10, gpus(1))] * 4)
    assert starts(played(tmp_path, objects, jobs, rule="kueue-fair")) == [0, 0, 10, 10] * 2
    assert starts(played(tmp_path, objects, jobs)) == [0, 0, 0, 0, 10, 10, 10, 10]


def test_tenants_find_their_queues_or_it_is_said_which_does_not(tmp_path: Path) -> None:
    local = {"kind": "LocalQueue", "metadata": {"name": "jobs", "namespace": "tenant-0"}, "spec": {"clusterQueue": "a"}}
    jobs = of(0, *[job(0, 10, gpus(1))] * 2) + of(1, job(0, 10, gpus(1)))
    assert starts(played(tmp_path, [queue("a", 1), queue("tenant-1", 1, None), local], jobs)) == [0, 10, 0]
    with pytest.raises(UserError, match=r"fairness\.queues: tenant 'tenant-1' has no LocalQueue or ClusterQueue"):
        played(tmp_path, [queue("a", 1), local], jobs)
    assert starts(played(tmp_path, [queue("a", 1), local], jobs, default="a")) == [0, 10, 20]
    with pytest.raises(UserError, match=r"fairness\.default_queue: no ClusterQueue 'b'"):
        played(tmp_path, [queue("a", 1), local], jobs, default="b")
    with pytest.raises(UserError, match="leads to ClusterQueue 'a', which is not there"):
        played(tmp_path, [queue("tenant-1", 1), local], jobs)


@pytest.mark.parametrize(
    ("backfill", "fairness", "said"),
    [
        ("greedy", Fairness("kueue-fair"), "give a YAML file"),
        ("strict", Fairness("kueue-fair", queues="q.yaml"), "backfill 'greedy' only"),
        ("greedy", Fairness("drf", queues="q.yaml"), "knows no queues"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(backfill: str, fairness: Fairness, said: str) -> None:
    with pytest.raises(UserError, match=said):
        check_rules(Scheduler(backfill=backfill, fairness=fairness), Changes())
