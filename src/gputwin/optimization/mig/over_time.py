"""Layouts of a fleet over several periods: value served against the cost of cutting GPUs anew, as one exact program.

GPUs are always fully cut, so a GPU's state is a maximal layout with its places; flows of GPUs between states in
consecutive periods are counted, so neither the fleet's size nor which GPU it is matters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gputwin.core.errors import InputError, UserError, shorten
from gputwin.optimization.mig.layouts import Layout, maximal_layouts, mix_of
from gputwin.simulation.mig_profiles import MigGpu


@dataclass(frozen=True)
class Periods:
    """GPUs per layout in each period, what is served, and the objective beside its bound."""

    layouts: tuple[Counter[Layout], ...]
    served: tuple[dict[str, int], ...]
    changes: tuple[int, ...]
    """Instances destroyed and created at the start of each period; none in the first."""
    objective: int
    bound: int

    def to_json(self, demands: Sequence[Mapping[str, int]]) -> dict[str, Any]:
        """Return the plan as plain data, each period beside its demand."""
        rows = zip(demands, self.served, self.changes, self.layouts, strict=True)
        return {
            "objective": self.objective,
            "bound": self.bound,
            "periods": [
                {
                    "demand": dict(demand),
                    "served": served,
                    "changes": changes,
                    "layouts": [
                        {"layout": [f"{name}@{start}" for name, start in layout], "gpus": n}
                        for layout, n in layouts.most_common()
                    ],
                }
                for demand, served, changes, layouts in rows
            ],
        }


def read_periods(file: Path) -> list[dict[str, int]]:
    """Return the demand of each period from a YAML list of {profile: instances}."""
    import yaml

    remedy = "write a list of periods, each as {1g.5gb: 300, 3g.20gb: 20}"
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"cannot be read ({shorten(error, 120)})", file=file, remedy=remedy) from None
    if not isinstance(data, list) or not data:
        raise InputError("is not a list of periods", file=file, remedy=remedy)
    for k, period in enumerate(data):
        fine = isinstance(period, dict) and all(
            isinstance(name, str) and isinstance(n, int) and not isinstance(n, bool) and n >= 0
            for name, n in period.items()
        )
        if not fine:
            raise InputError(f"period {k + 1} is not {{profile: instances}}", file=file, remedy=remedy)
    return data


def plan_periods(
    gpu: MigGpu,
    gpus: int,
    demands: Sequence[Mapping[str, int]],
    *,
    change_cost: int = 1,
    values: Mapping[str, int] | None = None,
    seconds: float = 20.0,
) -> Periods:
    """Return layouts per period with the most Σ value served − change_cost × instances destroyed and created."""
    from ortools.linear_solver import pywraplp

    if not demands or gpus < 1:
        raise UserError("give at least one GPU and one period of demand")
    names = tuple(sorted({gpu.profile(n).name for d in demands for n in d}))
    worth = {n: (values or {}).get(n, gpu.profile(n).compute_slices) for n in names}
    states = maximal_layouts(gpu, names)
    solver: Any = pywraplp.Solver.CreateSolver("CBC")
    solver.SetTimeLimit(max(int(seconds * 1000), 100))
    goal = solver.Objective()
    goal.SetMaximization()
    held = [[solver.IntVar(0, gpus, "") for _ in states] for _ in demands]
    served: list[dict[str, Any]] = []
    for t, demand in enumerate(demands):
        solver.Add(solver.Sum(held[t]) == gpus)
        served.append({})
        for name in names:
            variable = solver.NumVar(0, int(demand.get(name, 0)), "")
            supply = [dict(mix_of(s)).get(name, 0) * v for s, v in zip(states, held[t], strict=True)]
            solver.Add(variable <= solver.Sum(supply))
            goal.SetCoefficient(variable, worth[name])
            served[t][name] = variable
    flows: list[dict[tuple[int, int], Any]] = []
    for t in range(1, len(demands)):
        moves = {(a, b): solver.NumVar(0, gpus, "") for a in range(len(states)) for b in range(len(states))}
        for i in range(len(states)):
            solver.Add(solver.Sum([moves[i, b] for b in range(len(states))]) == held[t - 1][i])
            solver.Add(solver.Sum([moves[a, i] for a in range(len(states))]) == held[t][i])
        for (a, b), variable in moves.items():
            goal.SetCoefficient(variable, -change_cost * len(set(states[a]) ^ set(states[b])))
        flows.append(moves)
    status = solver.Solve()
    if status not in (pywraplp.Solver.OPTIMAL, pywraplp.Solver.FEASIBLE):
        raise UserError(f"no layouts found within {seconds:g} s; give more time")
    changes = [
        round(sum(v.solution_value() * len(set(states[a]) ^ set(states[b])) for (a, b), v in moves.items()))
        for moves in flows
    ]
    objective = round(goal.Value())
    bound = objective if status == pywraplp.Solver.OPTIMAL else int(goal.BestBound() + 1e-6)
    counted = tuple(
        Counter({s: round(v.solution_value()) for s, v in zip(states, row, strict=True) if v.solution_value() > 0.5})
        for row in held
    )
    met = tuple({n: round(v.solution_value()) for n, v in row.items()} for row in served)
    return Periods(counted, met, (0, *changes), objective, bound)
