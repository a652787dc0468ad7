"""Whether everything fits on a given number of nodes, where size is all that counts: branch and price by merging.

An instance that is not the largest on its node shares it with a larger one. So a search takes the instance with the
fewest larger ones it can be with and tries each of them: the two become one instance, and what is left is a packing
problem of the same kind, whose linear program is warm-started (Ryan and Foster, "An Integer Programming Approach to
Scheduling", 1981, with the branches "together" alone). Three things keep the search small:

- A pair is tried only where some pattern with both is worth enough to be part of a packing on so many nodes.
- An instance above half of a node grows to the largest size at which the same instances fit beside it.
- Sizes that are no smaller, one by one, than others for which there is no packing have none either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from time import process_time

import numpy as np

from gputwin.optimization.placement.columns import Generated, generate
from gputwin.optimization.placement.master import Column
from gputwin.optimization.placement.problem import InstanceGroup, Ints, NodeType, Packing, Problem, packing_of
from gputwin.optimization.placement.reduction import is_by_size

_MOST_CELLS = 4_000_000
_MOST_INSTANCES = 500

Sizes = tuple[int, ...]
"""Sizes of the instances on one node, the largest first."""


@dataclass(frozen=True)
class Piece:
    """Instances that share a node, as one: the room they take, and which they are (choices of the whole problem)."""

    size: int
    members: tuple[int, ...]


@dataclass(frozen=True)
class Merged:
    """What the search found: a packing, or none, and whether that is settled."""

    packing: Packing | None
    is_settled: bool


class _UnsettledError(Exception):
    """The time is over, or no instance must be with another one."""


@dataclass
class _Search:
    capacity: int
    nodes: int
    deadline: float
    impossible: dict[int, Ints] = field(default_factory=dict)
    """Per number of pieces: rows of sizes, in order, for which there is no packing."""

    def run(self, pieces: tuple[Piece, ...], patterns: Iterable[Sizes]) -> list[tuple[int, ...]] | None:
        """Return the choices on each node, or None where these pieces do not fit on the nodes."""
        pieces = self._filled_up(self._with_exact_pairs(pieces))
        sizes = np.sort(np.array([p.size for p in pieces], np.int64))
        known = self.impossible.get(sizes.size)
        if known is not None and bool((known <= sizes).all(axis=1).any()):
            return None
        found = None if sizes.sum() > self.nodes * self.capacity else self._branch(pieces, patterns)
        if found is None:
            rows = sizes[np.newaxis]
            self.impossible[sizes.size] = rows if known is None else np.vstack((known, rows))
        return found

    def _with_exact_pairs(self, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """Return the pieces after joining those that fill a node together: some packing has them so."""
        by_size: dict[int, list[Piece]] = {}
        for piece in pieces:
            by_size.setdefault(piece.size, []).append(piece)
        for size in [s for s in by_size if 2 * s > self.capacity]:
            larger, smaller = by_size[size], by_size.get(self.capacity - size, [])
            while larger and smaller:
                by_size.setdefault(self.capacity, []).append(_joined(larger.pop(), smaller.pop()))
        return tuple(p for found in by_size.values() for p in found)

    def _filled_up(self, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """Return the pieces, those above half of a node as large as they can be with the same beside them."""
        sums, within = 1, (1 << (self.capacity + 1)) - 1
        for piece in pieces:
            if 2 * piece.size <= self.capacity:
                sums |= (sums << piece.size) & within
        grown = []
        for piece in pieces:
            if 2 * piece.size > self.capacity:
                room = self.capacity - piece.size
                beside = (sums & ((1 << (room + 1)) - 1)).bit_length() - 1
                piece = Piece(self.capacity - beside, piece.members)
            grown.append(piece)
        return tuple(sorted(grown, key=lambda p: (-p.size, p.members)))

    def _branch(self, pieces: tuple[Piece, ...], patterns: Iterable[Sizes]) -> list[tuple[int, ...]] | None:
        counts = Counter(p.size for p in pieces)
        sizes = sorted(counts, reverse=True)
        problem = _problem(sizes, counts, self.capacity)
        columns = _columns(sizes, counts, self.capacity, patterns)
        generated = generate(problem, columns, deadline=self.deadline, enough=self.nodes)
        if generated.bound > self.nodes:
            return None
        if process_time() > self.deadline or not generated.is_complete or not generated.proof.worth:
            raise _UnsettledError
        whole = _whole(problem, generated)
        if whole is not None and whole.nodes <= self.nodes:
            return _by_members(pieces, sizes, whole)
        smaller, partners = self._fewest_partners(problem, generated, sizes)
        known = [_sizes(sizes, pattern) for _, pattern in generated.columns]
        beside = _beside(generated, sizes, smaller)
        for larger in sorted(partners, key=lambda s: (-beside[s], s)):
            found = self.run(*_merge(pieces, known, larger, smaller))
            if found is not None:
                return found
        return None

    def _fewest_partners(self, problem: Problem, generated: Generated, sizes: list[int]) -> tuple[int, list[int]]:
        """Return the size with the fewest others, as large or larger, that it must be with one of; and those."""
        worth, least = generated.proof.worth[0], generated.proof.least_worth(0, self.nodes)
        counts, n = problem.counts, len(sizes)
        after = np.zeros((n + 1, self.capacity + 1), np.int64)
        for k in range(n - 1, -1, -1):
            after[k] = _with_copies(after[k + 1], sizes[k], int(worth[k]), int(counts[k]))
        best: tuple[int, list[int]] | None = None
        for k in range(n):
            left = self.capacity - sizes[k]
            if worth[k] + after[k + 1][left] >= least:
                continue  # It can be the largest on its node.
            partners = [
                sizes[j]
                for j in range(k + 1)
                if sizes[j] <= left
                and (j < k or counts[k] > 1)
                and worth[k] + worth[j] + after[0][left - sizes[j]] >= least
            ]
            if best is None or len(partners) < len(best[1]):
                best = sizes[k], partners
        if best is None:
            raise _UnsettledError
        return best


def fits_on(problem: Problem, generated: Generated, nodes: int, deadline: float) -> Merged:
    """Return a packing on at most so many nodes, or that there is none; not settled where `deadline` came first."""
    capacity = int(problem.capacities[0, 0]) if problem.types else 0
    total = int(problem.counts.sum())
    if not is_by_size(problem) or total > _MOST_INSTANCES or total * capacity > _MOST_CELLS:
        return Merged(None, False)
    sizes = problem.sizes[:, 0].tolist()
    pieces = tuple(Piece(sizes[c], (c,)) for c, n in enumerate(problem.counts.tolist()) for _ in range(n))
    patterns = [_sizes(sizes, pattern) for _, pattern in generated.columns]
    try:
        found = _Search(capacity, nodes, deadline).run(pieces, patterns)
    except _UnsettledError:
        return Merged(None, False)
    if found is None:
        return Merged(None, True)
    return Merged(packing_of(problem, [(0, tuple(sorted(Counter(node).items()))) for node in found]), True)


def _joined(first: Piece, second: Piece) -> Piece:
    return Piece(first.size + second.size, first.members + second.members)


def _problem(sizes: list[int], counts: Counter[int], capacity: int) -> Problem:
    groups = tuple(InstanceGroup(str(s), ((s,),), counts[s]) for s in sizes)
    return Problem(("size",), groups, (NodeType("node", (capacity,)),))


def _sizes(sizes: list[int], pattern: Iterable[tuple[int, int]]) -> Sizes:
    return tuple(sorted((sizes[c] for c, n in pattern for _ in range(n)), reverse=True))


def _columns(sizes: list[int], counts: Counter[int], capacity: int, patterns: Iterable[Sizes]) -> list[Column]:
    """Return the patterns as columns of the problem, without what it has not and without those that are too full."""
    index = {s: k for k, s in enumerate(sizes)}
    found: dict[Column, None] = {}
    for pattern in patterns:
        held = {s: min(n, counts[s]) for s, n in Counter(pattern).items() if s in index}
        if held and sum(s * n for s, n in held.items()) <= capacity:
            found[0, tuple(sorted((index[s], n) for s, n in held.items()))] = None
    return list(found)


def _merge(
    pieces: tuple[Piece, ...], patterns: list[Sizes], larger: int, smaller: int
) -> tuple[tuple[Piece, ...], list[Sizes]]:
    """Return the pieces with one of each size joined, and the patterns that go with them."""
    left = list(pieces)
    pair = []
    for size in (larger, smaller):
        at = next(i for i, p in enumerate(left) if p.size == size)
        pair.append(left.pop(at))
    joined = _joined(*pair)
    fitting = list(patterns)
    for pattern in patterns:
        held = list(pattern)
        if larger in held:
            held.remove(larger)
            if smaller in held:
                held.remove(smaller)
                fitting.append((joined.size, *held))
    return (*left, joined), fitting


def _whole(problem: Problem, generated: Generated) -> Packing | None:
    """Return the packing where the linear program's solution is one."""
    nodes = np.rint(generated.nodes)
    if np.abs(generated.nodes - nodes).max(initial=0.0) > 1e-6:
        return None
    used = [c for c, n in zip(generated.columns, nodes.astype(int).tolist(), strict=True) for _ in range(n)]
    packing = packing_of(problem, used)
    return packing if packing.is_complete(problem) else None


