"""Branch and price by merging: agrees with trying everything, and settles what the linear program alone does not."""

from __future__ import annotations

from collections import Counter
from time import process_time

import numpy as np
import pytest

from gputwin.optimization.placement.columns import generate
from gputwin.optimization.placement.merging import Merged, fits_on
from gputwin.optimization.placement.problem import InstanceGroup, NodeType, Problem
from gputwin.optimization.placement.reduction import is_by_size
from tests.optimization.placement.validator import violations


def sizes_on(capacity: int, sizes: list[int]) -> Problem:
    groups = tuple(InstanceGroup(str(s), ((s,),), n) for s, n in sorted(Counter(sizes).items(), reverse=True))
    return Problem(("size",), groups, (NodeType("node", (capacity,)),))


def least_nodes(capacity: int, sizes: list[int]) -> int:
    """Return the fewest nodes, by (nodes, room taken on the last) of every subset."""
    best = [(0, capacity)] + [(len(sizes) + 1, 0)] * (2 ** len(sizes) - 1)
    for subset in range(1, 2 ** len(sizes)):
        for i, size in enumerate(sizes):
            if subset >> i & 1:
                nodes, taken = best[subset ^ (1 << i)]
                after = (nodes, taken + size) if taken + size <= capacity else (nodes + 1, size)
                best[subset] = min(best[subset], after)
    return best[-1][0]


def searched(problem: Problem, nodes: int) -> Merged:
    return fits_on(problem, generate(problem), nodes, process_time() + 30)


def test_it_agrees_with_trying_everything_about_what_fits():
    found = {True: 0, False: 0}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        capacity = int(rng.integers(15, 30))
        # Sizes that leave little room, so that a node less is a question.
        sizes = rng.integers(capacity // 5, capacity // 2 + 2, int(rng.integers(5, 10))).tolist()
        problem, least = sizes_on(capacity, sizes), least_nodes(capacity, sizes)
        for nodes in (least - 1, least):
            merged = searched(problem, nodes)
            if not merged.is_settled:
                continue
            assert (merged.packing is not None) == (nodes == least), f"seed {seed}"
            found[nodes == least] += 1
            if merged.packing is not None:
                assert violations(problem, merged.packing) == []
                assert merged.packing.nodes <= nodes
    assert found[True] > 30
    assert found[False] > 55


def test_a_packing_that_fills_every_node_to_the_last_unit_is_found():
    # Twelve nodes of three instances each, nothing left over, in an order that tells nothing.
    rng = np.random.default_rng(3)
    sizes: list[int] = []
    for _ in range(12):
        first, second = int(rng.integers(260, 400)), int(rng.integers(260, 400))
        sizes += [first, second, 1000 - first - second]
    problem = sizes_on(1000, sizes)
    merged = searched(problem, 12)
    assert merged.packing is not None
    assert violations(problem, merged.packing) == []
    assert merged.packing.nodes == 12
    assert searched(problem, 11) == Merged(None, True)


def test_time_that_is_over_settles_nothing():
    problem = sizes_on(100, [51, 34, 33, 32, 26, 24, 17, 16, 15, 12])
    assert fits_on(problem, generate(problem), 4, process_time() - 1) == Merged(None, False)


@pytest.mark.parametrize(
    "problem",
    [
        Problem(("a", "b"), (InstanceGroup("x", ((1, 1),), 3),), (NodeType("n", (2, 2)),)),
        Problem(("a",), (InstanceGroup("x", ((1,),), 3, max_per_node=1),), (NodeType("n", (2,)),)),
        Problem(("a",), (InstanceGroup("x", ((1,),), 3),), (NodeType("n", (2,), supply=1),)),
        Problem(("a",), (InstanceGroup("x", ((1,),), 3, missing_cost=1),), (NodeType("n", (2,)),)),
    ],
)
def test_it_leaves_alone_what_size_does_not_decide(problem: Problem):
    assert not is_by_size(problem)
    assert searched(problem, 1) == Merged(None, False)
