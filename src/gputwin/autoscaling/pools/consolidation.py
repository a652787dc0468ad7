"""Karpenter's consolidation: empty nodes together, then many nodes into fewer, then one node into none or a cheaper one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gputwin.autoscaling.pools.columns import Ints
from gputwin.autoscaling.pools.fitting import accepts, fits, largest_first, place, total_capacity
from gputwin.autoscaling.pools.interface import Node, NodeType, PoolObservation, Rooms, Task
from gputwin.autoscaling.pools.scoring import disruption_cost, savings_ratio, score_move

if TYPE_CHECKING:
    from gputwin.autoscaling.pools.karpenter import Karpenter

Tried = tuple[str, int, str]
"""(kind of consolidation, nodes it would change, why or why not)."""


@dataclass(frozen=True, slots=True)
class Move:
    """Nodes to remove and the type of the one node that replaces them, if any."""

    kind: str
    nodes: tuple[str, ...]
    replacement: str = ""
    savings: float = 0.0
    score: float | None = None
    reason: str = ""


def consolidate(
    pool: Karpenter, observation: PoolObservation, places: tuple[Ints, Ints], room: Mapping[str, int]
) -> tuple[Move | None, list[Tried]]:
    """Return the first move that is possible and allowed, and what each kind of consolidation came to.

    `places` of nodes in the observation: those that stay, and of these the ready ones without pinned tasks.
    """
    nodes, waiting, now_s = observation.nodes, observation.waiting, observation.time_s
    candidates = sorted(
        (node for node in (nodes[i] for i in places[1].tolist()) if _is_quiet(pool, node, now_s)),
        key=lambda node: (-savings_ratio(pool.by_name[node.type].price_per_hour, node.tasks), node.name),
    )
    tried: list[Tried] = []
    empty = [node for node in candidates if not node.tasks]
    chosen = empty[: room["Empty"]]
    if chosen:
        saved = sum(pool.by_name[node.type].price_per_hour for node in chosen)
        reason = f"{len(chosen)} empty nodes, {saved:g} an hour saved"
        tried.append(("empty", -len(chosen), reason))
        return Move("empty", tuple(node.name for node in chosen), "", saved, None, reason), tried
    tried.append(("empty", 0, "no empty node" if not empty else "the budget allows no empty node to leave"))
    if pool.policy == "WhenEmpty":
        return None, tried
    used = [node for node in candidates if node.tasks]
    if used and room["Underutilized"] < 1:
        tried.append(("single", 0, "the budget allows no node to leave"))
        return None, tried
    stays = [nodes[i] for i in places[0].tolist()]
    rooms = pool.axes.rooms_on(stays)
    move = _multi(pool, used[: min(pool.most_candidates, room["Underutilized"])], stays, rooms, waiting)
    if move is not None:
        tried.append(("multi", -len(move.nodes), move.reason))
        return move, tried
    tried.append(("multi", 0, "no two nodes can leave together for less"))
    for node in used:
        move = try_move(pool, [node], stays, rooms, waiting, "single")
        if move is not None:
            tried.append(("single", -1, move.reason))
            return move, tried
    tried.append(("single", 0, "no node can leave for less" if used else "no candidate"))
    return None, tried


def _is_quiet(pool: Karpenter, node: Node, now_s: float) -> bool:
    return pool.consolidate_after_s is not None and now_s - node.changed_s >= pool.consolidate_after_s


def _multi(
    pool: Karpenter, used: Sequence[Node], stays: Sequence[Node], rooms: Rooms, waiting: Sequence[Task]
) -> Move | None:
    """Return the move of the longest prefix of candidates that works, found by bisection; at least two nodes.

    As in Karpenter, bisection misses a long prefix that works where a shorter one does not.
    """
    low, high, best = 2, len(used), None
    while low <= high:
        middle = (low + high) // 2
        move = try_move(pool, used[:middle], stays, rooms, waiting, "multi")
        if move is None:
            high = middle - 1
        else:
            best, low = move, middle + 1
    return best


def try_move(
    pool: Karpenter,
    nodes: Sequence[Node],
    stays: Sequence[Node],
    everywhere: Rooms,
    waiting: Sequence[Task],
    kind: str,
) -> Move | None:
    """Return the move that removes `nodes`, with at most one cheaper node in their place; None where that fails.

    `everywhere`: what is free on the nodes of `stays`.
    """
    gone = {node.name for node in nodes}
    axes = pool.axes
    rooms = everywhere.of(np.array([node.name not in gone for node in stays], np.bool_))
    tasks = largest_first(itertools.chain.from_iterable(node.tasks for node in nodes), total_capacity(pool.types))
    # Tasks that wait for room come first, and none of them may lose its place.
    if waiting and len(place(waiting, rooms, axes)[0]) < len(place(waiting, everywhere.of(slice(None)), axes)[0]):
        return None
    _, left = place(tasks, rooms, axes)
    price = sum(pool.by_name[node.type].price_per_hour for node in nodes)
    replacement = None
    if left:
        replacement = _replacement(pool, nodes, left, price)
        if replacement is None:
            return None
    savings = price - (replacement.price_per_hour if replacement else 0.0)
    if savings <= 0:
        return None
    score = None
    if pool.policy == "Balanced":
        cost = sum(pool.by_name[node.type].price_per_hour for node in stays)
        disruption = sum(disruption_cost(node.tasks) for node in stays)
        moved = sum(disruption_cost(node.tasks) for node in nodes)
        verdict = score_move(savings, moved, cost, disruption, pool.threshold)
        if not verdict.approved:
            return None
        score = verdict.score
    into = f"into one {replacement.name}" if replacement else "onto other nodes"
    worth = f", score {score:.2f}" if score is not None else ""
    reason = f"{len(nodes)} nodes {into}, {savings:g} an hour saved{worth}"
    names = tuple(node.name for node in nodes)
    return Move(kind, names, replacement.name if replacement else "", savings, score, reason)


def _replacement(pool: Karpenter, nodes: Sequence[Node], left: Sequence[Task], price: float) -> NodeType | None:
    """Return the cheapest type that takes all of `left` on one node, strictly cheaper than `price`."""
    needs: dict[str, int] = {}
    for task in left:
        for name, amount in task.needs.items():
            needs[name] = needs.get(name, 0) + amount * task.instances
    able = [
        kind
        for kind in pool.types
        if kind.price_per_hour < price
        and kind.name not in pool.unavailable
        and fits(needs, kind.capacity)
        and all(accepts(task, kind.name) for task in left)
    ]
    if len(nodes) > 1:
        # A replacement of the same type as a node that leaves would only restart it: that node could stay instead.
        same = [kind.price_per_hour for kind in able if any(node.type == kind.name for node in nodes)]
        able = [kind for kind in able if kind.price_per_hour < min(same, default=price)]
    if all(pool.by_name[node.type].is_spot for node in nodes):
        # A cheaper spot type is often a scarcer one: without many to choose from, the new node would be lost soon.
        spot = [kind for kind in able if kind.is_spot]
        enough = pool.spot_to_spot and (len(nodes) > 1 or len(spot) >= pool.least_spot_types)
        able = [kind for kind in able if not kind.is_spot] + (spot if enough else [])
    return min(able, key=lambda kind: (kind.price_per_hour, kind.name), default=None)