def _by_members(pieces: tuple[Piece, ...], sizes: list[int], packing: Packing) -> list[tuple[int, ...]]:
    by_size: dict[int, list[Piece]] = {}
    for piece in pieces:
        by_size.setdefault(piece.size, []).append(piece)
    found = []
    for use in packing.uses:
        for _ in range(use.nodes):
            node = [by_size[sizes[c]].pop() for c, n in use.pattern for _ in range(n)]
            found.append(tuple(m for piece in node for m in piece.members))
    return found


def _beside(generated: Generated, sizes: list[int], smaller: int) -> Counter[int]:
    """Return how much the linear program has of each size on nodes with the smaller one."""
    beside: Counter[int] = Counter()
    for (_, pattern), nodes in zip(generated.columns, generated.nodes.tolist(), strict=True):
        held = [sizes[c] for c, _ in pattern]
        if nodes > 0 and smaller in held:
            for size in held:
                beside[size] += nodes
    return beside


def _with_copies(table: Ints, size: int, worth: int, copies: int) -> Ints:
    """Return the most worth within each capacity with up to so many copies more than in the table."""
    best = table.copy()
    for n in range(1, copies + 1):
        if size * n >= table.size:
            break
        best[size * n :] = np.maximum(best[size * n :], table[: table.size - size * n] + worth * n)
    return best
