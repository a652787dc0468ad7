"""Small problems: CP-SAT, column generation and trying everything agree; every rule holds; bounds are valid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.optimization.placement.exact import solve_exactly
from gputwin.optimization.placement.heuristics import SCORES, decreasing
from gputwin.optimization.placement.problem import InstanceGroup, NodeType, Problem
from gputwin.optimization.placement.solve import place
from tests.optimization.placement.brute import optimum
from tests.optimization.placement.validator import violations


def random_problem(seed: int) -> Problem:
    """Return a tiny problem with some of: several types, limits, ways to run, optional instances, shares, conflicts."""
    rng = np.random.default_rng(seed)
    wide = int(rng.integers(1, 4))
    shares = seed % 5 == 0
    types = []
    for t in range(int(rng.integers(1, 3))):
        capacity = rng.integers(6, 13, wide).tolist()
        supply = int(rng.integers(2, 6)) if rng.random() < 0.3 else None
        types.append(NodeType(f"t{t}", tuple(capacity), int(rng.integers(1, 6)), supply, gpus=2))
    groups = []
    for g in range(int(rng.integers(2, 4))):
        ways = tuple(tuple(rng.integers(0, 7, wide).tolist()) for _ in range(2 if rng.random() < 0.15 else 1))
        groups.append(
            InstanceGroup(
                f"g{g}",
                ways,
                int(rng.integers(1, 4)),
                application="shared" if rng.random() < 0.3 else "",
                max_per_node=int(rng.integers(1, 3)) if rng.random() < 0.4 else None,
                node_types=frozenset({"t0"}) if rng.random() < 0.2 else None,
                missing_cost=int(rng.integers(1, 5)) if rng.random() < 0.25 else None,
                gpus=1 if shares else 0,
                gpu_milli=int(rng.choice([1000, 600, 500, 400, 300])) if shares else 1000,
            )
        )
    conflicts = frozenset({frozenset({"g0", "g1"})}) if rng.random() < 0.15 else frozenset()
    return Problem(tuple(f"r{r}" for r in range(wide)), tuple(groups), tuple(types), conflicts)


@pytest.mark.parametrize("block", range(6))
def test_cp_sat_column_generation_and_brute_force_agree(block: int) -> None:
    for seed in range(block * 50, block * 50 + 50):
        problem = random_problem(seed)
        least = optimum(problem)
        columns = place(problem, method="columns")
        packing, bound, impossible = solve_exactly(problem, 20.0)
        if least is None:
            assert columns.packing is None
            assert columns.infeasible, f"seed {seed}"
            assert impossible or packing is None, f"seed {seed}"
            continue
        assert packing is not None
        assert columns.packing is not None, f"seed {seed}"
        assert violations(problem, columns.packing) == [], f"seed {seed}"
        assert violations(problem, packing) == []
        assert (seed, columns.objective, columns.bound) == (seed, least, least)
        assert (seed, packing.objective(problem), bound) == (seed, least, least)


def test_the_most_demand_on_given_nodes_agrees_with_brute_force() -> None:
    """Nodes cost nothing and every instance may be left out: what is not placed is all that counts."""
    for seed in range(400, 430):
        made = random_problem(seed)
        rng = np.random.default_rng(seed)
        groups = tuple(replace(g, missing_cost=int(rng.integers(1, 50))) for g in made.groups)
        types = tuple(replace(t, cost=0, supply=int(rng.integers(0, 3))) for t in made.types)
        problem = replace(made, groups=groups, types=types)
        found = place(problem)
        assert found.packing is not None
        assert violations(problem, found.packing) == []
        least = optimum(problem)
        assert (seed, found.objective, found.bound) == (seed, least, least)


def test_heuristics_keep_every_rule_and_are_never_below_the_bound() -> None:
    for seed in range(300, 360):
        problem = random_problem(seed)
        bound = place(problem, method="columns").bound
        for rule in SCORES:
            packing = decreasing(problem, rule)
            if packing.is_complete(problem):
                assert violations(problem, packing) == []
                assert packing.objective(problem) >= bound


def test_racks_hold_at_most_their_share() -> None:
    groups = (InstanceGroup("a", ((2,),), 6, application="a"), InstanceGroup("b", ((3,),), 4, application="b"))
    types = tuple(NodeType(f"t{r}", (12,), 1, 3, rack=f"rack {r}") for r in range(3))
    alone = Problem(("r",), groups, types)
    spread = Problem(("r",), groups, types, rack_share=0.5)
    loose, tight = place(alone), place(spread)
    assert loose.packing is not None
    assert loose.packing.nodes == 2
    assert tight.packing is not None
    assert violations(spread, tight.packing) == []
    assert tight.is_optimal
    # A third of four instances is one per rack, and there are three racks.
    too_tight = place(Problem(("r",), groups, types, rack_share=0.34))
    assert too_tight.packing is None
    assert "raise rack_share or add racks" in " ".join(too_tight.infeasible)


def test_too_few_racks_are_told_however_large_the_problem_is() -> None:
    """Half of an application per rack and one rack: impossible, without any search; nodes without a rack would do."""
    groups = tuple(InstanceGroup(f"g{k}", ((3 + k % 7,),), 40 + k, application=f"app {k}") for k in range(60))
    one = NodeType("only", (12,), rack="a")
    found = place(Problem(("r",), groups, (one,), rack_share=0.5), seconds=2.0)
    assert found.packing is None
    assert len(found.infeasible) == 60
    assert "app 0 has 40 instances, at most 20 of them per rack, and may run in 1 rack;" in found.infeasible[0]
    assert "it needs 2." in found.infeasible[0]
    two = (one, NodeType("free", (12,)))
    assert place(Problem(("r",), groups, two, rack_share=0.5), seconds=2.0).packing is not None


def test_a_start_is_kept_unless_something_better_is_found() -> None:
    problem = random_problem(7)
    best = place(problem).packing
    assert best is not None
    again = place(problem, method="heuristics", warm=best)
    assert again.objective == best.objective(problem)


def test_a_wrong_method_or_budget_is_one_line() -> None:
    with pytest.raises(UserError, match="unknown method"):
        place(random_problem(1), method="magic")
    with pytest.raises(UserError, match="time budget"):
        place(random_problem(1), seconds=0)
