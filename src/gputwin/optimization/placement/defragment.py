"""Where a gang would fit now, and after which moves: the fewest running instances to move so that it can start.

For each node, the fewest residents to move away so that it holds 1, 2, … instances of the gang are found by trying sets
of residents in order of size, up to a few; beyond, the GPUs with the fewest residents are cleared. The cheapest nodes for
the whole gang follow by dynamic programming. Where all sets were tried that number is a lower bound, since it does not ask
where the moved go, else one follows from what residents hold. It is the answer where places are found; else other nodes
are tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.optimization.placement.snapshot import Request, Resident, Snapshot, room_for

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
    searches = [_Search(snapshot, n, request, instances) for n in range(len(snapshot.node_ids))]
    least: int | None = None
    for depth in range(1, _MOST_MOVED + 1):
        for search in searches:
            search.deepen(depth)
        found = {n: s.prices if depth < _MOST_MOVED else s.found for n, s in enumerate(searches)}
        ideal, bound = _cheapest({n: s.hopeful for n, s in enumerate(searches)}, instances)
        if ideal is None:
            # Not even empty nodes would do.
            break
        least = bound
        chosen, cost = _cheapest(found, instances)
        # Sets of more residents are tried only where they could save moves, or where the moved have nowhere to go.
        if chosen is None or (cost > bound and depth < _MOST_MOVED):
            continue
        placed = _placed(snapshot, request, instances, found)
        if placed is not None:
            return GangFit(instances, total, *placed, least, options=options)
    reason = _why(snapshot, request, instances, total)
    return GangFit(instances, total, None, (), least, reason, options)


Price = list[tuple[int, tuple[Resident, ...]]]
"""By instances of the gang on the node (from 0): how many residents must go (a lower bound), and which."""


def _placed(
    snapshot: Snapshot, request: Request, instances: int, prices: dict[int, Price]
) -> tuple[tuple[str, ...], tuple[Move, ...]] | None:
    """Return the gang's nodes and the moves, other nodes tried where the moved have nowhere to go."""
    barred: set[int] = set()
    for _ in range(_ATTEMPTS):
        chosen, _ = _cheapest({n: p for n, p in prices.items() if n not in barred}, instances)
        if chosen is None:
            return None
        moves = _carry_out(snapshot, request, chosen)
        if isinstance(moves, tuple):
            return tuple(snapshot.node_ids[n] for n, (k, _) in chosen.items() for _ in range(k)), moves
        barred.add(moves)
    return None


