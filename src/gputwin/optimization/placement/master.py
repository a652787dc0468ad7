"""The master problem of column generation: how many nodes of each known pattern, as a linear and an integer program.

Gilmore and Gomory, "A Linear Programming Approach to the Cutting-Stock Problem", 1961, with several node types.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gputwin.optimization.placement.heuristics import Floats
from gputwin.optimization.placement.problem import Packing, Pattern, Problem, packing_of

Column = tuple[int, Pattern]
"""(node type, what a node of it holds)."""


@dataclass(frozen=True)
class Duals:
    """Values of the linear program's rows: per group (≥ 0) and per limited application and rack (≥ 0: a price)."""

    groups: Floats
    racks: dict[tuple[str, str], float]


@dataclass(frozen=True)
class Relaxed:
    """A solution of the linear program."""

    value: float
    nodes: Floats
    """Nodes of each column, in the order columns were added."""
    duals: Duals
    is_short: bool
    """Whether the known columns cannot place all that must be placed."""


class Master:
    """The linear program over the columns known so far; columns are added as they are found."""

    def __init__(self, problem: Problem) -> None:
        from ortools.linear_solver import pywraplp

        self.problem = problem
        self.columns: list[Column] = []
        self.known: set[Column] = set()
        self.solver: Any = pywraplp.Solver.CreateSolver("GLOP")
        self.infinity = self.solver.infinity()
        self.variables: list[Any] = []
        self.short_cost = short_cost(problem)
        self.rows = [self.solver.Constraint(float(n), self.infinity) for n in problem.counts]
        self.supplies = {
            t: self.solver.Constraint(-self.infinity, float(kind.supply))
            for t, kind in enumerate(problem.types)
            if kind.supply is not None
        }
        self.racks = {
            key: self.solver.Constraint(-self.infinity, float(limit)) for key, limit in problem.rack_limits.items()
        }
        self.solver.Objective().SetMinimization()
        self.missing = []
        self.exchanges: list[Any] = []
        for group, row in zip(problem.groups, self.rows, strict=True):
            variable = self.solver.NumVar(0.0, self.infinity, "")
            cost = self.short_cost if group.missing_cost is None else group.missing_cost
            self.solver.Objective().SetCoefficient(variable, float(cost))
            row.SetCoefficient(variable, 1.0)
            self.missing.append(variable)

    def add(self, columns: Iterable[Column]) -> int:
        """Return how many of the columns are new, after adding them."""
        fresh = [c for c in dict.fromkeys(columns) if c not in self.known and c[1]]
        for t, pattern in fresh:
            variable = self.solver.NumVar(0.0, self.infinity, "")
            self.solver.Objective().SetCoefficient(variable, float(self.problem.types[t].cost))
            for group, n in _per_group(self.problem, pattern).items():
                self.rows[group].SetCoefficient(variable, float(n))
            if t in self.supplies:
                self.supplies[t].SetCoefficient(variable, 1.0)
            for key, n in per_rack(self.problem, t, pattern).items():
                self.racks[key].SetCoefficient(variable, float(n))
            self.variables.append(variable)
        self.columns += fresh
        self.known |= set(fresh)
        return len(fresh)

    def add_exchanges(self) -> None:
        """Let the room of an instance be used by the next smaller one, which steadies the duals while they settle.

        Valério de Carvalho, "Using Extra Dual Cuts to Accelerate Column Generation", 2005. For one resource.
        """
        order = np.argsort(-self.problem.sizes[:, 0], kind="stable").tolist()
        for larger, smaller in pairwise(order):
            variable = self.solver.NumVar(0.0, self.infinity, "")
            self.rows[self.problem.group_of[larger]].SetCoefficient(variable, -1.0)
            self.rows[self.problem.group_of[smaller]].SetCoefficient(variable, 1.0)
            self.exchanges.append(variable)

    def drop_exchanges(self) -> None:
        """Allow no exchange any more, so that the solution is one of patterns alone."""
        for variable in self.exchanges:
            variable.SetUb(0.0)
        self.exchanges.clear()

    def solve(self) -> Relaxed:
        """Return the optimum over the known columns."""
        self.solver.Solve()
        nodes = np.array([v.solution_value() for v in self.variables])
        prices = np.maximum([row.dual_value() for row in self.rows], 0.0)
        racks = {key: max(-row.dual_value(), 0.0) for key, row in self.racks.items()}
        required = [g.missing_cost is None for g in self.problem.groups]
        short = any(v.solution_value() > 1e-6 for v, must in zip(self.missing, required, strict=True) if must)
        return Relaxed(self.solver.Objective().Value(), nodes, Duals(prices, racks), short)


