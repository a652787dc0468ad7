"""Emptying a node by exchanges between a few nodes: CP-SAT packs their instances into one node less, with the fewest moves.

Which nodes are worth it is told by the linear program over patterns: a node whose instances are worth less than the node,
by the program's prices, wastes the rest, and nodes that together waste more than a whole one may do with one less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from typing import Any

import numpy as np

from gputwin.optimization.placement.heuristics import Floats
from gputwin.optimization.placement.pricing import add_node_rules
from gputwin.optimization.placement.standing import Home, Standing

_NODES = 10
"""Most nodes whose instances are exchanged at once."""
_EFFORT = 0.05
"""Deterministic seconds of CP-SAT per attempt."""
_ATTEMPTS, _MOST_FAILURES = 60, 12
"""Attempts in all, and failures in a row after which it ends."""


def exchange(
    standing: Standing,
    worth: Sequence[Floats],
    most_moves: int,
    *,
    leaving: Set[int] = frozenset(),
    seed: int = 0,
) -> int:
    """Return the moves made, at most so many, to empty nodes by exchanging instances between a few nodes at a time.

    `worth` is what an instance of each group is worth per node type, as a share of the node's cost.
    """
    rng = np.random.default_rng(seed)
    moves = failures = 0
    for _ in range(_ATTEMPTS):
        rows = _wasteful(standing, worth, leaving, rng)
        if len(rows) < 2 or moves >= most_moves or failures == _MOST_FAILURES:
            break
        made = repack(standing, rows, most_moves - moves, leaving=leaving)
        failures = 0 if made else failures + 1
        moves += made
    return moves


def _wasteful(standing: Standing, worth: Sequence[Floats], leaving: Set[int], rng: np.random.Generator) -> list[int]:
    """Return some nodes of one type that waste more than a whole node together, those that waste most more likely."""
    rows = np.array([r for r in standing.rows() if not standing.on[r] <= leaving], np.int64)
    if not rows.size:
        return []
    waste = np.array(
        [1.0 - sum(worth[standing.kinds[r]][standing.homes[i].group] for i in standing.on[r]) for r in rows]
    )
    waste = np.maximum(waste, 0.0)
    if not waste.any():
        return []
    first = int(rng.choice(len(rows), p=waste**2 / (waste**2).sum()))
    same = np.flatnonzero((standing.kinds[rows] == standing.kinds[rows[first]]) & (np.arange(len(rows)) != first))
    chance = waste[same] ** 2
    count = min(_NODES - 1, int((chance > 0).sum()))
    if not count:
        return []
    others = rng.choice(same, count, replace=False, p=chance / chance.sum())
    return [int(rows[i]) for i in (first, *others)]


def repack(standing: Standing, rows: Sequence[int], most_moves: int, *, leaving: Set[int] = frozenset()) -> int:
    """Return the moves made to empty at least one of these nodes of one type; 0 and nothing changed where it cannot be.

    Stand-ins (negative numbers) move for free. Who is leaving stays, and a node that only they are on counts as empty.
    """
    from ortools.sat.python import cp_model

    problem, kind = standing.problem, int(standing.kinds[rows[0]])
    here = [Counter(standing.homes[i].group for i in standing.on[r]) for r in rows]
    real = [Counter(standing.homes[i].group for i in standing.on[r] if i >= 0) for r in rows]
    fixed = [Counter(standing.homes[i].group for i in standing.on[r] if i in leaving) for r in rows]
    groups = sorted(set().union(*here))
    model = cp_model.CpModel()
    used, held, moved = [], [], []
    for j in range(len(rows)):
        least = {g: fixed[j][g] for g in groups}
        total = {g: sum(h[g] for h in here) for g in groups}
        variables: dict[int, Any] = {
            g: model.new_int_var(least[g], max(min(total[g], int(problem.most[kind, g])), least[g]), "") for g in groups
        }
        add_node_rules(model, problem, kind, variables)
        flag = model.new_bool_var("")
        for g, variable in variables.items():
            model.add(variable == least[g]).only_enforce_if(flag.negated())
            out = model.new_int_var(0, max(real[j][g], 0), "")
            model.add(out >= real[j][g] - variable)
            moved.append(out)
        used.append(flag)
        held.append(variables)
    for g in groups:
        model.add(sum(v[g] for v in held) == sum(h[g] for h in here))
    taken = sum(not standing.on[r] <= leaving for r in rows)
    model.add(sum(used) <= taken - 1)
    model.add(sum(moved) <= most_moves)
    model.minimize(sum(moved))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = _EFFORT
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return 0
    return _moved(standing, rows, [{g: solver.value(v) for g, v in variables.items()} for variables in held], leaving)


def _moved(standing: Standing, rows: Sequence[int], wanted: Sequence[dict[int, int]], leaving: Set[int]) -> int:
    """Return the moves made until each node holds what is wanted of each group; nobody moves who need not.

    Who stays keeps its devices. Where those that come find none that have room for their shares, nothing changes.
    """
    homes: dict[int, Home] = {}
    homeless: dict[int, list[int]] = {}
    for row, counts in zip(rows, wanted, strict=True):
        for g, count in counts.items():
            # Stand-ins go first, those who leave soon stay.
            there = sorted(
                (i for i in standing.on[row] if standing.homes[i].group == g), key=lambda i: (i in leaving, i)
            )
            for instance in there[: max(len(there) - count, 0)]:
                homes[instance] = standing.take(instance)
                homeless.setdefault(g, []).append(instance)
    comes = [
        (g, row)
        for row, counts in zip(rows, wanted, strict=True)
        for g in counts
        for _ in range(_lack(standing, row, g, counts[g]))
    ]
    for g, row in sorted(comes, key=lambda c: (-standing.problem.groups[c[0]].gpu_milli, -standing.bulk[c[0]], c)):
        if not standing.has_devices(row, g):
            for instance in homes:
                if instance in standing.homes:
                    standing.take(instance)
            for instance, home in homes.items():
                standing.put(instance, home.group, home.row, home.devices)
            return 0
        standing.put(homeless[g].pop(), g, row)
    return sum(i >= 0 for i in homes)


def _lack(standing: Standing, row: int, group: int, wanted: int) -> int:
    return wanted - sum(standing.homes[i].group == group for i in standing.on[row])
