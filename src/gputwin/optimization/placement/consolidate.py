"""Emptying nodes with few moves: the emptiest first, room kept for who is expected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from gputwin.optimization.placement.heuristics import Floats
from gputwin.optimization.placement.repack import exchange
from gputwin.optimization.placement.standing import Home, Standing


def consolidate(
    standing: Standing,
    most_moves: int,
    expected: Iterable[int] = (),
    leaving: Set[int] = frozenset(),
    worth: Sequence[Floats] = (),
) -> int:
    """Return the moves made to empty nodes, at most so many: those with the fewest to move first, wholly or not at all.

    Then, where the `worth` of instances per node type is given, by exchanges between nodes (`repack`).

    Instances of the groups in `expected` get room on the nodes in use first, and a node is emptied only where they find
    room elsewhere too; then they are taken away again. Who is known to be `leaving` within the period is not moved: the
    node is empty once they are gone, so nobody is moved there.
    """
    if leaving:
        standing.bar([row for row in standing.rows() if standing.on[row] <= leaving])
    reserved = _reserve(standing, expected)
    moves = 0
    stays = {row: _movable(standing, row, leaving) for row in standing.rows()}
    for row in sorted((r for r, n in stays.items() if n), key=lambda r: (stays[r], r)):
        # The node may have got others meanwhile.
        count = _movable(standing, row, leaving)
        if moves + count <= most_moves and _emptied(standing, row, leaving):
            moves += count
            standing.bar([row])
    if worth:
        moves += exchange(standing, worth, most_moves - moves, leaving=leaving)
    for instance in reserved:
        standing.take(instance)
    standing.bar([])
    return moves


def _movable(standing: Standing, row: int, leaving: Set[int]) -> int:
    return sum(i >= 0 and i not in leaving for i in standing.on[row])


def _reserve(standing: Standing, expected: Iterable[int]) -> list[int]:
    """Return stand-ins (negative numbers) for the expected, those that find room on nodes in use, the largest first."""
    reserved: list[int] = []
    for group in sorted(expected, key=lambda g: (-standing.bulk[g], g)):
        row = standing.best(group)
        if row is not None:
            reserved.append(-len(reserved) - 1)
            standing.put(reserved[-1], group, row)
    return reserved


def _emptied(standing: Standing, row: int, leaving: Set[int]) -> bool:
    """Return whether all who stay on the node were moved to other nodes in use; nobody was where not all can be."""
    here = [i for i in standing.on[row] if i not in leaving]
    order = sorted(here, key=lambda i: (-standing.bulk[standing.homes[i].group], i))
    done: list[tuple[int, Home]] = []
    for instance in order:
        group = standing.homes[instance].group
        target = standing.best(group, but=row)
        if target is None:
            break
        home = standing.take(instance)
        standing.put(instance, group, target)
        done.append((instance, home))
    if len(done) == len(order):
        return True
    for instance, home in reversed(done):
        standing.take(instance)
        standing.put(instance, home.group, home.row, home.devices)
    return False
