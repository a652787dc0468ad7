"""Usage in a tree of quotas: take, give back, what is left. Each function touches one path from a node to its root.

All are written for arrays alone, so that compiled code can call them: `parent[n]`, and `subtree`, `guaranteed`,
`borrowing`, `usage` with a row per node and a column per resource. Usage at a cohort is what its children use above
their guaranteed quotas (Kueue, KEP-79).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gputwin.simulation.quotas.tree import Amounts


def local_room(guaranteed: Amounts, usage: Amounts, n: int, r: int) -> float:
    """Return the unused part of node n's guaranteed quota of resource r."""
    return float(max(0.0, guaranteed[n, r] - usage[n, r]))


def take(parent: NDArray[np.int64], guaranteed: Amounts, usage: Amounts, n: int, r: int, amount: float) -> None:
    """Add `amount` of resource r to node n, and to the nodes above what exceeds the guaranteed quota."""
    while n >= 0 and amount > 0.0:
        local = local_room(guaranteed, usage, n, r)
        usage[n, r] += amount
        amount -= local
        n = parent[n]


def give_back(parent: NDArray[np.int64], guaranteed: Amounts, usage: Amounts, n: int, r: int, amount: float) -> None:
    """Remove `amount` of resource r from node n, and from the nodes above what exceeded the guaranteed quota."""
    while n >= 0 and amount > 0.0:
        above = usage[n, r] - guaranteed[n, r]
        usage[n, r] -= amount
        amount = min(amount, above)
        n = parent[n]


def available(
    parent: NDArray[np.int64], subtree: Amounts, guaranteed: Amounts, borrowing: Amounts, usage: Amounts, n: int, r: int
) -> float:
    """Return how much more of resource r node n may take, never below zero.

    At the root: what it owns less what is used. Below: the unused guaranteed quota and what the parent has left, the
    latter at most the borrowing limit plus the part of the node's own quota that is stored in the parent and unused.
    """
    room = np.inf
    local = 0.0
    # From the node to the root: the room of each ancestor bounds the sum of local room below it.
    while parent[n] >= 0:
        stored = subtree[n, r] - guaranteed[n, r]
        used_above = max(0.0, usage[n, r] - guaranteed[n, r])
        local += local_room(guaranteed, usage, n, r)
        room = min(room, local + stored - used_above + borrowing[n, r])
        n = parent[n]
    room = min(room, local + subtree[n, r] - usage[n, r])
    return float(max(0.0, room))


def potential(
    parent: NDArray[np.int64], subtree: Amounts, guaranteed: Amounts, borrowing: Amounts, n: int, r: int
) -> float:
    """Return the most of resource r node n could have if nobody used anything."""
    room = np.inf
    local = 0.0
    while parent[n] >= 0:
        room = min(room, local + subtree[n, r] + borrowing[n, r])
        local += guaranteed[n, r]
        n = parent[n]
    return float(min(room, local + subtree[n, r]))


def fits(
    parent: NDArray[np.int64],
    subtree: Amounts,
    guaranteed: Amounts,
    borrowing: Amounts,
    usage: Amounts,
    n: int,
    request: Amounts,
    may_borrow: bool,
) -> bool:
    """Return whether queue n may take `request`; without `may_borrow` only within its own quota."""
    for r in range(request.shape[0]):
        if request[r] <= 0.0:
            continue
        if not may_borrow and usage[n, r] + request[r] > subtree[n, r]:
            return False
        if request[r] > available(parent, subtree, guaranteed, borrowing, usage, n, r):
            return False
    return True


def within_nominal(subtree: Amounts, usage: Amounts, n: int, which: NDArray[np.bool_]) -> bool:
    """Return whether node n uses no more than it owns, of each of the resources `which`."""
    return not bool((which & (usage[n] > subtree[n])).any())
