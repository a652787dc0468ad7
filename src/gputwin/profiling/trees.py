"""A forest whose leaves hold distributions: quantile regression forests (Meinshausen, JMLR 2006) on LightGBM's trees.

LightGBM grows the trees on log durations. Each leaf keeps how its training jobs' durations are distributed over the
grid; a job's distribution is the mean of the leaves it falls into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np

from gputwin.profiling.distribution import BINS, MASS, Mass
from gputwin.profiling.jobs import Floats, Ints

_FIELDS = {"split_feature": np.int64, "threshold": np.float64, "left_child": np.int64, "right_child": np.int64}


LEAST_ROWS = 12
BLOCK = 512


def enough(rows: Floats, values: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Return at least a dozen rows and a column, repeating what there is: LightGBM draws samples and wants some."""
    times = -(-LEAST_ROWS // len(rows))
    if rows.shape[1] == 0:
        rows = np.zeros((len(rows), 1))
    return np.tile(rows, (times, 1)), np.tile(values, times), np.tile(weights, times)


@dataclass(frozen=True)
class Trees:
    """Nodes of all trees one after another; a child below zero is the leaf −1 − child. `roots` may be leaves."""

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints
    roots: Ints
    leaves: int

    @classmethod
    def of(cls, texts: Sequence[str]) -> Trees:
        """Return the trees of LightGBM models in their text form; only numeric splits without missing values."""
        parts: dict[str, list[Any]] = {name: [] for name in _FIELDS}
        roots, nodes, leaves = [], 0, 0
        for block in (block for text in texts for block in text.split("\nTree=")[1:]):
            fields = dict(line.split("=", 1) for line in block.splitlines()[1:] if "=" in line)
            if int(fields["num_leaves"]) == 1:
                roots.append(-1 - leaves)
                leaves += 1
                continue
            tree = {name: np.array(fields[name].split(), dtype) for name, dtype in _FIELDS.items()}
            for side in ("left_child", "right_child"):
                child = tree[side]
                tree[side] = np.where(child >= 0, child + nodes, child - leaves)
            for name, values in tree.items():
                parts[name].append(values)
            roots.append(nodes)
            nodes += tree["threshold"].size
            leaves += int(fields["num_leaves"])
        joined = {
            name: np.concatenate(values) if values else np.zeros(0, _FIELDS[name]) for name, values in parts.items()
        }
        return cls(
            joined["split_feature"],
            joined["threshold"],
            joined["left_child"],
            joined["right_child"],
            np.array(roots, np.int64),
            leaves,
        )

    def distributions(self, rows: Floats, bins: Ints, weights: Floats) -> Mass:
        """Return the distribution of training rows over the grid in every leaf."""
        mass = np.zeros((self.leaves, BINS))
        _fill(rows, *self._arrays, bins, weights, mass)
        total = mass.sum(axis=1, keepdims=True)
        shares: Mass = np.divide(mass, total, out=np.full_like(mass, 1.0 / BINS), where=total > 0).astype(MASS)
        return shares

    def mixture(self, rows: Floats, leaves: Mass) -> Mass:
        """Return the mean over trees of the leaves each row falls into."""
        mass = np.zeros((len(rows), BINS), MASS)
        _mix(rows, self.feature, self.threshold, self._children, self.roots, leaves, mass)
        return mass

    @cached_property
    def _children(self) -> Ints:
        """Return the left and the right child of each node in turn."""
        children: Ints = np.stack([self.left, self.right], axis=1).ravel()
        return children

    @property
    def _arrays(self) -> tuple[Ints, Floats, Ints, Ints, Ints]:
        return self.feature, self.threshold, self.left, self.right, self.roots


@numba.njit(cache=True, inline="always")
def _leaf(
    row: Floats, feature: Ints, threshold: Floats, left: Ints, right: Ints, node: int
) -> int:  # pragma: no cover - compiled
    while node >= 0:
        node = left[node] if row[feature[node]] <= threshold[node] else right[node]
    return -1 - node


@numba.njit(cache=True)
def _fill(
    rows: Floats,
    feature: Ints,
    threshold: Floats,
    left: Ints,
    right: Ints,
    roots: Ints,
    bins: Ints,
    weights: Floats,
    mass: Floats,
) -> None:  # pragma: no cover - compiled
    for i in range(len(rows)):
        for root in roots:
            mass[_leaf(rows[i], feature, threshold, left, right, root), bins[i]] += weights[i]


@numba.njit(cache=True, fastmath=True)
def _mix(
    rows: Floats, feature: Ints, threshold: Floats, children: Ints, roots: Ints, leaves: Mass, mass: Mass
) -> None:  # pragma: no cover - compiled
    share = np.float32(1.0 / roots.size)
    at = np.empty(BLOCK, np.int64)
    # Tree by tree over a block of rows, so that a tree's nodes and leaves stay in the processor's cache; and all rows
    # one step down at a time without a branch: the processor cannot guess which way a row goes.
    for begin in range(0, len(rows), BLOCK):
        end = min(begin + BLOCK, len(rows))
        for root in roots:
            at[:] = root
            going = root >= 0
            while going:
                going = False
                for i in range(begin, end):
                    node = at[i - begin]
                    if node >= 0:
                        is_above = not rows[i, feature[node]] <= threshold[node]
                        node = children[2 * node + np.int64(is_above)]
                        at[i - begin] = node
                        going = going or node >= 0
            for i in range(begin, end):
                leaf = -1 - at[i - begin]
                for k in range(leaves.shape[1]):
                    mass[i, k] += leaves[leaf, k] * share
