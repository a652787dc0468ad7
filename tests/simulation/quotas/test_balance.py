"""Usage in a tree of quotas: what is taken and given back cancels out, and limits hold whatever is admitted."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gputwin.simulation.quotas.balance import available, fits, give_back, potential, take
from gputwin.simulation.quotas.tree import FlavorResource, Quota, QuotaNode, QuotaTree, build_tree

GPU = FlavorResource("any", "gpu")


@st.composite
def trees(draw: st.DrawFn) -> QuotaTree:
    limit = st.one_of(st.just(float("inf")), st.integers(0, 6).map(float))

    def quota() -> dict[FlavorResource, Quota]:
        return {GPU: Quota(draw(st.integers(0, 8)), draw(limit), draw(limit))}

    nodes = [QuotaNode("root", quotas={GPU: Quota(draw(st.integers(0, 4)))}, is_queue=False)]
    for c in range(draw(st.integers(1, 3))):
        nodes.append(QuotaNode(f"c{c}", draw(st.sampled_from([n.name for n in nodes])), quota(), is_queue=False))
    cohorts = [n.name for n in nodes]
    nodes += [QuotaNode(f"q{q}", draw(st.sampled_from(cohorts)), quota()) for q in range(draw(st.integers(1, 4)))]
    return build_tree(nodes)


@settings(max_examples=150, deadline=None)
@given(trees(), st.data())
def test_admitted_by_the_rules_no_limit_is_broken_and_all_comes_back(tree: QuotaTree, data: st.DataObject) -> None:
    usage = tree.no_usage()
    queues = [n for n, node in enumerate(tree.nodes) if node.is_queue]
    lent = [tree.nodes[n].quotas.get(GPU, Quota()).lending_limit for n in range(len(tree.nodes))]
    held: list[tuple[int, float]] = []
    for _ in range(data.draw(st.integers(1, 12))):
        if held and data.draw(st.booleans()):
            q, amount = held.pop(data.draw(st.integers(0, len(held) - 1)))
            give_back(tree.parent, tree.guaranteed, usage, q, 0, amount)
            continue
        q, amount = data.draw(st.sampled_from(queues)), float(data.draw(st.integers(1, 6)))
        room = available(tree.parent, tree.subtree, tree.guaranteed, tree.borrowing, usage, q, 0)
        request = np.array([amount])
        may = fits(tree.parent, tree.subtree, tree.guaranteed, tree.borrowing, usage, q, request, True)
        assert may == (amount <= room)
        assert room <= potential(tree.parent, tree.subtree, tree.guaranteed, tree.borrowing, q, 0)
        if may:
            take(tree.parent, tree.guaranteed, usage, q, 0, amount)
            held.append((q, amount))
        # The design's balance: what a subtree has left is at least minus its borrowing limit, and 0 at the root.
        left = np.zeros(len(tree.nodes))
        for n in range(len(tree.nodes) - 1, -1, -1):
            own = tree.nodes[n].quotas.get(GPU, Quota()).nominal - sum(a for queue, a in held if queue == n)
            left[n] = own + sum(min(lent[c], left[c]) for c in tree.children[n])
            assert left[n] >= (-tree.borrowing[n, 0] if tree.parent[n] >= 0 else 0.0)
    for q, amount in held:
        give_back(tree.parent, tree.guaranteed, usage, q, 0, amount)
    assert not usage.any()
