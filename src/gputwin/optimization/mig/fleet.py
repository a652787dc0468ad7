"""The best layouts of a fleet for a demand of instance sizes: most value served, then fewest changes, exactly.

GPUs that hold the same are interchangeable, so the program counts GPUs per (what they hold now, what they hold next) and its
size does not grow with the fleet. An instance that is in use stays where it is; everything else may be cut anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gputwin.core.errors import UserError
from gputwin.optimization.mig.layouts import Layout, Mix, Slot, is_legal, layouts, maximal_layouts, mix_of
from gputwin.simulation.mig_profiles import MigGpu


@dataclass(frozen=True)
class CutGpu:
    """One GPU as it is: its instances and those of them in use."""

    layout: Layout = ()
    busy: frozenset[Slot] = frozenset()


@dataclass(frozen=True)
class FleetPlan:
    """What each GPU becomes, what is served of the demand, and a bound on the value that none can exceed."""

    gpu: MigGpu
    before: tuple[CutGpu, ...]
    after: tuple[Layout, ...]
    demand: dict[str, int]
    value: int
    bound: int
    values: dict[str, int] = field(default_factory=dict)

    @property
    def served(self) -> dict[str, int]:
        """Return how many instances of each profile are there for the demand."""
        have: Counter[str] = Counter()
        for layout in self.after:
            have.update(name for name, _ in layout)
        return {name: min(n, have[name]) for name, n in self.demand.items()}

    @property
    def created(self) -> int:
        """Return the instances to create."""
        return sum(len(set(a) - set(b.layout)) for a, b in zip(self.after, self.before, strict=True))

    @property
    def destroyed(self) -> int:
        """Return the instances to destroy."""
        return sum(len(set(b.layout) - set(a)) for a, b in zip(self.after, self.before, strict=True))

    @property
    def gpus_used(self) -> int:
        """Return the GPUs with at least one instance."""
        return sum(1 for layout in self.after if layout)

    @property
    def gpus_changed(self) -> int:
        """Return the GPUs that are cut anew."""
        return sum(1 for a, b in zip(self.after, self.before, strict=True) if set(a) != set(b.layout))

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        counts = Counter(mix_of(layout) for layout in self.after)
        return {
            "gpu": self.gpu.name,
            "gpus": len(self.after),
            "gpus_used": self.gpus_used,
            "gpus_changed": self.gpus_changed,
            "demand": self.demand,
            "served": self.served,
            "value": self.value,
            "value_bound": self.bound,
            "is_optimal": self.value >= self.bound,
            "instances_created": self.created,
            "instances_destroyed": self.destroyed,
            "needs_reset": self.gpu.needs_reset and any(not b.layout for b in self.before) and self.created > 0,
            "mixes": [{"mix": dict(mix), "gpus": n} for mix, n in sorted(counts.items())],
        }


def plan_fleet(
    gpu: MigGpu,
    fleet: Sequence[CutGpu] | int,
    demand: Mapping[str, int],
    *,
    values: Mapping[str, int] | None = None,
    seconds: float = 10.0,
    seed: int = 0,
) -> FleetPlan:
    """Return layouts that serve the most value; among those the fewest instances created and destroyed, then GPUs used.

    `values` weigh the profiles (their compute slices where not given). `fleet` is the present state, or a number of GPUs
    that are not cut yet. Only instances that the demand asks for are created.
    """
    before = tuple([CutGpu()] * fleet if isinstance(fleet, int) else fleet)
    if not before:
        raise UserError("a fleet needs at least one GPU")
    for i, one in enumerate(before):
        if not is_legal(gpu, one.layout):
            raise UserError(f"GPU {i}: {dict(mix_of(one.layout))} is no legal layout of {gpu.name}")
        if not one.busy <= set(one.layout):
            raise UserError(f"GPU {i}: an instance is said to be in use that is not there")
    names = tuple(sorted(gpu.profile(n).name for n, count in demand.items() if count))
    worth = {n: (values or {}).get(n, gpu.profile(n).compute_slices) for n in names}
    kinds = Counter((one.layout, one.busy) for one in before)
    moves = {kind: _moves(gpu, kind, names) for kind in kinds}
    chosen, value, bound = _solve(kinds, moves, demand, worth, seconds, seed)
    after: list[Layout] = []
    for one in before:
        options = chosen[one.layout, one.busy]
        layout = next(iter(options))
        options[layout] -= 1
        if not options[layout]:
            del options[layout]
        after.append(layout)
    return FleetPlan(gpu, before, tuple(after), dict(demand), value, bound, dict(worth))


Kind = tuple[Layout, frozenset[Slot]]


def _moves(gpu: MigGpu, kind: Kind, names: tuple[str, ...]) -> list[tuple[Layout, int]]:
    """Return (layout, instances created or destroyed): of each mix the layout nearest to the present one."""
    layout, busy = kind
    now = set(layout)
    # What is there already may stay, wanted or not; what is created is wanted.
    allowed = tuple(sorted({*names, *(name for name, _ in layout)}))
    best: dict[Mix, tuple[int, Layout]] = {mix_of(layout): (0, layout)}
    for target in layouts(gpu, allowed):
        there = set(target)
        if busy <= there and all(name in names for name, _ in there - now):
            cost = len(there ^ now)
            mix = mix_of(target)
            if mix not in best or cost < best[mix][0]:
                best[mix] = (cost, target)
    return [(target, cost) for cost, target in best.values()]


def _solve(
    kinds: Counter[Kind],
    moves: Mapping[Kind, list[tuple[Layout, int]]],
    demand: Mapping[str, int],
    worth: Mapping[str, int],
    seconds: float,
    seed: int,
) -> tuple[dict[Kind, Counter[Layout]], int, int]:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    uses: dict[tuple[Kind, Layout], Any] = {}
    supply: dict[str, list[Any]] = {name: [] for name in worth}
    changes: list[Any] = []
    for kind, count in kinds.items():
        own = []
        for layout, cost in moves[kind]:
            use = model.new_int_var(0, count, "")
            uses[kind, layout] = use
            own.append(use)
            # GPUs in use count least of all, after every change.
            changes.append((2 * cost + (1 if layout else 0)) * use)
            for name, n in mix_of(layout):
                if name in supply:
                    supply[name].append(n * use)
        model.add(sum(own) == count)
    served = {}
    for name, terms in supply.items():
        served[name] = model.new_int_var(0, int(demand[name]), "")
        model.add(served[name] <= sum(terms))
    most = 1 + 2 * sum(count * max((cost for _, cost in moves[k]), default=0) for k, count in kinds.items())
    most += sum(kinds.values())
    total = sum(worth[n] * v for n, v in served.items())
    model.maximize(most * total - sum(changes))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise UserError(f"no layouts found within {seconds:g} s; give more time")
    value = sum(worth[n] * solver.value(v) for n, v in served.items())
    bound = value if status == cp_model.OPTIMAL else int(solver.best_objective_bound + most) // most
    chosen: dict[Kind, Counter[Layout]] = {kind: Counter() for kind in kinds}
    for (kind, layout), use in uses.items():
        if solver.value(use):
            chosen[kind][layout] += solver.value(use)
    return chosen, value, bound


def fewest_gpus(gpu: MigGpu, demand: Mapping[str, int], *, seconds: float = 10.0) -> tuple[int, int]:
    """Return the fewest GPUs that serve all of the demand, and a bound none can be below."""
    from ortools.sat.python import cp_model

    names = tuple(sorted(gpu.profile(n).name for n, count in demand.items() if count))
    if not names:
        return 0, 0
    model = cp_model.CpModel()
    most = sum(demand.values())
    mixes = sorted({mix_of(layout) for layout in maximal_layouts(gpu, names)})
    uses = [model.new_int_var(0, most, "") for _ in mixes]
    for name in names:
        model.add(sum(dict(mix).get(name, 0) * use for mix, use in zip(mixes, uses, strict=True)) >= demand[name])
    model.minimize(sum(uses))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise UserError(f"no layouts found within {seconds:g} s; give more time")
    return round(solver.objective_value), round(solver.best_objective_bound)