def short_cost(problem: Problem) -> int:
    """Return what an instance that must be placed but is not counts in the linear program: more than any node."""
    dearest = max((t.cost for t in problem.types), default=1)
    return 1000 * max(dearest, max((g.missing_cost or 0 for g in problem.groups), default=0), 1)


def _per_group(problem: Problem, pattern: Pattern) -> Counter[int]:
    held: Counter[int] = Counter()
    for choice, n in pattern:
        held[int(problem.group_of[choice])] += n
    return held


def per_rack(problem: Problem, node_type: int, pattern: Pattern) -> Counter[tuple[str, str]]:
    """Return the instances that count towards each application's limit in the node's rack."""
    rack = problem.types[node_type].rack
    held: Counter[tuple[str, str]] = Counter()
    if rack is not None and problem.rack_limits:
        for choice, n in pattern:
            held[problem.groups[problem.group_of[choice]].owner, rack] += n
    return held


@dataclass(frozen=True)
class Whole:
    """What the integer program over given columns found."""

    packing: Packing | None
    is_settled: bool
    """Whether no packing of these columns is better; without a packing: whether there is none."""


def solve_whole(problem: Problem, columns: Sequence[Column], *, seconds: float, at_most: int | None = None) -> Whole:
    """Return the best packing of these columns; `at_most` asks only for ones with an objective up to that."""
    from ortools.linear_solver import pywraplp

    solver = pywraplp.Solver.CreateSolver("CBC")
    # A limit in milliseconds; none would be no limit.
    solver.SetTimeLimit(max(int(seconds * 1000), 100))
    infinity = solver.infinity()
    rows = [solver.Constraint(float(n), infinity) for n in problem.counts]
    supplies = [solver.Constraint(0.0, infinity if t.supply is None else float(t.supply)) for t in problem.types]
    racks = {key: solver.Constraint(0.0, float(limit)) for key, limit in problem.rack_limits.items()}
    total = solver.Constraint(-infinity, infinity if at_most is None else float(at_most))
    goal = solver.Objective()
    goal.SetMinimization()

    def cost(variable: Any, amount: int) -> None:
        goal.SetCoefficient(variable, float(amount))
        total.SetCoefficient(variable, float(amount))

    uses = []
    for t, pattern in columns:
        held = _per_group(problem, pattern)
        needed = max((-(-int(problem.counts[g]) // n) for g, n in held.items()), default=0)
        use = solver.IntVar(0.0, float(needed), "")
        cost(use, problem.types[t].cost)
        for g, n in held.items():
            rows[g].SetCoefficient(use, float(n))
        supplies[t].SetCoefficient(use, 1.0)
        for key, n in per_rack(problem, t, pattern).items():
            racks[key].SetCoefficient(use, float(n))
        uses.append(use)
    for group, row in zip(problem.groups, rows, strict=True):
        if group.missing_cost is not None:
            missing = solver.IntVar(0.0, float(group.count), "")
            cost(missing, group.missing_cost)
            row.SetCoefficient(missing, 1.0)
    status = solver.Solve()
    if status == pywraplp.Solver.INFEASIBLE:
        return Whole(None, True)
    if status not in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE):
        return Whole(None, False)
    chosen = [c for use, c in zip(uses, columns, strict=True) for _ in range(round(use.solution_value()))]
    return Whole(packing_of(problem, chosen), status == pywraplp.Solver.OPTIMAL)
