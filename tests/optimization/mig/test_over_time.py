"""Layouts over several periods: as trying every layout finds; from the present layouts on; GPUs keep their numbers."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement, pairwise, permutations

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.optimization.mig.layouts import is_legal, layouts, maximal_layouts
from gputwin.optimization.mig.over_time import plan_periods
from gputwin.simulation.mig_profiles import mig_gpu

A30, A100 = mig_gpu("A30"), mig_gpu("A100-40GB")
A30_SIZES = ("1g.6gb", "2g.12gb", "4g.24gb")


def _by_trying_all(gpu, gpus, demands, values, cost, present=None) -> int:
    """Return the best objective over every legal layout of every GPU in every period."""
    names = sorted({n for d in demands for n in d})
    every = [frozenset(layout) for layout in layouts(gpu, tuple({*names, *(n for p in present or () for n, _ in p)}))]
    fleets = list(combinations_with_replacement(every, gpus))

    def worth(fleet, demand) -> int:
        have = Counter(n for layout in fleet for n, _ in layout)
        return sum(values[n] * min(c, have[n]) for n, c in demand.items())

    def distance(one, other) -> int:
        return min(sum(len(a ^ b) for a, b in zip(one, order, strict=True)) for order in permutations(other))

    best = {f: worth(f, demands[0]) - (0 if present is None else cost * distance(present, f)) for f in fleets}
    for demand in demands[1:]:
        best = {f: worth(f, demand) + max(v - cost * distance(g, f) for g, v in best.items()) for f in fleets}
    return max(best.values())


def test_an_instance_nobody_asked_for_need_not_be_created() -> None:
    """One GPU: 7g is worth 7; then it goes and one 1g comes, worth 5 for two changes."""
    plan = plan_periods(A100, 1, [{"7g.40gb": 1}, {"1g.5gb": 1}], change_cost=1, values={"1g.5gb": 5})
    assert plan.objective == plan.bound == 7 + 5 - 2
    assert plan.changes == (0, 2)


@pytest.mark.parametrize("seed", range(12))
def test_the_best_over_time_is_what_trying_everything_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gpus = 1 + seed % 2
    demands = [{n: int(rng.integers(0, 3)) for n in A30_SIZES} for _ in range(3)]
    values = {n: int(rng.integers(1, 7)) for n in A30_SIZES}
    cost = int(rng.integers(0, 4))
    present = None
    if seed % 3 == 0:
        every = layouts(A30, A30_SIZES)
        present = tuple(every[int(rng.integers(len(every)))] for _ in range(gpus))
    plan = plan_periods(A30, gpus, demands, change_cost=cost, values=values, present=present)
    sets = None if present is None else tuple(map(frozenset, present))
    assert plan.objective == plan.bound == _by_trying_all(A30, gpus, demands, values, cost, sets)


def test_each_gpu_keeps_its_number_and_changes_add_up() -> None:
    demands = [{"3g.20gb": 4, "1g.5gb": 2}, {"1g.5gb": 20}, {"3g.20gb": 4}]
    plan = plan_periods(A100, 4, demands, change_cost=1, values={"3g.20gb": 9, "1g.5gb": 2})
    assert all(is_legal(A100, layout) for period in plan.gpus for layout in period)
    for period, counted, served, demand in zip(plan.gpus, plan.layouts, plan.served, demands, strict=True):
        assert Counter(period) == counted
        have = Counter(n for layout in period for n, _ in layout)
        assert served == {n: min(demand.get(n, 0), have[n]) for n in served}
    changed = [sum(len(set(a) ^ set(b)) for a, b in zip(*two, strict=True)) for two in pairwise(plan.gpus)]
    assert plan.changes == (0, *changed)
    values = {"3g.20gb": 9, "1g.5gb": 2}
    assert plan.objective == sum(values[n] * k for s in plan.served for n, k in s.items()) - sum(changed)


def test_the_present_layouts_are_paid_for_from_the_first_period_on() -> None:
    whole = next(layout for layout in maximal_layouts(A30, A30_SIZES) if layout[0][0] == "4g.24gb")
    plan = plan_periods(A30, 1, [{"1g.6gb": 2}], change_cost=1, values={"1g.6gb": 2}, present=(whole,))
    assert plan.changes == (3,)
    assert plan.objective == 1
    with pytest.raises(UserError, match="2 GPUs"):
        plan_periods(A30, 2, [{"1g.6gb": 2}], present=(whole,))
