"""The optimum by CP-SAT with one row of variables per node: for small problems."""

from __future__ import annotations

import math
from typing import Any

from gputwin.optimization.placement.pricing import add_node_rules
from gputwin.optimization.placement.problem import Packing, Problem, packing_of

_MOST_VARIABLES = 60_000


def solve_exactly(
    problem: Problem, seconds: float, *, start: Packing | None = None, seed: int = 0
) -> tuple[Packing | None, int | None, bool]:
    """Return the best packing, a lower bound, and whether there is no packing at all."""
    from ortools.sat.python import cp_model

    slots = [_slots(problem, t, start) for t in range(len(problem.types))]
    if sum(slots) * max(len(problem.choices), 1) > _MOST_VARIABLES:
        return None, None, False
    model = cp_model.CpModel()
    nodes: list[tuple[int, dict[int, Any], Any]] = []
    for t, count in enumerate(slots):
        before = None
        for _ in range(count):
            held = {
                c: model.new_int_var(0, int(problem.most[t, c]), "")
                for c in range(len(problem.choices))
                if problem.most[t, c]
            }
            used = model.new_bool_var("")
            add_node_rules(model, problem, t, held)
            for variable in held.values():
                model.add(variable == 0).only_enforce_if(used.negated())
            _order(model, problem, held, used, before)
            before = (held, used)
            nodes.append((t, held, used))
    cost = [problem.types[t].cost * used for t, _, used in nodes]
    for g, group in enumerate(problem.groups):
        placed = sum(v for _, held, _ in nodes for c, v in held.items() if problem.group_of[c] == g)
        if group.missing_cost is None:
            model.add(placed == group.count)
        else:
            missing = model.new_int_var(0, group.count, "")
            model.add(placed + missing == group.count)
            cost.append(group.missing_cost * missing)
    for (owner, rack), limit in problem.rack_limits.items():
        inside = [
            v
            for t, held, _ in nodes
            if problem.types[t].rack == rack
            for c, v in held.items()
            if problem.groups[problem.group_of[c]].owner == owner
        ]
        model.add(sum(inside) <= limit)
    model.minimize(sum(cost))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(seconds, 0.1)
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None, None, True
    bound = max(math.ceil(solver.best_objective_bound - 1e-6), 0)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, bound, False
    chosen = [(t, tuple((c, n) for c, v in sorted(held.items()) if (n := solver.value(v)))) for t, held, _ in nodes]
    return packing_of(problem, chosen), bound, False


def _order(model: Any, problem: Problem, held: dict[int, Any], used: Any, before: Any) -> None:
    """Nodes of one type are interchangeable, so those in use come first, the fullest by one resource first."""
    if before is None:
        return
    model.add_implication(used, before[1])
    weights = {c: int(problem.sizes[c, 0]) or 1 for c in held}
    model.add(sum(weights[c] * v for c, v in before[0].items()) >= sum(weights[c] * v for c, v in held.items()))


def _slots(problem: Problem, node_type: int, start: Packing | None) -> int:
    """Return how many nodes of the type a packing can use that is no worse than `start`."""
    kind = problem.types[node_type]
    most = sum(int(n) for g, n in enumerate(problem.counts) if problem.most[node_type][problem.group_of == g].any())
    if kind.supply is not None:
        most = min(most, kind.supply)
    if start is not None and start.is_complete(problem) and kind.cost > 0:
        most = min(most, start.objective(problem) // kind.cost)
    return most