class _Search:
    """The fewest residents of a node to move for 1, 2, … instances of the gang, sets of them tried in order of size."""

    def __init__(self, snapshot: Snapshot, node: int, request: Request, most: int) -> None:
        self.request, self.most = request, most
        self.free, self.devices = snapshot.free[node], snapshot.devices[node]
        self.residents = snapshot.residents[node]
        self.prices: Price = [(0, ())] * (snapshot.room(node, request, most) + 1)
        allowed = request.models is None or snapshot.models[node] in request.models
        self.ceiling = self._room(self.residents) if allowed else 0
        self.tried = self.finished = 0
        self.asked = (request.gpus * request.gpu_milli, *request.amounts)
        self.totals = (int(self.devices.sum()), *self.free.tolist())
        held = [(r.request.gpus * r.request.gpu_milli, *r.request.amounts) for r in self.residents]
        self.largest = [sorted((h[k] for h in held), reverse=True) for k in range(len(self.asked))]
        kinds: dict[tuple[Any, ...], list[Resident]] = {}
        for one in self.residents:
            # Which whole GPUs a resident holds makes no difference.
            devices = one.devices if one.request.gpu_milli < WHOLE_GPU_MILLI else ()
            kinds.setdefault((one.request, devices), []).append(one)
        self.kinds = sorted(
            kinds.values(), key=lambda k: (-k[0].request.gpus * k[0].request.gpu_milli, k[0].request.amounts)
        )

    @property
    def hopeful(self) -> Price:
        """Return the prices with the least that what was not tried could cost."""
        beyond = range(len(self.prices), self.ceiling + 1)
        return self.prices + [(max(self.finished + 1, self._least_gone(k)), ()) for k in beyond]

    @property
    def found(self) -> Price:
        """Return the prices, and for what no set tried makes room for, residents that do: perhaps not the fewest."""
        beyond = range(len(self.prices), self.ceiling + 1)
        return self.prices + [(len(group), group) for group in map(self._cleared, beyond)]

    def deepen(self, size: int) -> None:
        """Try all sets of so many residents."""
        if len(self.prices) <= self.ceiling and size >= self._least_gone(len(self.prices)):
            for group in _sets(self.kinds, size):
                self.tried += 1
                if self.tried > _MOST_SETS:
                    return
                room = self._room(group)
                while len(self.prices) <= room:
                    self.prices.append((size, group))
                if len(self.prices) > self.ceiling:
                    break
        self.finished = size

    def _least_gone(self, count: int) -> int:
        """Return how many residents must go at least for so many instances, by what they hold of each resource alone."""
        least = 0
        for k, (free, amount) in enumerate(zip(self.totals, self.asked, strict=True)):
            lack = count * amount - free
            for gone, freed in enumerate(self.largest[k], 1):
                if lack <= 0:
                    break
                lack -= freed
                least = max(least, gone)
        return least

    def _cleared(self, count: int) -> tuple[Resident, ...]:
        """Return residents who make room for so many instances: those on the GPUs with the fewest, then the largest."""
        on = Counter(d for one in self.residents for d in one.devices)
        order = sorted(
            self.residents,
            key=lambda one: (max((on[d] for d in one.devices), default=len(self.residents)), one.devices),
        )
        gone: list[Resident] = []
        for one in order:
            gone.append(one)
            if self._room(gone) >= count:
                break
        for one in sorted(gone, key=lambda one: one.request.gpus * one.request.gpu_milli):
            rest = list(gone)
            rest.remove(one)
            if self._room(rest) >= count:
                gone = rest
        return tuple(gone)

    def _room(self, gone: Iterable[Resident]) -> int:
        """Return how many instances of the gang fit once these residents are gone."""
        free, devices, stay = self.free.copy(), self.devices.copy(), Counter(self.residents)
        for one in gone:
            free += np.array(one.request.amounts, np.int64)
            for d in one.devices:
                devices[d] += one.request.gpu_milli
            stay[one] -= 1
        room = room_for(free, devices, self.request, self.most)
        if self.request.max_per_node is not None:
            own = self.request.application
            here = sum(n for one, n in stay.items() if one.request.application == own >= 0)
            room = max(min(room, self.request.max_per_node - here), 0)
        return room


def _sets(kinds: Sequence[Sequence[Resident]], size: int) -> Iterator[tuple[Resident, ...]]:
    """Yield sets of so many residents, of those that are alike the first ones."""
    if size == 0:
        yield ()
        return
    for k, alike in enumerate(kinds):
        for count in range(min(size, len(alike)), 0, -1):
            for rest in _sets(kinds[k + 1 :], size - count):
                yield (*alike[:count], *rest)


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
    allowed = [
        len(d)
        for d, m in zip(snapshot.devices, snapshot.models, strict=True)
        if not request.models or m in request.models
    ]
    most = max(allowed, default=0)
    if request.gpus > most:
        of = f" of {', '.join(sorted(request.models))}" if request.models else ""
        return f"an instance asks for {request.gpus:,} GPUs and no node has more than {most:,}{of}, so it never can."
    free = sum(int(d.sum()) for d in snapshot.devices) / 1000
    asked = instances * request.gpus * request.gpu_milli / 1000
    if asked > sum(allowed):
        return f"{asked:g} GPUs are asked for and the nodes have {sum(allowed):,} in all, so it never can."
    if request.gpus and free < asked:
        return f"{asked:g} GPUs are asked for and {free:g} are free in all; wait for jobs to end or add nodes."
    return (
        f"{total} of {instances} instances fit now, and no moves were found that make room for the rest; "
        "ask for fewer GPUs per instance, a smaller gang, or wait."
    )
