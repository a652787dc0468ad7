"""Fewer nodes from where instances are now, within a budget of moves, and bounds on what any moves could reach.

A node is emptied only when all of its residents move, so a budget empties no more nodes than have, the fewest residents
first, no more residents in all than the budget. With free moves, no placement is below the bound over patterns.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import Any

import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.optimization.placement.bounds import simple_bound
from gputwin.optimization.placement.columns import generate
from gputwin.optimization.placement.consolidate import consolidate
from gputwin.optimization.placement.defragment import Move
from gputwin.optimization.placement.heuristics import node_prices, weights_of
from gputwin.optimization.placement.master import Column
from gputwin.optimization.placement.online import best_fit
from gputwin.optimization.placement.problem import InstanceGroup, NodeType, Problem
from gputwin.optimization.placement.repack import exchange
from gputwin.optimization.placement.rolling import worth_of
from gputwin.optimization.placement.snapshot import Request, Snapshot
from gputwin.optimization.placement.standing import Standing

_RESOURCES = ("gpu_milli", "cpu_milli", "memory_mib", "disk_mib", "rdma_percent")
_UNLIMITED = 1 << 40
_SHARE_FOR_BOUND = 0.1
"""Share of the time for the bound with free moves where nothing else hangs on it."""


@dataclass(frozen=True)
class Present:
    """Who is where: the standing placement, the instances' names by number, and the nodes of its rows."""

    standing: Standing
    jobs: tuple[str, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Emptied:
    """The moves, the nodes in use before and after, and what no moves can be below: within the budget, and in all."""

    instances: int
    before: int
    after: int
    least: int
    """Nodes that no moves within the budget can go below."""
    free: int
    """Nodes that no placement can go below, however many move."""
    moves: tuple[Move, ...]
    budget: int

    def verdict(self) -> str:
        """Return in one sentence what the moves reach and what any could."""
        if not self.moves:
            said = f"No node of {self.before:,} in use is emptied by {self.budget:,} moves"
        else:
            said = f"{len(self.moves):,} moves leave {self.after:,} of {self.before:,} nodes in use"
        proof = (
            "no moves within the budget leave fewer"
            if self.after <= self.least
            else (f"no {self.budget:,} moves leave fewer than {self.least:,}")
        )
        return f"{said}; {proof}, and with free moves {self.free:,} are needed at least."

    def frame(self) -> pl.DataFrame:
        """Return one row per move: job, node it leaves, node it goes to, GPUs."""
        rows = [(m.job_id, m.source, m.target, m.gpus) for m in self.moves]
        schema = {"job_id": pl.String, "source": pl.String, "target": pl.String, "gpus": pl.Float64}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        return {
            "instances": self.instances,
            "nodes_before": self.before,
            "nodes_after": self.after,
            "lower_bound": self.least,
            "free_moves_bound": self.free,
            "budget": self.budget,
            "is_optimal": self.after <= self.least,
            "moves": [vars(m) for m in self.moves],
        }


def present_of(snapshot: Snapshot, nodes: pl.DataFrame) -> Present:
    """Return the placement of a snapshot, as groups of identical instances on types of identical nodes."""
    kinds: dict[tuple[Any, ...], list[int]] = {}
    for n, kind in enumerate(nodes.select("gpu_model", "gpu_count", *_RESOURCES[1:]).rows()):
        kinds.setdefault(kind, []).append(n)
    types = tuple(
        NodeType(
            f"{gpus} × {model or 'GPU'} ({k})",
            (gpus * WHOLE_GPU_MILLI, *(_UNLIMITED if a is None else int(a) for a in amounts)),
            supply=len(members),
            gpus=gpus,
        )
        for k, ((model, gpus, *amounts), members) in enumerate(kinds.items())
    )
    models = [kind[0] or "" for kind in kinds]
    kind_of = {n: k for k, members in enumerate(kinds.values()) for n in members}
    asked: dict[Request, int] = {}
    for residents in snapshot.residents:
        for one in residents:
            asked[one.request] = asked.get(one.request, 0) + 1
    if not asked:
        raise UserError("nothing runs at that time; give another with --at")
    groups = tuple(_group(i, request, count, types, models) for i, (request, count) in enumerate(asked.items()))
    problem = Problem(_RESOURCES, groups, types)
    weights = weights_of(problem)
    standing = Standing(problem, best_fit(weights, problem.capacities), node_prices(problem, weights))
    number = {request: g for g, request in enumerate(asked)}
    jobs: list[str] = []
    rows: list[str] = []
    for n, residents in enumerate(snapshot.residents):
        if residents:
            opened = standing.open(kind_of[n])
            rows.append(snapshot.node_ids[n])
            for one in residents:
                standing.put(len(jobs), number[one.request], opened, one.devices)
                jobs.append(one.job_id)
    return Present(standing, tuple(jobs), tuple(rows))


def _group(number: int, request: Request, count: int, types: tuple[NodeType, ...], models: list[str]) -> InstanceGroup:
    allowed = None
    if request.models is not None:
        allowed = frozenset(t.name for t, model in zip(types, models, strict=True) if model in request.models)
    return InstanceGroup(
        f"request {number}",
        ((request.gpus * request.gpu_milli, *request.amounts),),
        count,
        application=f"application {request.application}" if request.application >= 0 else "",
        max_per_node=request.max_per_node,
        node_types=allowed,
        gpus=request.gpus,
        gpu_milli=request.gpu_milli,
    )


def empty_nodes(present: Present, most_moves: int, *, seconds: float = 60.0) -> Emptied:
    """Return the moves that empty the most nodes found, at most so many, and bounds; the placement itself stays."""
    if most_moves < 0:
        raise UserError(f"{most_moves} moves is no budget; give 0 or more")
    standing, problem, spent = present.standing.copy(), present.standing.problem, 0
    homes = {i: home.row for i, home in standing.homes.items()}
    before = standing.nodes
    least = max(simple_bound(problem), before - _most_emptied(standing, most_moves))
    if before > least:
        spent = consolidate(standing, most_moves)
    # Where emptying single nodes does all that the budget can, the linear program only says what free moves could do.
    is_done = standing.nodes <= least
    generated = generate(
        problem, _columns(standing), deadline=process_time() + seconds * (_SHARE_FOR_BOUND if is_done else 1.0)
    )
    free = max(generated.bound, simple_bound(problem))
    least = max(free, least)
    if standing.nodes > least:
        exchange(standing, tuple(worth_of(problem, generated, weights_of(problem))), most_moves - spent)
    moves = tuple(
        Move(
            present.jobs[i],
            present.nodes[row],
            present.nodes[standing.homes[i].row],
            problem.groups[standing.homes[i].group].requests[0][0] / WHOLE_GPU_MILLI,
        )
        for i, row in homes.items()
        if standing.homes[i].row != row
    )
    return Emptied(len(homes), before, standing.nodes, least, free, moves, most_moves)


def _most_emptied(standing: Standing, moves: int) -> int:
    """Return the most nodes that so many moves can empty, wherever the moved may go."""
    emptied = 0
    for residents in sorted(len(standing.on[row]) for row in standing.rows()):
        moves -= residents
        if moves < 0:
            break
        emptied += 1
    return emptied


def _columns(standing: Standing) -> set[Column]:
    """Return the patterns of the nodes in use."""
    found = set()
    for row in standing.rows():
        counts: dict[int, int] = {}
        for i in standing.on[row]:
            counts[standing.homes[i].group] = counts.get(standing.homes[i].group, 0) + 1
        found.add((int(standing.kinds[row]), tuple(sorted(counts.items()))))
    return found
