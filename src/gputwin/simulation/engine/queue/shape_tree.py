"""A tree over the waiting shapes: who goes first among those that a node could help.

A shape that cannot start waits for one of its task groups: the one found to lack room (`watched`). It cannot start before
a node that changes has room for an instance of that group. So each leaf knows what such an instance asks for, and each
branch the least of each below it, the job that goes first and the shortest job. Shapes that ask for alike lie next to each
other, so that a branch is passed over whole where a node has too little.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.state.records import WHOLE, Ints, Records, SmallInts, wide

ANYTHING = wide(-1)
"""Instead of a group: any change may help, since each group has room taken alone."""
_NEVER, _LARGE = 1 << 62, 1 << 30

BRANCH = np.dtype(
    [
        ("key", np.float64),
        ("least", np.float64),  # s; shortest predicted duration
        ("cpu", np.int64),
        ("memory", np.int64),
        ("models", np.int64),  # bit set
        ("size", np.int32),  # instances
        ("kind", np.int32),  # of GPUs, where all below ask for the same, see `fit/totals.py`; -1: they do not
        ("job", np.int32),  # that goes first; -1: none waits
        ("share", np.int32),  # of one device
        ("whole", np.int32),  # devices entirely free
        ("request", np.int32),  # of a leaf, what it waits with; -1: anything
    ],
    align=True,
)
"""One line of the cache at most."""
STEP = np.dtype([("key", np.float64), ("job", np.int32), ("shape", np.int32)], align=True)


class ShapeTree(NamedTuple):
    """Branches (the root at 1), and which leaf is whose."""

    branches: Records
    leaf_of: SmallInts  # [s]
    shape_at: SmallInts  # [leaf]
    asks: Records  # [g] BRANCH: what an instance of the group asks for
    stack: SmallInts  # scratch of a search
    steps: Records  # scratch of a pass, STEP: who may start, a heap in the order of their jobs
    gathered: Ints  # [1] steps in it
    touched: SmallInts  # scratch of a pass: nodes changed since the last one
    most: Records  # scratch of a search, [2] BRANCH: the most free on one of them, now and beside a reservation
    rooms: Ints  # scratch of a pass, [kind]: at most so many instances have GPUs, over all nodes
    touched_in: Ints  # [n] the pass in which a node was last listed


def make_shape_tree(
    requests: Records, groups: Records, shapes: Records, models: Ints, kind_of: Ints, nodes: int
) -> ShapeTree:
    """Return a tree of shapes none of which waits; `kind_of`: the kind of GPUs of each request."""
    asked = requests[groups["request"]]
    asks = np.zeros(groups.size, BRANCH)
    with_gpus = asked["gpu_count"] > 0
    asks["cpu"], asks["memory"] = asked["cpu"], asked["memory"]
    asks["models"] = np.where(with_gpus, models[groups["request"]], -1)
    asks["share"] = np.where(with_gpus, asked["gpu_milli"], 0)
    asks["whole"] = np.where(with_gpus & (asked["gpu_milli"] == WHOLE), asked["gpu_count"], 0)
    milli = groups["size"] * asked["gpu_count"] * asked["gpu_milli"]
    of_shape = np.repeat(np.arange(shapes.size), shapes["groups"])
    asks["size"], asks["kind"], asks["request"] = groups["size"], kind_of[groups["request"]], groups["request"]
    # Of several groups, the one that asks for most GPUs decides where a shape lies.
    hardest = np.lexsort((asks["cpu"], milli, of_shape))[np.cumsum(shapes["groups"]) - 1]
    at = asks[hardest]
    order = np.lexsort((at["memory"], at["cpu"], at["size"], at["kind"], at["share"], at["whole"], at["models"]))
    leaves = 1 << max(shapes.size - 1, 1).bit_length()
    tree = ShapeTree(
        branches=np.zeros(2 * leaves, BRANCH),
        leaf_of=np.argsort(order).astype(np.int32),
        shape_at=order.astype(np.int32),
        asks=asks,
        stack=np.zeros(128, np.int32),
        steps=np.zeros(shapes.size, STEP),
        gathered=np.zeros(1, np.int64),
        touched=np.zeros(nodes, np.int32),
        most=np.zeros(2, BRANCH),
        rooms=np.zeros(int(kind_of.max()) + 1, np.int64),
        touched_in=np.full(nodes, -1, np.int64),
    )
    tree.branches["cpu"] = tree.branches["memory"] = _NEVER
    tree.branches["share"] = tree.branches["whole"] = tree.branches["size"] = _LARGE
    tree.branches["key"] = tree.branches["least"] = np.inf
    tree.branches["job"] = -1
    return tree


def no_shape_tree(shapes: int) -> ShapeTree:
    """Return what stands for the tree where no pass asks it; steps have room for so many shapes."""
    none, few, ints = np.zeros(0, BRANCH), np.zeros(0, np.int32), np.zeros(1, np.int64)
    return ShapeTree(none, few, few, none, few, np.zeros(shapes, STEP), ints, few, none, ints, ints)


@compiled
def update_leaf(tree: ShapeTree, jobs: Records, shapes: Records, s: int) -> None:
    """Note who of shape s goes first now, and what it waits for."""
    shape = shapes[s]
    k = tree.branches.size // 2 + wide(tree.leaf_of[s])
    leaf = tree.branches[k]
    if shape.waiting == 0 or shape.held_back != 0:
        leaf.key = leaf.least = np.inf
        leaf.cpu = leaf.memory = _NEVER
        leaf.share = leaf.whole = leaf.size = _LARGE
        leaf.models, leaf.job = 0, -1
    else:
        # Where tenants take turns, theirs comes before the order of jobs.
        leaf.key = shape.turn if shape.turn == shape.turn else jobs[shape.first].key
        leaf.job, leaf.least = shape.first, jobs[shape.root].least
        if shape.watched >= 0:
            ask = tree.asks[shape.watched]
            leaf.cpu, leaf.memory, leaf.share, leaf.whole = ask.cpu, ask.memory, ask.share, ask.whole
            leaf.models, leaf.size, leaf.kind, leaf.request = ask.models, ask.size, ask.kind, ask.request
        else:
            leaf.cpu = leaf.memory = 0
            leaf.share = leaf.whole = leaf.size = 0
            leaf.models = leaf.kind = leaf.request = -1
    _climb(tree.branches, k >> 1)


@inlined
def _climb(branches: Records, k: int) -> None:
    while k > 0:
        a, b, branch = branches[2 * k], branches[2 * k + 1], branches[k]
        first = a if precedes(a, b) else b
        least, cpu, memory = min(a.least, b.least), min(a.cpu, b.cpu), min(a.memory, b.memory)
        size, models = min(a.size, b.size), a.models | b.models
        share, whole = min(a.share, b.share), min(a.whole, b.whole)
        kind = a.kind if b.job < 0 or a.kind == b.kind else b.kind if a.job < 0 else -1
        same = branch.key == first.key and branch.job == first.job and branch.least == least and branch.cpu == cpu
        same = same and branch.memory == memory and branch.size == size and branch.models == models
        same = same and branch.kind == kind
        if same and branch.share == share and branch.whole == whole:
            return
        branch.key, branch.job, branch.least, branch.cpu, branch.memory = first.key, first.job, least, cpu, memory
        branch.size, branch.models, branch.share, branch.whole = size, models, share, whole
        branch.kind = kind
        k >>= 1


@inlined
def precedes(a: Any, b: Any) -> bool:
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
