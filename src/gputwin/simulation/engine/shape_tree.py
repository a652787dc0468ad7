"""A tree over the waiting shapes: who goes first among those that a node could help.

A shape that cannot start waits for one of its task groups: the one found to lack room (`watched`). It cannot start before
a node that changes has room for an instance of that group. So each leaf knows what such an instance asks for, and each
branch the least of each below it, the job that goes first and the shortest job. Shapes that ask for alike lie next to each
other, so that a branch is passed over whole where a node has too little.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.state import WHOLE, Ints, Records, SmallInts, wide

ANYTHING = wide(-1)
"""Instead of a group: any change may help, since each group has room taken alone."""
_NEVER = 1 << 62

BRANCH = np.dtype(
    [
        ("key", np.float64),
        ("least", np.float64),  # s; shortest predicted duration
        ("cpu", np.int64),
        ("memory", np.int64),
        ("needed", np.int64),  # milli-GPU of the whole gang
        ("models", np.int64),  # bit set
        ("job", np.int32),  # that goes first; -1: none waits
        ("share", np.int32),  # of one device
        ("whole", np.int32),  # devices entirely free
        ("padding", np.int32),
    ],
    align=True,
)
"""One line of the cache."""


class ShapeTree(NamedTuple):
    """Branches (the root at 1), and which leaf is whose."""

    branches: Records
    leaf_of: SmallInts  # [s]
    shape_at: SmallInts  # [leaf]
    asks: Records  # [g] BRANCH: what an instance of the group asks for
    stack: SmallInts  # scratch of a search
    touched: SmallInts  # scratch of a pass: nodes changed since the last one
    found: SmallInts  # and the job that may start there; -1: none
    touched_in: Ints  # [n] the pass in which a node was last listed


def make_shape_tree(requests: Records, groups: Records, shapes: Records, models: Ints, nodes: int) -> ShapeTree:
    """Return a tree of shapes none of which waits."""
    asked = requests[groups["request"]]
    asks = np.zeros(groups.size, BRANCH)
    with_gpus = asked["gpu_count"] > 0
    asks["cpu"], asks["memory"] = asked["cpu"], asked["memory"]
    asks["models"] = np.where(with_gpus, models[groups["request"]], -1)
    asks["share"] = np.where(with_gpus, asked["gpu_milli"], 0)
    asks["whole"] = np.where(with_gpus & (asked["gpu_milli"] == WHOLE), asked["gpu_count"], 0)
    milli = groups["size"] * asked["gpu_count"] * asked["gpu_milli"]
    of_shape = np.repeat(np.arange(shapes.size), shapes["groups"])
    needed = np.bincount(of_shape, milli, shapes.size).astype(np.int64)
    asks["needed"] = needed[of_shape]
    # Of several groups, the one that asks for most GPUs decides where a shape lies.
    hardest = np.lexsort((asks["cpu"], milli, of_shape))[np.cumsum(shapes["groups"]) - 1]
    at = asks[hardest]
    order = np.lexsort((needed, at["memory"], at["cpu"], at["share"], at["whole"], at["models"]))
    leaves = 1 << max(shapes.size - 1, 1).bit_length()
    tree = ShapeTree(
        branches=np.zeros(2 * leaves, BRANCH),
        leaf_of=np.argsort(order).astype(np.int32),
        shape_at=order.astype(np.int32),
        asks=asks,
        stack=np.zeros(128, np.int32),
        touched=np.zeros(nodes, np.int32),
        found=np.zeros(nodes, np.int32),
        touched_in=np.full(nodes, -1, np.int64),
    )
    for name in ("cpu", "memory", "needed"):
        tree.branches[name] = _NEVER
    tree.branches["share"] = tree.branches["whole"] = 1 << 30
    tree.branches["key"] = tree.branches["least"] = np.inf
    tree.branches["job"] = -1
    return tree


def no_shape_tree() -> ShapeTree:
    """Return what stands for the tree where no pass asks it."""
    none, few = np.zeros(0, BRANCH), np.zeros(0, np.int32)
    return ShapeTree(none, few, few, none, few, few, few, np.zeros(0, np.int64))


@compiled
def update_leaf(tree: ShapeTree, jobs: Records, shapes: Records, s: int) -> None:
    """Note who of shape s goes first now, and what it waits for."""
    shape = shapes[s]
    k = tree.branches.size // 2 + wide(tree.leaf_of[s])
    leaf = tree.branches[k]
    if shape.waiting == 0:
        leaf.key = leaf.least = np.inf
        leaf.cpu = leaf.memory = leaf.needed = _NEVER
        leaf.share = leaf.whole = 1 << 30
        leaf.models, leaf.job = 0, -1
    else:
        ask = tree.asks[shape.watched if shape.watched >= 0 else shape.first_group]
        leaf.key, leaf.job, leaf.least = jobs[shape.first].key, shape.first, jobs[shape.root].least
        leaf.needed = ask.needed
        if shape.watched >= 0:
            leaf.cpu, leaf.memory, leaf.share, leaf.whole, leaf.models = (
                ask.cpu,
                ask.memory,
                ask.share,
                ask.whole,
                ask.models,
            )
        else:
            leaf.cpu = leaf.memory = 0
            leaf.share = leaf.whole = 0
            leaf.models = -1
    _climb(tree.branches, k >> 1)


@inlined
def _climb(branches: Records, k: int) -> None:
    while k > 0:
        a, b, branch = branches[2 * k], branches[2 * k + 1], branches[k]
        first = a if precedes(a, b) else b
        least, cpu, memory = min(a.least, b.least), min(a.cpu, b.cpu), min(a.memory, b.memory)
        needed, models = min(a.needed, b.needed), a.models | b.models
        share, whole = min(a.share, b.share), min(a.whole, b.whole)
        same = branch.key == first.key and branch.job == first.job and branch.least == least and branch.cpu == cpu
        same = same and branch.memory == memory and branch.needed == needed and branch.models == models
        if same and branch.share == share and branch.whole == whole:
            return
        branch.key, branch.job, branch.least, branch.cpu, branch.memory = first.key, first.job, least, cpu, memory
        branch.needed, branch.models, branch.share, branch.whole = needed, models, share, whole
        k >>= 1


@inlined
def precedes(a: Records, b: Records) -> bool:
    """Return whether the first job below branch a goes before that below branch b; one of them may be empty."""
    if a.job < 0 or b.job < 0:
        return a.job >= 0
    return a.key < b.key or (a.key == b.key and a.job < b.job)


@inlined
def watch(tree: ShapeTree, jobs: Records, shapes: Records, s: int, g: int) -> None:
    """Let shape s wait for room for its group g, or for ANYTHING."""
    if shapes[s].watched != g:
        shapes[s].watched = g
        if shapes[s].waiting > 0:
            update_leaf(tree, jobs, shapes, s)
