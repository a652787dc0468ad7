"""A tree of accounts and users with shares, and each user's fair-share factor: classic and fair tree.

Slurm's documentation: "Classic Fairshare Algorithm" and "Fair Tree Fairshare Algorithm" (the default since 19.05).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Account:
    """An account with its shares among its siblings, or a user (an account without children)."""

    name: str
    shares: float
    children: tuple[Account, ...] = ()
    is_user: bool = False


def actual_usage(account: Account, usage: Mapping[str, float]) -> float:
    """Return the usage of a user, or of all users below an account, in the unit of `usage`."""
    if account.is_user:
        return usage.get(account.name, 0.0)
    return sum(actual_usage(child, usage) for child in account.children)


def normalised_shares(accounts: Sequence[Account], of: float = 1.0) -> dict[str, float]:
    """Return each user's part of the machine by shares alone, from 0 to 1."""
    total = sum(a.shares for a in accounts)
    parts: dict[str, float] = {}
    for account in accounts:
        part = of * account.shares / total if total > 0 else 0.0
        if account.is_user:
            parts[account.name] = part
        else:
            parts |= normalised_shares(account.children, part)
    return parts


def effective_usage(
    accounts: Sequence[Account], usage: Mapping[str, float], parent: float | None = None
) -> dict[str, float]:
    """Return the effective usage of every account and user: its own, and its part of what its siblings used.

    U_E = U + (U_E,parent − U) × shares / shares of all siblings; accounts just below the root have U_E = U. `usage` is
    each user's part of all usage, from 0 to 1.
    """
    total = sum(a.shares for a in accounts)
    effective: dict[str, float] = {}
    for account in accounts:
        own = actual_usage(account, usage)
        if parent is not None and total > 0:
            own += (parent - own) * account.shares / total
        effective[account.name] = own
        effective |= effective_usage(account.children, usage, own)
    return effective


def classic_factors(
    accounts: Sequence[Account], usage: Mapping[str, float], dampening: float = 1.0
) -> dict[str, float]:
    """Return each user's classic fair-share factor 2^(−U_E / shares / dampening), from 0 to 1; 0.5 is its due."""
    effective = effective_usage(accounts, usage)
    return {
        user: 0.0 if share <= 0 else 2.0 ** (-effective[user] / share / dampening)
        for user, share in normalised_shares(accounts).items()
    }


def level_fairshare(account: Account, siblings: Sequence[Account], usage: Mapping[str, float]) -> float:
    """Return shares over usage, as parts of all siblings' (itself included); infinite without usage, 0 without shares."""
    shares = sum(a.shares for a in siblings)
    used = sum(actual_usage(a, usage) for a in siblings)
    if account.shares <= 0 or shares <= 0:
        return 0.0
    own = actual_usage(account, usage)
    return math.inf if own <= 0 else (account.shares / shares) / (own / used)


def fair_tree_factors(accounts: Sequence[Account], usage: Mapping[str, float]) -> dict[str, float]:
    """Return each user's rank / number of users: users are ranked depth first, siblings by level fair share.

    Ties: users with equal values have one rank; a user equal to an account has the rank of its best user; equal
    accounts are entered as one, with the children of all, each child's value being that among its own siblings.
    """
    users = _count_users(accounts)
    ranks: dict[str, int] = {}
    _rank(_levels([accounts], usage), usage, False, _Rank(users, users), ranks)
    return {name: rank / users for name, rank in ranks.items()}


@dataclass
class _Rank:
    """The rank last given, which tied users share, and the one for the next user who is not tied."""

    last: int
    next: int


def _count_users(accounts: Sequence[Account]) -> int:
    return sum(1 if a.is_user else _count_users(a.children) for a in accounts)


def _levels(groups: Sequence[Sequence[Account]], usage: Mapping[str, float]) -> list[tuple[float, list[Account]]]:
    """Return the members of groups of siblings by level fair share, the highest first, tied ones together."""
    tied: dict[float, list[Account]] = {}
    for siblings in groups:
        for account in siblings:
            tied.setdefault(level_fairshare(account, siblings, usage), []).append(account)
    return sorted(tied.items(), reverse=True)


def _rank(
    levels: list[tuple[float, list[Account]]],
    usage: Mapping[str, float],
    tied: bool,
    rank: _Rank,
    ranks: dict[str, int],
) -> None:
    """Rank the users at and below these levels; `tied`: the first of them shares the rank last given."""
    for _, accounts in levels:
        for user in (a for a in accounts if a.is_user):
            if not tied:
                rank.last = rank.next
            ranks[user.name] = rank.last
            rank.next -= 1
            tied = True
        below = [a.children for a in accounts if a.children]
        if below:
            _rank(_levels(below, usage), usage, tied, rank, ranks)
        tied = False
