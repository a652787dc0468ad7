"""What must hold for pool rules on any tasks: limits, no task loses its place, and a steady state is reached."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gputwin.autoscaling.pools.budgets import Budget
from gputwin.autoscaling.pools.cluster_autoscaler import EXPANDERS, ClusterAutoscaler, NodeGroup
from gputwin.autoscaling.pools.fitting import accepts, fits, largest_first, room_on, take, total_capacity
from gputwin.autoscaling.pools.interface import Node, NodeType, PoolObservation, Task
from gputwin.autoscaling.pools.karpenter import POLICIES, Karpenter

TYPES = tuple(NodeType(f"n{n}", 0.9 * n + 0.3, {"cpu_milli": 4000 * n, "gpu_milli": 1000 * n}) for n in (1, 2, 4, 8))
BY_NAME = {kind.name: kind for kind in TYPES}
TASKS = st.lists(
    st.builds(
        lambda cpu, gpu, pinned: Task("", {"cpu_milli": cpu, "gpu_milli": gpu}, is_pinned=pinned),
        st.integers(0, 9000),
        st.sampled_from([0, 500, 1000, 2000]),
        st.booleans(),
    ),
    max_size=12,
).map(lambda tasks: tuple(replace(task, name=f"t{i}") for i, task in enumerate(tasks)))


def settle(nodes: list[Node], waiting: list[Task]) -> tuple[list[Node], list[Task]]:
    """Return the nodes after each waiting task, the largest first, went to the first node with room."""
    left = []
    for task in largest_first(waiting, total_capacity(TYPES)):
        for i, node in enumerate(nodes):
            if accepts(task, node.type) and fits(task.needs, room_on(node, BY_NAME[node.type])):
                nodes[i] = replace(node, tasks=(*node.tasks, task))
                break
        else:
            left.append(task)
    return nodes, left


def run(rule: Any, tasks: tuple[Task, ...], most: int = 1000, rounds: int = 60) -> list[tuple[int, int, float, int]]:
    """Return (nodes started, nodes removed, price, tasks waiting) of each round; everything happens at once.

    No group ever has more than `most` nodes.
    """
    nodes: list[Node] = []
    waiting, memory, history = list(tasks), rule.start(), []
    for i in range(rounds):
        decision, memory = rule.decide(PoolObservation(60.0 * i, tuple(nodes), tuple(waiting)), memory)
        gone = {removal.name for removal in decision.removals}
        moved = [task for node in nodes if node.name in gone for task in node.tasks]
        assert not any(task.is_pinned for task in moved)
        nodes = [node for node in nodes if node.name not in gone]
        nodes += [Node(launch.name, launch.type, (), launch.group) for launch in decision.launches]
        assert max(Counter(node.group for node in nodes).values(), default=0) <= most
        nodes, waiting = settle(nodes, [*waiting, *moved])
        assert len({node.name for node in nodes}) == len(nodes)
        price = sum(BY_NAME[node.type].price_per_hour for node in nodes)
        history.append((len(decision.launches), len(gone), price, len(waiting)))
        for node in nodes:
            room = dict(BY_NAME[node.type].capacity)
            for task in node.tasks:
                take(room, task.needs)
            assert min(room.values()) >= 0
    return history


@given(tasks=TASKS, policy=st.sampled_from(POLICIES), budget=st.sampled_from(["1", "50%", "100%"]))
@settings(max_examples=60, deadline=None)
def test_karpenter_places_all_and_settles(tasks: tuple[Task, ...], policy: str, budget: str) -> None:
    rule = Karpenter(TYPES, policy=policy, budgets=(Budget(budget),))
    history = run(rule, tasks)
    assert history[-1][3] == 0
    for (_, _, before, unplaced), (_, _, price, waiting) in itertools.pairwise(history):
        # Once everybody has a place nobody loses it, and the price never rises.
        assert unplaced > 0 or (waiting == 0 and price <= before)
    assert all(started == removed == 0 for started, removed, _, _ in history[-5:])


@given(tasks=TASKS, expander=st.sampled_from(EXPANDERS), most=st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_cluster_autoscaler_stays_within_limits_and_settles(tasks: tuple[Task, ...], expander: str, most: int) -> None:
    groups = tuple(NodeGroup(kind.name, kind, 0, most) for kind in TYPES)
    rule = ClusterAutoscaler(groups, expander, unneeded_for_s=120.0, delay_after_add_s=60.0)
    history = run(rule, tasks, most)
    assert all(started == removed == 0 for started, removed, _, _ in history[-5:])
    if most == 3 and all(task.needs["cpu_milli"] <= 8000 for task in tasks):
        assert history[-1][3] == 0


@given(tasks=TASKS, size=st.integers(0, 6))
@settings(max_examples=40, deadline=None)
def test_decisions_are_pure(tasks: tuple[Task, ...], size: int) -> None:
    nodes = tuple(Node(f"x{i}", TYPES[i % 4].name) for i in range(size))
    seen = PoolObservation(0.0, nodes, tasks)
    for rule in (Karpenter(TYPES), ClusterAutoscaler(tuple(NodeGroup(kind.name, kind) for kind in TYPES))):
        memory = rule.start()
        assert rule.decide(seen, memory) == rule.decide(seen, memory)  # type: ignore[arg-type]
        assert memory == rule.start()
