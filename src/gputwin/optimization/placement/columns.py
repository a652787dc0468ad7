"""Column generation: the linear relaxation over all patterns, and a valid lower bound.

The bound is made in integers: for any worth π ≥ 0 of instances, a node of type t holds at most v_t of it, so a packing
costs at least Σ π·count − Σ supply_t·max(0, v_t − cost_t), after π is scaled down until v_t ≤ cost_t on node types of which
there is any number (Farley, "A Note on Bounding a Class of Linear Programming Problems", 1990).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from time import process_time

import numpy as np

from gputwin.optimization.placement.heuristics import Floats, weights_of
from gputwin.optimization.placement.master import Column, Duals, Master
from gputwin.optimization.placement.pricing import Knapsack, Priced, greedy
from gputwin.optimization.placement.problem import Ints, Problem, packing_of

_PRECISION = 10**8
_MOST_ROUNDS = 5000
_EVERYTHING = 1 << 62


@dataclass(frozen=True)
class Proof:
    """The worths that prove the bound: any pattern that a packing below a given objective uses is worth enough."""

    bound: Fraction
    worth: tuple[Ints, ...] = ()
    """Integer worth of each choice per node type, in units of `scale` per unit of cost."""
    shrink: Fraction = Fraction(1)
    node_prices: tuple[Fraction, ...] = ()
    """Cost of a node of each type plus what its short supply adds, scaled."""
    scale: int = 1

    def least_worth(self, node_type: int, objective: int) -> int:
        """Return the least worth of a pattern of the type in any packing with at most this objective."""
        if not self.shrink:
            return -_EVERYTHING
        slack = objective * self.scale - self.bound * self.scale
        return math.ceil((self.node_prices[node_type] - slack) / self.shrink)


@dataclass(frozen=True)
class Generated:
    """What column generation ended with."""

    columns: tuple[Column, ...]
    value: float
    """Objective of the linear program over the columns."""
    nodes: Floats
    bound: int
    proof: Proof
    rounds: int
    is_complete: bool
    """Whether no pattern can improve the linear program."""
    is_short: bool


def generate(
    problem: Problem,
    columns: Iterable[Column] = (),
    *,
    deadline: float = math.inf,
    exact: bool = True,
    seed: int = 0,
    enough: int | None = None,
) -> Generated:
    """Return the linear relaxation over all patterns, as far as it gets until `deadline` (process CPU seconds).

    With `exact` off only quick pricing is used (greedy, coarse tables): without a bound. A bound beyond `enough` ends it.
    """
    master = Master(problem)
    master.add(columns)
    knapsacks = [Knapsack(problem, t, seed) for t in range(len(problem.types))]
    dearest = max([1, *(t.cost for t in problem.types)])
    scale = max(_PRECISION // dearest, 1)
    best = Proof(Fraction(0))
    rng = np.random.default_rng(seed)
    weights = _weightings(problem, rng)
    by_table = all(k.by_table for k in knapsacks)
    stops_early = not by_table or any(k.is_wide for k in knapsacks)
    if by_table and exact:
        master.add_exchanges()
    relaxed = master.solve()
    rounds, complete = 0, False
    while rounds < _MOST_ROUNDS and process_time() < deadline:
        rounds += 1
        worth = [_worth(problem, t, relaxed.duals, scale) for t in range(len(problem.types))]
        if by_table:
            quick = _coarse_columns(problem, knapsacks, worth, scale)
        else:
            quick = _greedy_columns(problem, worth, weights, scale)
        if not master.add(quick):
            if not exact:
                break
            proof, priced = _price_all(problem, knapsacks, worth, relaxed.duals, scale, deadline)
            if proof.bound > best.bound:
                best = proof
            if enough is not None and best.bound > enough:
                break
            improving = []
            for t, p in enumerate(priced):
                above = problem.types[t].cost * scale + _supply_price(master, t, scale) + 2
                if p.value > above:
                    improving += [
                        (t, pattern) for pattern in (p.pattern, *knapsacks[t].more(worth[t], p.pattern, above))
                    ]
            # Exact tables that are cheap go on to the end: the better the bound, the fewer patterns can reach it.
            reached = stops_early and not relaxed.is_short
            reached = reached and round_up(problem, best.bound) >= round_up(problem, relaxed.value - 1e-6)
            is_end = reached or not master.add(improving)
            if is_end and not master.exchanges:
                complete = True
                break
            if is_end:
                master.drop_exchanges()
        relaxed = master.solve()
    return Generated(
        tuple(master.columns),
        relaxed.value,
        relaxed.nodes,
        round_up(problem, best.bound),
        best,
        rounds,
        complete,
        relaxed.is_short,
    )


def _weightings(problem: Problem, rng: np.random.Generator) -> list[Floats]:
    """Return weights of resources to price greedily by: as scarce, each alone, equal, and random ones."""
    wide = len(problem.resources)
    if wide == 1:
        return [np.ones(1)]
    fixed = [weights_of(problem), np.full(wide, 1 / wide), *np.eye(wide)]
    return [*fixed, *rng.dirichlet(np.ones(wide), 4)]


def _worth(problem: Problem, node_type: int, duals: Duals, scale: int) -> Ints:
    """Return the integer worth of one instance of each choice on a node of the type."""
    prices = np.rint(duals.groups * scale).astype(np.int64)
    for g, group in enumerate(problem.groups):
        if group.missing_cost is not None:
            prices[g] = min(int(prices[g]), group.missing_cost * scale)
    worth = prices[problem.group_of]
    rack = problem.types[node_type].rack
    if rack is not None and duals.racks:
        owners = [problem.groups[g].owner for g in problem.group_of]
        worth = worth - np.array([_rack_price(duals, (o, rack), scale) for o in owners], np.int64)
    return worth


def _rack_price(duals: Duals, key: tuple[str, str], scale: int) -> int:
    return math.ceil(duals.racks.get(key, 0.0) * scale)


def _supply_price(master: Master, node_type: int, scale: int) -> float:
    """Return what the linear program pays, scaled, for one more node of a type that is short."""
    row = master.supplies.get(node_type)
    return 0.0 if row is None else max(-row.dual_value(), 0.0) * scale


def _coarse_columns(problem: Problem, knapsacks: Sequence[Knapsack], worth: Sequence[Ints], scale: int) -> list[Column]:
    """Return improving columns from coarse tables, of the node types whose exact table is dear."""
    found: list[Column] = []
    for t, knapsack in enumerate(knapsacks):
        if knapsack.is_wide:
            above = problem.types[t].cost * scale * (1 + 1e-4) + 2
            found += [(t, pattern) for pattern in knapsack.more(worth[t], (), above)]
    return found


def _greedy_columns(problem: Problem, worth: Sequence[Ints], weights: Sequence[Floats], scale: int) -> list[Column]:
    found = []
    for t, kind in enumerate(problem.types):
        for pattern in greedy(problem, t, worth[t], weights):
            value = sum(int(worth[t][c]) * n for c, n in pattern)
            if value > kind.cost * scale * (1 + 1e-7) + 2:
                found.append((t, pattern))
    return found


def _price_all(
    problem: Problem,
    knapsacks: Sequence[Knapsack],
    worth: Sequence[Ints],
    duals: Duals,
    scale: int,
    deadline: float,
) -> tuple[Proof, list[Priced]]:
    left = max(deadline - process_time(), 0.1)
    priced = [knapsack.best(w, left) for knapsack, w in zip(knapsacks, worth, strict=True)]
    shrink = Fraction(1)
    for kind, p in zip(problem.types, priced, strict=True):
        if kind.supply is None and p.upper > kind.cost * scale:
            shrink = min(shrink, Fraction(kind.cost * scale, p.upper))
    prices = np.rint(duals.groups * scale).astype(np.int64).tolist()
    for g, group in enumerate(problem.groups):
        if group.missing_cost is not None:
            prices[g] = min(prices[g], group.missing_cost * scale)
    total = sum(p * int(n) for p, n in zip(prices, problem.counts, strict=True))
    total -= sum(_rack_price(duals, key, scale) * limit for key, limit in problem.rack_limits.items())
    bound = shrink * total
    node_prices = []
    for kind, p in zip(problem.types, priced, strict=True):
        short = Fraction(0) if kind.supply is None else max(Fraction(0), shrink * p.upper - kind.cost * scale)
        node_prices.append(kind.cost * scale + short)
        bound -= (kind.supply or 0) * short
    return Proof(max(bound / scale, Fraction(0)), tuple(worth), shrink, tuple(node_prices), scale), priced


def round_up(problem: Problem, value: Fraction | float) -> int:
    """Return the least possible objective that is not below `value`: a multiple of what all costs are multiples of."""
    costs = [t.cost for t in problem.types] + [g.missing_cost for g in problem.groups if g.missing_cost]
    step = reduce(math.gcd, costs, 0) or 1
    return -(-math.ceil(value) // step) * step


def residual(problem: Problem, chosen: Sequence[Column]) -> Problem:
    """Return the problem that is left once these nodes are filled."""
    packing = packing_of(problem, chosen)
    groups = tuple(replace(g, count=m) for g, m in zip(problem.groups, packing.missing, strict=True))
    used = [0] * len(problem.types)
    for t, _ in chosen:
        used[t] += 1
    types = tuple(
        t if t.supply is None else replace(t, supply=max(t.supply - n, 0))
        for t, n in zip(problem.types, used, strict=True)
    )
    return replace(problem, groups=groups, types=types)
