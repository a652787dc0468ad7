"""Pool decisions worked out by hand: growth by expander, shrinking, the cheapest types, consolidation, budgets, chains."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest

from gputwin.autoscaling.decisions.plain import from_plain, to_plain
from gputwin.autoscaling.pools.budgets import Budget, allowed
from gputwin.autoscaling.pools.cluster_autoscaler import ClusterAutoscaler, NodeGroup
from gputwin.autoscaling.pools.interface import Node, NodeType, PoolObservation, Task
from gputwin.autoscaling.pools.karpenter import Karpenter, KarpenterMemory
from gputwin.autoscaling.pools.scoring import eviction_cost

SMALL = NodeType("small", 1.0, {"cpu_milli": 4000, "gpu_milli": 1000})
LARGE = NodeType("large", 3.0, {"cpu_milli": 16000, "gpu_milli": 4000})
CPU = NodeType("cpu", 0.5, {"cpu_milli": 16000})


def task(name: str, gpus: int = 1, cpus: int = 1, **more: object) -> Task:
    return Task(name, {"cpu_milli": 1000 * cpus, "gpu_milli": 1000 * gpus}, **more)  # type: ignore[arg-type]


def groups(**settings: object) -> ClusterAutoscaler:
    both = (NodeGroup("s", SMALL, 0, 10, 1), NodeGroup("l", LARGE, 0, 2, 5))
    return ClusterAutoscaler(both, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expander", "group", "nodes"),
    [
        # Three tasks of one GPU: three small nodes at 3.0 with no GPU free, or one large at 3.0 with a quarter free.
        ("least-waste", "s", 3),  # small: (3/4 + 0) / 2 = 0.375 free; large: (13/16 + 1/4) / 2 = 0.53
        ("least-nodes", "l", 1),
        ("priority", "l", 1),
    ],
)
def test_expanders_choose_a_group(expander: str, group: str, nodes: int) -> None:
    seen = PoolObservation(0.0, (), (task("a"), task("b"), task("c")))
    rule = groups(expander=expander)
    decision, _ = rule.decide(seen, rule.start())
    assert [launch.group for launch in decision.launches] == [group] * nodes
    assert decision.rule == f"cluster-autoscaler:{expander}"
    assert {entry.rule.split(":")[0] for entry in decision.alternatives} >= {"price", "most-pods", "random"}


def test_most_pods_and_price() -> None:
    # A task of four GPUs fits the large type only; four of one GPU fit both.
    waiting = (task("big", 4), *(task(f"t{i}") for i in range(4)))
    seen = PoolObservation(0.0, (), waiting)
    by_pods, by_price = groups(expander="most-pods"), groups(expander="price")
    # Large: 2 nodes for all 5, 6 / 5 = 1.2 a task; small: 4 nodes for 4, 1.0 a task.
    decision, _ = by_pods.decide(seen, by_pods.start())
    assert [launch.type for launch in decision.launches] == ["large", "large"]
    cheap, _ = by_price.decide(seen, by_price.start())
    assert [launch.type for launch in cheap.launches] == ["small"] * 4
    assert cheap.unplaced == ("big",)


def test_room_on_nodes_that_boot_counts_and_limits_hold() -> None:
    rule = groups(expander="least-nodes")
    booting = Node("l-1", "large", (), "l", is_ready=False)
    decision, memory = rule.decide(PoolObservation(0.0, (booting,), (task("a", 4),)), rule.start())
    assert decision.launches == ()
    full = tuple(Node(f"l-{i}", "large", (task(f"r{i}", 4),), "l") for i in (1, 2))
    decision, _ = rule.decide(PoolObservation(0.0, full, (task("b", 4),)), memory)
    assert decision.launches == ()
    assert decision.unplaced == ("b",)


def test_a_gang_grows_a_group_only_if_all_of_it_fits() -> None:
    rule = groups(expander="least-nodes")
    two, three = task("two", 4, instances=2), task("three", 4, instances=3)
    decision, _ = rule.decide(PoolObservation(0.0, (), (two,)), rule.start())
    assert len(decision.launches) == 2
    decision, _ = rule.decide(PoolObservation(0.0, (), (three,)), rule.start())
    assert decision.launches == ()


def test_shrinking_waits_and_needs_a_place_for_the_tasks() -> None:
    rule = groups(unneeded_for_s=600, delay_after_add_s=0)
    used = Node("l-1", "large", (task("a", 1), task("b", 2)), "l")  # 3 of 4 GPUs: needed
    lazy = Node("s-1", "small", (Task("c", {"cpu_milli": 500}),), "s")  # no GPU in use: unneeded, fits on l-1
    pinned = Node("s-2", "small", (Task("d", {"cpu_milli": 500}, is_pinned=True),), "s")
    empty = Node("s-3", "small", (), "s")
    nodes = (used, lazy, pinned, empty)
    memory, removed = rule.start(), []
    for time_s in (0.0, 590.0, 600.0):
        decision, memory = rule.decide(PoolObservation(time_s, nodes), memory)
        removed.append([removal.name for removal in decision.removals])
    assert removed == [[], [], ["s-3"]]
    decision, memory = rule.decide(PoolObservation(610.0, nodes[:3]), memory)
    assert [removal.name for removal in decision.removals] == ["s-1"]
    floor = ClusterAutoscaler((NodeGroup("s", SMALL, minimum=1), NodeGroup("l", LARGE)), unneeded_for_s=0)
    decision, _ = floor.decide(PoolObservation(0.0, (empty,)), floor.start())
    assert decision.removals == ()


def test_growth_delays_shrinking() -> None:
    rule = groups(unneeded_for_s=0, delay_after_add_s=600)
    empty = Node("l-9", "large", (), "l")
    grown, memory = rule.decide(PoolObservation(0.0, (empty,), (task("a", 4), task("b", 4))), rule.start())
    assert grown.launches
    decision, memory = rule.decide(PoolObservation(599.0, (empty,)), memory)
    assert decision.removals == ()
    decision, _ = rule.decide(PoolObservation(600.0, (empty,)), memory)
    assert [removal.name for removal in decision.removals] == ["l-9"]


def karpenter(*types: NodeType, **settings: object) -> Karpenter:
    given = {"validation_s": 0.0, "budgets": (Budget("100%"),), **settings}
    return Karpenter(types or (SMALL, LARGE, CPU), **given)  # type: ignore[arg-type]


def test_each_new_node_is_the_cheapest_type_that_fits_its_tasks() -> None:
    rule = karpenter()
    # Four GPU tasks share a large node at 3.0 (one by one, small nodes would cost 4.0); the CPU task needs no GPU but fits.
    waiting = (*(task(f"t{i}") for i in range(4)), Task("plain", {"cpu_milli": 1000}))
    decision, _ = rule.decide(PoolObservation(0.0, (), waiting), rule.start())
    assert [launch.type for launch in decision.launches] == ["large"]
    alone, _ = rule.decide(PoolObservation(0.0, (), (Task("plain", {"cpu_milli": 1000}),)), rule.start())
    assert [launch.type for launch in alone.launches] == ["cpu"]
    nowhere, _ = rule.decide(PoolObservation(0.0, (), (task("huge", 8),)), rule.start())
    assert (nowhere.launches, nowhere.unplaced) == ((), ("huge",))


def test_pool_limits_stop_growth() -> None:
    rule = karpenter(limits={"gpu_milli": 4000})
    waiting = (task("a", 4), task("b", 4))
    decision, _ = rule.decide(PoolObservation(0.0, (), waiting), rule.start())
    assert len(decision.launches) == 1
    assert decision.unplaced == ("b",)
    gang, _ = rule.decide(PoolObservation(0.0, (), (task("g", 4, instances=2),)), rule.start())
    assert gang.launches == ()


def test_empty_nodes_leave_together_within_the_budget() -> None:
    nodes = tuple(Node(f"n{i}", "small") for i in range(5))
    rule = karpenter(budgets=(Budget("40%"),))
    decision, _ = rule.decide(PoolObservation(100.0, nodes), rule.start())
    assert [removal.name for removal in decision.removals] == ["n0", "n1"]
    leaving = (replace(nodes[0], is_leaving=True), *nodes[1:])
    decision, _ = rule.decide(PoolObservation(100.0, leaving), rule.start())
    assert len(decision.removals) == 1


def test_many_nodes_become_one_and_one_becomes_cheaper() -> None:
    # Two to four small nodes (2.0 to 4.0) with one GPU task each fit on one node of four GPUs (1.5).
    nodes = tuple(Node(f"n{i}", "small", (task(f"t{i}"),)) for i in range(4))
    rule = karpenter(SMALL, replace(LARGE, price_per_hour=1.5))
    decision, memory = rule.decide(PoolObservation(100.0, nodes), rule.start())
    assert decision.rule == "karpenter:multi"
    assert [launch.type for launch in decision.launches] == ["large"]
    assert len(decision.removals) == 4
    assert decision.measures["savings_per_hour"] == pytest.approx(2.5)
    # Three of them (3.0) would not be cheaper on one large node at 3.0: strictly cheaper only.
    rule = karpenter()
    decision, _ = rule.decide(PoolObservation(100.0, nodes[:3]), rule.start())
    assert (decision.launches, decision.removals) == ((), ())
    # A large node with one task becomes a small one; its chain is one replacement long.
    lonely = (Node("big", "large", (task("t"),)),)
    decision, memory = rule.decide(PoolObservation(100.0, lonely), rule.start())
    assert decision.rule == "karpenter:single"
    assert [(launch.type, launch.chain) for launch in decision.launches] == [("small", 1)]
    assert memory.longest_chain == 1
    # The chain goes on where the replacement is itself replaced.
    tiny = NodeType("tiny", 0.2, {"cpu_milli": 1000, "gpu_milli": 1000})
    longer = karpenter(SMALL, LARGE, tiny)
    replaced = (Node("default-1", "small", (task("t"),)),)
    decision, memory = longer.decide(PoolObservation(200.0, replaced), memory)
    assert [(launch.type, launch.chain) for launch in decision.launches] == [("tiny", 2)]
    assert memory.longest_chain == 2


def test_a_node_leaves_where_its_tasks_fit_elsewhere() -> None:
    nodes = (Node("a", "large", (task("t1", 2),)), Node("b", "large", (task("t2", 1),)))
    rule = karpenter(LARGE)
    decision, _ = rule.decide(PoolObservation(0.0, nodes), rule.start())
    # Both cost 3.0 with one task each: the name decides, and only one of them can go.
    assert [removal.name for removal in decision.removals] == ["a"]
    waiting = (task("w", 3),)
    decision, _ = rule.decide(PoolObservation(0.0, nodes, waiting), rule.start())
    assert decision.removals == ()


def test_candidates_have_been_quiet_and_are_not_pinned() -> None:
    rule = karpenter(consolidate_after_s=60.0)
    node = Node("n", "small", (), changed_s=100.0)
    quiet, _ = rule.decide(PoolObservation(160.0, (node,)), rule.start())
    busy, _ = rule.decide(PoolObservation(159.0, (node,)), rule.start())
    assert (len(quiet.removals), len(busy.removals)) == (1, 0)
    pinned = Node("p", "large", (task("t", is_pinned=True),))
    decision, _ = rule.decide(PoolObservation(1000.0, (pinned,)), rule.start())
    assert decision.removals == ()
    never = karpenter(consolidate_after_s=None)
    decision, _ = never.decide(PoolObservation(1000.0, (node,)), never.start())
    assert decision.removals == ()


def test_a_move_is_validated_before_it_is_made() -> None:
    rule = karpenter(validation_s=15.0)
    nodes = (Node("n", "small"),)
    memory, removed = rule.start(), []
    for time_s in (0.0, 10.0, 15.0):
        decision, memory = rule.decide(PoolObservation(time_s, nodes), memory)
        removed.append(len(decision.removals))
    assert removed == [0, 0, 1]
    # A task that arrives in between voids it.
    memory = rule.start()
    _, memory = rule.decide(PoolObservation(0.0, nodes), memory)
    _, memory = rule.decide(PoolObservation(10.0, (Node("n", "small", (task("t"),)),)), memory)
    decision, memory = rule.decide(PoolObservation(16.0, nodes), memory)
    assert decision.removals == ()


def test_spot_to_spot_needs_many_cheaper_types() -> None:
    kinds = [NodeType(f"spot-{i}", 0.1 + i / 100, {"cpu_milli": 4000}, is_spot=True) for i in range(20)]
    node = Node("n", "spot-19", (Task("t", {"cpu_milli": 1000}),))
    seen = PoolObservation(0.0, (node,))
    for allowed_types, gate, moves in ((kinds, False, 0), (kinds, True, 1), (kinds[10:], True, 0)):
        rule = karpenter(*allowed_types, spot_to_spot=gate)
        decision, _ = rule.decide(seen, rule.start())
        assert len(decision.launches) == moves
    on_demand = NodeType("on-demand", 1.0, {"cpu_milli": 4000})
    rule = karpenter(on_demand, kinds[0])
    decision, _ = rule.decide(PoolObservation(0.0, (replace(node, type="on-demand"),)), rule.start())
    assert [launch.type for launch in decision.launches] == ["spot-0"]


def test_balanced_policy_weighs_savings_against_disruption() -> None:
    half = NodeType("half", 0.6, {"cpu_milli": 4000, "gpu_milli": 1000})
    nodes = tuple(Node(f"n{i}", "small", (task(f"t{i}"),)) for i in range(4))
    # In a uniform pool the score of small -> half is 1 − 0.6 = 0.4: below 1/2, above 1/3.
    for k, moves in ((2.0, 0), (3.0, 1)):
        rule = karpenter(SMALL, half, policy="Balanced", threshold=k)
        decision, _ = rule.decide(PoolObservation(0.0, nodes), rule.start())
        assert len(decision.launches) == moves
    eager = karpenter(SMALL, half)
    assert len(eager.decide(PoolObservation(0.0, nodes), eager.start())[0].launches) == 1


def test_eviction_costs() -> None:
    assert eviction_cost(Task("t", {})) == 1.0
    assert eviction_cost(Task("t", {}, deletion_cost=2**27)) == 2.0
    assert eviction_cost(Task("t", {}, priority=-(2**25))) == 0.0
    assert eviction_cost(Task("t", {}, deletion_cost=2**31 - 1)) == 10.0


def test_budgets_by_the_clock() -> None:
    monday_9 = datetime.datetime(2024, 1, 1, 9, 0, tzinfo=datetime.UTC).timestamp()
    work = Budget("0", schedule="0 9 * * 1-5", duration_s=8 * 3600)
    budgets = (Budget("50%"), work)
    hours = {h: allowed(budgets, "Empty", 10, epoch_s=monday_9 + h * 3600) for h in (-1, 0, 7.9, 8, 24, 5 * 24)}
    # Monday to Friday from nine for eight hours nothing leaves; Saturday (five days later) it may.
    assert hours == {-1: 5, 0: 0, 7.9: 0, 8: 5, 24: 0, 5 * 24: 5}
    named = Budget("0", schedule="0 9 ? Jan-Feb mon-FRI,sun", duration_s=8 * 3600)
    days = {d: named.is_active(monday_9 + d * 86400) for d in (0, 4, 5, 6, 7, 63)}
    # Saturday is left out; the sixty-third day is a Monday in March.
    assert days == {0: True, 4: True, 5: False, 6: True, 7: True, 63: False}
    with pytest.raises(ValueError, match="is no cron expression"):
        Budget("1", schedule="0 9 * * moon", duration_s=60)
    with pytest.raises(ValueError, match="is no cron expression"):
        Budget("1", schedule="99 * * * *", duration_s=60)
    with pytest.raises(ValueError, match="come together"):
        Budget("1", schedule="@daily")


def test_memories_come_back_from_plain_values() -> None:
    rule = karpenter(validation_s=15.0)
    _, memory = rule.decide(PoolObservation(0.0, (Node("n", "small"),)), rule.start())
    assert memory.move is not None
    assert from_plain(KarpenterMemory, to_plain(memory)) == memory
    assert from_plain(Karpenter, to_plain(rule)) == rule
    plain = groups()
    assert from_plain(ClusterAutoscaler, to_plain(plain)) == plain
