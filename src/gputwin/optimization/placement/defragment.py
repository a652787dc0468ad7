"""Where a gang would fit now, and after which moves: the fewest running instances to move so that it can start.

For each node, the fewest residents to move away so that it holds 1, 2, … instances of the gang are found by trying sets
of residents in order of size; the cheapest nodes for the whole gang follow by dynamic programming. That number is a
lower bound, since it does not ask where the moved go. It is the answer where places for them are found; else other nodes
are tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from gputwin.optimization.placement.snapshot import Request, Resident, Snapshot

_MOST_MOVED = 4
"""Residents of one node that are tried together."""
_MOST_SETS = 3000
_ATTEMPTS = 40
_INFINITE = 10**9


@dataclass(frozen=True)
class Move:
    """One running instance goes from a node to another."""

    job_id: str
    source: str
    target: str
    gpus: float


@dataclass(frozen=True)
class GangFit:
    """Nodes of the gang's instances, the moves before it, and a number of moves that none can be below."""

    instances: int
    fits_now: int
    """Instances that fit with no move at all."""
    nodes: tuple[str, ...] | None
    moves: tuple[Move, ...] = ()
    least_moves: int | None = 0
    """None: no number of moves found."""
    reason: str = ""
    options: tuple[tuple[str, int], ...] = field(default=())
    """(node, instances that fit there now), most first."""

    @property
    def is_optimal(self) -> bool:
        """Return whether the moves are proven to be fewest."""
        return self.nodes is not None and self.least_moves is not None and len(self.moves) <= self.least_moves

    def to_json(self) -> dict[str, Any]:
        """Return the answer as plain data."""
        return {
            "instances": self.instances,
            "fits_now": self.fits_now,
            "is_possible": self.nodes is not None,
            "nodes": None if self.nodes is None else list(self.nodes),
            "moves": [vars(m) for m in self.moves],
            "least_moves": self.least_moves,
            "is_optimal": self.is_optimal,
            "reason": self.reason,
            "nodes_with_room": [{"node": n, "instances": k} for n, k in self.options[:20]],
        }


def fit_gang(snapshot: Snapshot, request: Request, instances: int) -> GangFit:
    """Return where a gang of so many instances fits, with the fewest moves found."""
    rooms = [snapshot.room(n, request, instances) for n in range(len(snapshot.node_ids))]
    order = sorted((n for n, room in enumerate(rooms) if room), key=lambda n: (-rooms[n], n))
    options = tuple((snapshot.node_ids[n], rooms[n]) for n in order)
    total = min(sum(rooms), instances)
    if total >= instances:
        nodes: list[str] = []
        for n in order:
            nodes += [snapshot.node_ids[n]] * min(rooms[n], instances - len(nodes))
        return GangFit(instances, instances, tuple(nodes), options=options)
    priced = {n: _prices(snapshot, n, request, instances) for n in range(len(snapshot.node_ids))}
    prices = {n: price for n, (price, _) in priced.items()}
    ideal, bound = _cheapest({n: hopeful for n, (_, hopeful) in priced.items()}, instances)
    least = None if ideal is None else bound
    barred: set[int] = set()
    for _ in range(_ATTEMPTS):
        chosen, _ = _cheapest({n: p for n, p in prices.items() if n not in barred}, instances)
        if chosen is None:
            break
        moves = _carry_out(snapshot, request, chosen)
        if isinstance(moves, tuple):
            nodes = [snapshot.node_ids[n] for n, (k, _) in chosen.items() for _ in range(k)]
            return GangFit(instances, total, tuple(nodes), moves, least, options=options)
        barred.add(moves)
    reason = _why(snapshot, request, instances, total)
    return GangFit(instances, total, None, (), least, reason, options)


Price = list[tuple[int, tuple[Resident, ...]]]
"""By instances of the gang on the node (from 0): how many residents must go (a lower bound), and which."""


