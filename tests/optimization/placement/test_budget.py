"""The time budget of a placement is kept, also where shares of GPUs make every step dear."""

from __future__ import annotations

from itertools import product
from time import process_time

import numpy as np

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.optimization.placement.demand import alive, busiest_hour, groups_of, problem_of
from gputwin.optimization.placement.rules import assign_devices
from gputwin.optimization.placement.solve import place
from gputwin.simulation.cluster import cluster_for
from gputwin.traces.locate import open_trace
from tests.optimization.placement.validator import violations


def test_thousands_of_instances_with_shares_are_placed_within_the_budget() -> None:
    trace = open_trace("synthetic:pai2020?jobs=20000")
    groups = groups_of(alive(trace, busiest_hour(trace)))
    problem = problem_of(groups, cluster_for(trace, "pai2020"), is_supply_limited=False)
    assert problem.has_shares
    assert problem.counts.sum() > 10_000
    began = process_time()
    result = place(problem, seconds=2.0)
    assert process_time() - began < 4.0
    assert result.packing is not None
    assert result.packing.is_complete(problem)
    assert violations(problem, result.packing) == []


def test_devices_are_found_for_shares_exactly_where_there_are_some() -> None:
    rng = np.random.default_rng(4)
    outcomes = []
    for _ in range(300):
        devices = int(rng.integers(1, 4))
        shares = sorted(
            rng.choice([1000, 700, 600, 500, 400, 350, 300], int(rng.integers(1, 6))).tolist(), reverse=True
        )
        wanted = tuple((int(milli), 1, 1) for milli in shares)
        found = assign_devices(devices, wanted)
        possible = any(_holds(shares, home, devices) for home in product(range(devices), repeat=len(shares)))
        assert (found is not None) == possible
        if found is not None:
            assert _holds(shares, [d for (d,) in found], devices)
        outcomes.append(possible)
    assert 50 < sum(outcomes) < 250


def _holds(shares: list[int], home: tuple[int, ...] | list[int], devices: int) -> bool:
    load = np.bincount(home, weights=shares, minlength=devices)
    return bool((load <= WHOLE_GPU_MILLI).all())


def test_instances_of_several_shared_gpus_take_different_devices() -> None:
    # Two of (2 × 600) and two of (2 × 400) fill four devices only if pairs are mixed.
    found = assign_devices(4, ((600, 2, 2), (400, 2, 2)))
    assert found is not None
    assert all(len(set(held)) == 2 for held in found)
    load = [0] * 4
    for milli, held in zip((600, 600, 400, 400), found, strict=True):
        for device in held:
            load[device] += milli
    assert load == [1000] * 4
    assert assign_devices(4, ((600, 2, 2), (400, 2, 2), (50, 1, 1))) is None
