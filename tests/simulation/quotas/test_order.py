"""In which order Kueue would preempt candidates."""

from __future__ import annotations

from gputwin.simulation.quotas.tree import FlavorResource, Quota, QuotaNode, build_tree
from gputwin.simulation.quotas.workloads import Contention, Workload

CPU = FlavorResource("default", "cpu")


def test_candidates_go_by_eviction_queue_usage_priority_time_and_name() -> None:
    tree = build_tree([QuotaNode(q, "all", {CPU: Quota(1)}) for q in ("mine", "other")])

    def workload(name: str, queue: str = "other", **more: object) -> Workload:
        return Workload(name, queue, {CPU: 1.0}, **more)  # type: ignore[arg-type]

    in_order = [
        workload("leaving", "mine", evicted=True, priority=9),
        workload("much used", local_queue="a", local_usage=5.0, priority=3),
        workload("little used", local_queue="b", local_usage=1.0, priority=1),
        workload("lower", priority=4),
        workload("later", priority=5, admitted_at=2.0),
        workload("by name 1", priority=5, admitted_at=1.0),
        workload("by name 2", priority=5, admitted_at=1.0),
        workload("own", "mine", priority=0),
    ]
    state = Contention(tree, in_order, workload("in", "mine"))
    mixed = [in_order[k] for k in (5, 2, 7, 0, 6, 3, 1, 4)]
    assert sorted(mixed, key=state.order) == in_order
