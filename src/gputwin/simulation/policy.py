"""What a policy is: a name, the rule it implements, its parameters, and small functions the engine compiles.

A policy is one file. `@ordering(...)`, `@placement(...)` register a plain Python function; it is compiled against the
signature below when first used, so a user's policy runs at the same speed as a built-in one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gputwin.core.errors import UserError
from gputwin.core.registry import Registry


@dataclass(frozen=True)
class Ordering:
    """Who goes next: `key(jobs, j, now, knobs)`, the lowest first; ties go to the earlier submission."""

    name: str
    rule: str
    key: Callable[..., float]
    source: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Placement:
    """Where it goes: `score(nodes, requests, r, n, knobs)`, the highest first, ties to the lowest node.

    `devices(nodes, requests, r, n, knobs)` returns the bit set of GPUs taken; the default is the fullest that fits.
    `gang` says how several instances are spread: 'score' one by one, 'consolidate' on few nodes, 'topology' close.
    `fresh` is for scores that change though the node did not (random ones): they are never cached.
    """

    name: str
    rule: str
    score: Callable[..., float]
    source: str = ""
    devices: Callable[..., int] | None = None
    gang: str = "score"
    fresh: bool = False
    typical: bool = False
    parameters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Backfill:
    """Who may overtake a job that does not fit; `mode` is the engine's number for it."""

    name: str
    rule: str
    mode: int
    source: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)


ORDERINGS: Registry[Ordering] = Registry("order", "gputwin.simulation.ordering")
PLACEMENTS: Registry[Placement] = Registry("placement", "gputwin.simulation.placement")
BACKFILLS: Registry[Backfill] = Registry("backfill", "gputwin.simulation.backfill")


def ordering(
    name: str, rule: str, *, source: str = "", parameters: Mapping[str, float] | None = None
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Return a decorator that registers `key(jobs, j, now, knobs)` as the order `name`."""

    def register(key: Callable[..., float]) -> Callable[..., float]:
        ORDERINGS.add(Ordering(name, rule, key, source, dict(parameters or {})))
        return key

    return register


def placement(
    name: str,
    rule: str,
    *,
    source: str = "",
    devices: Callable[..., int] | None = None,
    gang: str = "score",
    fresh: bool = False,
    typical: bool = False,
    parameters: Mapping[str, float] | None = None,
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Return a decorator that registers `score(nodes, requests, r, n, knobs)` as the placement `name`."""
    if gang not in ("score", "consolidate", "topology"):
        raise ValueError(f"gang must be score, consolidate or topology, not '{gang}'")

    def register(score: Callable[..., float]) -> Callable[..., float]:
        PLACEMENTS.add(
            Placement(name, rule, score, source, devices, gang, fresh, typical, dict(parameters or {}))
        )
        return score

    return register


def settle(policy: Ordering | Placement, given: Mapping[str, float]) -> dict[str, Any]:
    """Return the policy's parameters with the given values in place of defaults; an unknown one is a user error."""
    for name in given:
        if name not in policy.parameters:
            known = ", ".join(policy.parameters) or "none"
            raise UserError(f"'{policy.name}' has no parameter '{name}'; it has: {known}")
    return {**policy.parameters, **given}
