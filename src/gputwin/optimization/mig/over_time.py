"""Layouts of a fleet over several periods: value served against the cost of cutting GPUs anew, as one exact program.

A GPU's state is any legal layout with its places. From one period to the next, GPUs flow through a graph of layouts: first
instances are destroyed one by one, then others created one by one, each at its cost. The cheapest path between two layouts
destroys and creates exactly what they do not share, so neither pairs of layouts nor single GPUs need be counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gputwin.core.errors import InputError, UserError, shorten
from gputwin.optimization.mig.layouts import Layout, is_legal, layouts, mix_of
from gputwin.simulation.mig_profiles import MigGpu


@dataclass(frozen=True)
class Periods:
    """The layout of each GPU in each period, what is served, and the objective next to its bound."""

    gpu: MigGpu
    gpus: tuple[tuple[Layout, ...], ...]
    served: tuple[dict[str, int], ...]
    changes: tuple[int, ...]
    """Instances destroyed and created at the start of each period; none in the first of a fleet that is not cut yet."""
    objective: int
    bound: int

    @property
    def layouts(self) -> tuple[Counter[Layout], ...]:
        """Return the GPUs of each layout in each period."""
        return tuple(Counter(period) for period in self.gpus)

    def to_json(self, demands: Sequence[Mapping[str, int]]) -> dict[str, Any]:
        """Return the plan as plain data, each period next to its demand."""
        rows = zip(demands, self.served, self.changes, self.layouts, strict=True)
        return {
            "objective": self.objective,
            "bound": self.bound,
            "is_optimal": self.objective >= self.bound,
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
    present: Sequence[Layout] | None = None,
    seconds: float = 20.0,
) -> Periods:
    """Return layouts per period with the most Σ value served − change_cost × instances destroyed and created.

    `present` is the layout of each GPU before the first period; without it the first period's cutting costs nothing.
    """
    if not demands or gpus < 1:
        raise UserError("give at least one GPU and one period of demand")
    if present is not None and (len(present) != gpus or not all(is_legal(gpu, layout) for layout in present)):
        raise UserError(f"the present layouts must be legal ones of {gpus} GPUs")
    names = tuple(sorted({gpu.profile(n).name for d in demands for n in d}))
    worth = {n: (values or {}).get(n, gpu.profile(n).compute_slices) for n in names}
    there = {name for layout in present or () for name, _ in layout}
    states = layouts(gpu, tuple(sorted({*names, *there})))
    before = None if present is None else [tuple(sorted(s, key=lambda slot: slot[1])) for s in present]
    counts, bound = _Program(states, gpus, demands, worth, change_cost, before).solve(seconds)
    fleet = _numbered(states, counts, before)
    met = tuple(
        {n: min(int(demand.get(n, 0)), sum(dict(mix_of(s)).get(n, 0) for s in period)) for n in names}
        for demand, period in zip(demands, fleet, strict=True)
    )
    past = (fleet[0] if before is None else tuple(before), *fleet)
    changes = tuple(
        sum(len(set(a) ^ set(b)) for a, b in zip(past[t], past[t + 1], strict=True)) for t in range(len(fleet))
    )
    objective = sum(worth[n] * k for served in met for n, k in served.items()) - change_cost * sum(changes)
    return Periods(gpu, fleet, met, changes, objective, max(bound, objective))


class _Program:
    """The program as sparse rows: GPUs per state and period, flows between periods, and what is served."""

    def __init__(
        self,
        states: Sequence[Layout],
        gpus: int,
        demands: Sequence[Mapping[str, int]],
        worth: Mapping[str, int],
        change_cost: int,
        present: Sequence[Layout] | None,
    ) -> None:
        self.cost: list[float] = []
        self.most: list[float] = []
        self.is_whole: list[int] = []
        self.cells: list[tuple[int, int, float]] = []
        self.low: list[float] = []
        self.high: list[float] = []
        self.states, self.present = states, present
        number = {frozenset(s): i for i, s in enumerate(states)}
        self.steps = [(i, number[frozenset(s) - {slot}]) for i, s in enumerate(states) for slot in s]
        self.held = [[self._variable(0.0, gpus, is_whole=True) for _ in states] for _ in demands]
        for t, demand in enumerate(demands):
            self._row(dict.fromkeys(self.held[t], 1.0), gpus, gpus)
            for name, value in worth.items():
                served = self._variable(-float(value), int(demand.get(name, 0)))
                supply = {v: -float(n) for s, v in zip(states, self.held[t], strict=True) if (n := _count(s, name))}
                self._row({served: 1.0, **supply}, -np.inf, 0.0)
        if present is not None:
            now = Counter(present)
            self._flow(now, self.held[0], gpus, change_cost)
        for t in range(1, len(demands)):
            self._flow(self.held[t - 1], self.held[t], gpus, change_cost)

    def _variable(self, cost: float, most: float, *, is_whole: bool = False) -> int:
        self.cost.append(cost)
        self.most.append(most)
        self.is_whole.append(int(is_whole))
        return len(self.cost) - 1

    def _row(self, terms: Mapping[int, float], low: float, high: float) -> None:
        self.cells += [(len(self.low), v, a) for v, a in terms.items()]
        self.low.append(low)
        self.high.append(high)

    def _flow(self, source: Sequence[int] | Counter[Layout], target: Sequence[int], gpus: int, cost: int) -> None:
        """Let GPUs go from the states of one period, through removals, then additions, to those of the next."""
        down: list[dict[int, float]] = [{} for _ in self.states]
        up: list[dict[int, float]] = [{} for _ in self.states]
        for larger, smaller in self.steps:
            destroy, create = self._variable(cost, gpus), self._variable(cost, gpus)
            down[larger][destroy], down[smaller][destroy] = -1.0, 1.0
            up[smaller][create], up[larger][create] = -1.0, 1.0
        for i in range(len(self.states)):
            across = self._variable(0.0, gpus)
            down[i][across], up[i][across] = -1.0, 1.0
            up[i][target[i]] = -1.0
            if isinstance(source, Counter):
                there = -float(source[self.states[i]])
                self._row(down[i], there, there)
            else:
                self._row({**down[i], source[i]: 1.0}, 0.0, 0.0)
            self._row(up[i], 0.0, 0.0)

    def solve(self, seconds: float) -> tuple[list[list[int]], int]:
        """Return the GPUs per state in each period, and a bound on the objective that none can exceed."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_matrix

        rows, columns, amounts = zip(*self.cells, strict=True)
        matrix = coo_matrix((amounts, (rows, columns)), shape=(len(self.low), len(self.cost))).tocsr()
        found = milp(
            np.array(self.cost),
            integrality=np.array(self.is_whole),
            bounds=Bounds(np.zeros(len(self.cost)), np.array(self.most)),
            constraints=LinearConstraint(matrix, np.array(self.low), np.array(self.high)),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        if found.x is None:
            raise UserError(f"no layouts found within {seconds:g} s; give more time")
        counts = [[round(float(found.x[v])) for v in period] for period in self.held]
        return counts, int(np.floor(-found.mip_dual_bound + 1e-6))


def _count(layout: Layout, name: str) -> int:
    return sum(1 for profile, _ in layout if profile == name)


def _numbered(
    states: Sequence[Layout], counts: Sequence[Sequence[int]], before: Sequence[Layout] | None
) -> tuple[tuple[Layout, ...], ...]:
    """Return the layout of each GPU in each period, so that the fewest instances change from each to the next."""
    fleet: list[tuple[Layout, ...]] = []
    last = before
    for period in counts:
        wanted = {s: n for s, n in zip(states, period, strict=True) if n}
        if last is None:
            fleet.append(tuple(s for s, n in wanted.items() for _ in range(n)))
        else:
            fleet.append(_nearest(last, wanted))
        last = fleet[-1]
    return tuple(fleet)


def _nearest(last: Sequence[Layout], wanted: Mapping[Layout, int]) -> tuple[Layout, ...]:
    """Return a layout for each GPU so that so many get each, with the fewest instances destroyed and created."""
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    have = Counter(last)
    sources, targets = list(have), list(wanted)
    flow = SimpleMinCostFlow()
    arcs = {
        (a, b): flow.add_arc_with_capacity_and_unit_cost(a, len(sources) + b, have[one], len(set(one) ^ set(other)))
        for a, one in enumerate(sources)
        for b, other in enumerate(targets)
    }
    for a, one in enumerate(sources):
        flow.set_node_supply(a, have[one])
    for b, other in enumerate(targets):
        flow.set_node_supply(len(sources) + b, -wanted[other])
    status = flow.solve()
    assert status == flow.OPTIMAL
    given = {
        one: [t for b, t in enumerate(targets) for _ in range(flow.flow(arcs[a, b]))] for a, one in enumerate(sources)
    }
    return tuple(given[layout].pop() for layout in last)
