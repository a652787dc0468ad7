"""Layouts of a fleet against trying everything; running instances stay; files read and written; changes over time."""

from __future__ import annotations

from collections import Counter
from itertools import combinations_with_replacement, pairwise, product
from pathlib import Path

import numpy as np
import pytest
import yaml

from gputwin.core.errors import InputError, UserError
from gputwin.optimization.mig.fleet import CutGpu, fewest_gpus, plan_fleet
from gputwin.optimization.mig.layouts import is_legal, layouts, maximal_layouts, mix_of
from gputwin.optimization.mig.over_time import plan_periods
from gputwin.optimization.mig.parted import parted_text, place_mix, read_parted
from gputwin.simulation.mig_profiles import mig_gpu

A30, A100 = mig_gpu("A30"), mig_gpu("A100-40GB")
SIZES = ("1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")


def test_the_most_value_is_served_as_trying_everything_finds() -> None:
    rng = np.random.default_rng(3)
    for gpu, names, gpus in ((A30, ("1g.6gb", "2g.12gb", "4g.24gb"), 3), (A100, SIZES, 2)):
        mixes = {mix_of(layout) for layout in maximal_layouts(gpu, names)}
        for _ in range(15):
            demand = {n: int(rng.integers(0, 5)) for n in names}
            values = {n: int(rng.integers(1, 9)) for n in names}
            best = max(
                sum(values[n] * min(demand[n], sum(dict(m).get(n, 0) for m in chosen)) for n in names)
                for chosen in combinations_with_replacement(mixes, gpus)
            )
            plan = plan_fleet(gpu, gpus, demand, values=values)
            assert all(is_legal(gpu, layout) for layout in plan.after)
            assert sum(values[n] * s for n, s in plan.served.items()) == plan.value == plan.bound == best


def test_the_fewest_gpus_as_trying_everything_finds() -> None:
    rng = np.random.default_rng(5)
    mixes = sorted({mix_of(layout) for layout in maximal_layouts(A100, SIZES[:4])})
    for _ in range(12):
        demand = {n: int(rng.integers(0, 4)) for n in SIZES[:4]}
        found, bound = fewest_gpus(A100, demand)
        least = next(
            k
            for k in range(12)
            if any(
                all(sum(dict(m).get(n, 0) for m in chosen) >= demand[n] for n in demand)
                for chosen in combinations_with_replacement(mixes, k)
            )
        )
        assert found == bound == least


def test_running_instances_stay_and_changes_are_as_few_as_can_be() -> None:
    rng = np.random.default_rng(8)
    every = layouts(A30, ("1g.6gb", "2g.12gb", "4g.24gb"))
    for _ in range(15):
        before = []
        for _ in range(2):
            layout = every[int(rng.integers(len(every)))]
            before.append(CutGpu(layout, frozenset(slot for slot in layout if rng.random() < 0.4)))
        demand = {"1g.6gb": int(rng.integers(0, 4)), "2g.12gb": int(rng.integers(0, 3)), "4g.24gb": 1}
        plan = plan_fleet(A30, before, demand)
        for one, layout in zip(before, plan.after, strict=True):
            assert one.busy <= set(layout)
        wanted = {n for n, count in demand.items() if count}
        best: tuple[int, int] | None = None
        for targets in product(every, repeat=2):
            ok = all(
                one.busy <= set(t) and all(n in wanted for n, _ in set(t) - set(one.layout))
                for one, t in zip(before, targets, strict=True)
            )
            if ok:
                have = Counter(n for t in targets for n, _ in t)
                value = sum(A30.profile(n).compute_slices * min(c, have[n]) for n, c in demand.items())
                changes = sum(len(set(t) ^ set(one.layout)) for one, t in zip(before, targets, strict=True))
                key = (-value, changes)
                best = key if best is None else min(best, key)
        assert best == (-plan.value, plan.created + plan.destroyed)


def test_a_thousand_gpus_are_planned_exactly() -> None:
    demand = {"1g.5gb": 1500, "2g.10gb": 700, "3g.20gb": 500, "4g.20gb": 150, "7g.40gb": 100}
    plan = plan_fleet(A100, 1000, demand)
    assert plan.value == plan.bound
    assert plan.served == demand
    assert plan.gpus_used == fewest_gpus(A100, demand)[0] <= 1000


def test_what_it_writes_it_reads_and_mig_parted_rules_are_understood(tmp_path: Path) -> None:
    plan = plan_fleet(A100, 5, {"1g.5gb": 9, "3g.20gb": 4})
    path = tmp_path / "parted.yaml"
    path.write_text(parted_text({"gputwin": plan.after}))
    assert yaml.safe_load(path.read_text())["version"] == "v1"
    again = read_parted(path, A100, 5)
    assert [mix_of(a) for a in again] == [mix_of(a) for a in plan.after]
    balanced = "version: v1\nmig-configs:\n  all-balanced:\n  - devices: all\n    mig-enabled: true\n"
    path.write_text(balanced + "    mig-devices: {'1g.5gb': 2, '2g.10gb': 1, '3g.20gb': 1}\n")
    assert {mix_of(a) for a in read_parted(path, A100, 3)} == {(("1g.5gb", 2), ("2g.10gb", 1), ("3g.20gb", 1))}
    path.write_text(balanced + "    mig-devices: {'7g.40gb': 2}\n")
    with pytest.raises(InputError, match="do not fit on one A100-40GB"):
        read_parted(path, A100, 3)
    path.write_text(balanced + "    mig-devices: {'9g.40gb': 2}\n")
    with pytest.raises(InputError, match="no profile"):
        read_parted(path, A100, 3)


def test_mixes_are_placed_or_refused() -> None:
    layout = place_mix(A100, (("1g.5gb", 4), ("3g.20gb", 1)))
    assert layout is not None
    assert is_legal(A100, layout)
    assert place_mix(A100, (("4g.20gb", 2),)) is None
    with pytest.raises(UserError, match="no MIG profile"):
        plan_fleet(A100, 1, {"5g.5gb": 1})


def test_dear_changes_keep_layouts_and_free_ones_follow_demand() -> None:
    demands = [{"1g.6gb": 8, "4g.24gb": 0}, {"1g.6gb": 0, "4g.24gb": 2}, {"1g.6gb": 8, "4g.24gb": 0}]
    free = plan_periods(A30, 2, demands, change_cost=0)
    dear = plan_periods(A30, 2, demands, change_cost=100)
    assert [sum(s.values()) for s in free.served] == [8, 2, 8]
    assert sum(dear.changes) == 0
    assert free.objective == free.bound == 24
    states = maximal_layouts(A30, ("1g.6gb", "4g.24gb"))
    for cost in (1, 2):
        best = -(10**9)
        for path in product(combinations_with_replacement(range(len(states)), 2), repeat=3):
            best = max(best, _value(states, path, demands, cost))
        assert plan_periods(A30, 2, demands, change_cost=cost).objective == best


def _value(states: tuple, path: tuple, demands: list, cost: int) -> int:
    total = 0
    for chosen, demand in zip(path, demands, strict=True):
        have = Counter(n for i in chosen for n, _ in states[i])
        total += sum(A30.profile(n).compute_slices * min(c, have[n]) for n, c in demand.items())
    for one, two in pairwise(path):
        distance = [[len(set(states[a]) ^ set(states[b])) for b in two] for a in one]
        total -= cost * min(distance[0][0] + distance[1][1], distance[0][1] + distance[1][0])
    return total