def _prices(snapshot: Snapshot, node: int, request: Request, most: int) -> tuple[Price, Price]:
    """Return what was found, and the same with the least that what was not tried could cost."""
    residents = snapshot.residents[node]
    now = snapshot.room(node, request, most)
    prices: Price = [(0, ())] * (now + 1)
    if request.models is not None and snapshot.models[node] not in request.models:
        return prices, prices
    empty = snapshot.copy_of(node)
    for resident in list(empty.residents[0]):
        empty.take(0, resident)
    ceiling = empty.room(0, request, most)
    tried, finished = 0, 0
    for size in range(1, min(_MOST_MOVED, len(residents)) + 1):
        for group in _distinct(residents, size):
            tried += 1
            if len(prices) > ceiling or tried > _MOST_SETS:
                break
            trial = snapshot.copy_of(node)
            for resident in group:
                trial.take(0, resident)
            room = trial.room(0, request, most)
            while len(prices) <= room:
                prices.append((size, group))
        finished = size if tried <= _MOST_SETS else finished
    beyond: Price = [(finished + 1, ())] * (ceiling + 1 - len(prices))
    return prices, prices + beyond


def _distinct(residents: list[Resident], size: int) -> Iterator[tuple[Resident, ...]]:
    """Yield sets of residents, one of each kind of set (same requests on the same devices are alike)."""
    seen = set()
    ordered = sorted(residents, key=lambda r: (-r.request.gpus * r.request.gpu_milli, r.request.amounts))
    for group in combinations(ordered, size):
        key = tuple((r.request, r.devices) for r in group)
        if key not in seen:
            seen.add(key)
            yield group


def _cheapest(
    prices: dict[int, Price], instances: int
) -> tuple[dict[int, tuple[int, tuple[Resident, ...]]] | None, int]:
    """Return instances and residents to move per node with the fewest moves in all, and their number."""
    best = [0] + [_INFINITE] * instances
    picks: list[dict[int, int]] = [{} for _ in range(instances + 1)]
    for node, price in prices.items():
        for have in range(instances, 0, -1):
            for k in range(1, min(have, len(price) - 1) + 1):
                cost = best[have - k] + price[k][0]
                if cost < best[have]:
                    best[have] = cost
                    picks[have] = {**picks[have - k], node: k}
    if best[instances] >= _INFINITE:
        return None, 0
    return {n: (k, prices[n][k][1]) for n, k in picks[instances].items()}, best[instances]


def _carry_out(
    snapshot: Snapshot, request: Request, chosen: dict[int, tuple[int, tuple[Resident, ...]]]
) -> tuple[Move, ...] | int:
    """Return the moves, or the node whose residents have nowhere to go."""
    trial = snapshot.copy()
    for node, (count, residents) in chosen.items():
        for resident in residents:
            trial.take(node, resident)
        for _ in range(count):
            trial.put(node, request, "gang")
    moves = []
    waiting = [(node, r) for node, (_, residents) in chosen.items() for r in residents]
    waiting.sort(key=lambda w: (-w[1].request.gpus * w[1].request.gpu_milli, [-a for a in w[1].request.amounts]))
    for node, resident in waiting:
        target = trial.best_node(resident.request, frozenset({node}))
        if target is None:
            return node
        trial.put(target, resident.request, resident.job_id)
        gpus = resident.request.gpus * resident.request.gpu_milli / 1000
        moves.append(Move(resident.job_id, snapshot.node_ids[node], snapshot.node_ids[target], gpus))
    return tuple(moves)


def _why(snapshot: Snapshot, request: Request, instances: int, total: int) -> str:
    """Return why the gang cannot start, and what would help."""
    free = sum(int(d.sum()) for d in snapshot.devices) / 1000
    asked = instances * request.gpus * request.gpu_milli / 1000
    if request.gpus and free < asked:
        return f"{asked:g} GPUs are asked for and {free:g} are free in all; wait for jobs to end or add nodes."
    return (
        f"{total} of {instances} instances fit now, and moving up to {_MOST_MOVED} instances per node does not make room "
        "for the rest; ask for fewer GPUs per instance, a smaller gang, or wait."
    )
