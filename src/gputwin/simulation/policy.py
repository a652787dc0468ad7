"""What a policy is: a name, the rule it implements, its parameters, and small functions the engine compiles.

A policy is one file. `@ordering(...)`, `@placement(...)` register a plain Python function; it is compiled against the
signature below when first used, so a user's policy runs at the same speed as a built-in one.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gputwin.core.registry import Registry
from gputwin.simulation.engine.rules import never
from gputwin.simulation.engine.world import BY_RANK, STRICT


@dataclass(frozen=True)
class Ordering:
    """Who goes next: `key(jobs, j, now, knobs)`, the lowest first; ties go to the earlier submission."""

    name: str
    rule: str
    key: Callable[..., float]
    source: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)
    preemption: str = ""
    """The preemption rule without which the order is not what its name says."""
    promotion: Callable[..., float] = never
    """How long a stopped job may wait until its service so far is forgotten, s."""
    table: Callable[..., Any] | None = None
    """`table(services, values)`: numbers that `knobs.order` holds after the parameters, from GPU-seconds of all jobs."""
    weighs_tenants: bool = False
    """Keys depend on time and on tenants' fair-share factors (`knobs.shares`), and are worked out again every period."""


@dataclass(frozen=True)
class Preemption:
    """Who must yield: running jobs of the highest `rank` first, if that is above the `claim` of the job that wants in.

    Both are functions of (jobs, j, now, knobs). Ranks may change only at the time `crossing` returns.
    """

    name: str
    rule: str
    rank: Callable[..., float]
    claim: Callable[..., float]
    crossing: Callable[..., float] = never
    source: str = ""
    apart: str = ""
    """A field of jobs by which those of one shape wait apart: claims must grow with the order within a queue."""
    orders: tuple[str, ...] = ()
    """The orders it goes with, since who claims more must go first; empty: it comes with its own order only."""
    keeps_work: bool = False
    """It makes sense only where stopped jobs keep their work: else they would undo each other's for ever."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)
    victims: int = BY_RANK
    """How the engine chooses among running jobs of a rank above the claim; only the engine adds ways."""


@dataclass(frozen=True)
class Speed:
    """How fast a job runs: the factors of its GPU model, spread and neighbours; 1 is full speed.

    `neighbours`: the factors change with who else runs on the same nodes.
    """

    name: str
    rule: str
    factors: Callable[..., tuple[float, float, float]]
    neighbours: bool = False
    source: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Placement:
    """Where it goes: `score(machines, requests, r, n, knobs)`, the highest first, ties to the lowest node.

    `devices(machines, requests, r, n, knobs)` returns the bit set of GPUs taken; the default is the fullest that fits.
    `gang` says how several instances are spread: 'score' one by one, 'consolidate' on few nodes, 'topology' close.
    `first` is for scores that are alike for all nodes: the first that fits is taken without asking.
    `fresh` is for scores that change though the node did not (random ones): they are never cached.
    `by_model(name, speed)` returns numbers of a GPU model; `knobs.placement` holds those of all after the parameters.
    """

    name: str
    rule: str
    score: Callable[..., float]
    source: str = ""
    devices: Callable[..., int] | None = None
    gang: str = "score"
    fresh: bool = False
    typical: bool = False
    first: bool = False
    parameters: Mapping[str, float] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)
    by_model: Callable[[str, float], tuple[float, ...]] | None = None


@dataclass(frozen=True)
class FairnessRule:
    """Whose turn it is: `turn(tenants, t, now)`, the lowest first; who must hold back: `gate(tenants, t, s)`.

    Without a turn, jobs go in the chosen order whoever's they are; without a gate, nobody is held back. `drifts`: turns
    change with time alone, not only when the tenant's jobs come, start or end. `turns_by` says what a turn needs: what the
    'tenant' holds or has used; its 'next-job' too (`tenants.next`); a 'draw' for that job (`tenants.tag`); or a 'tree' of
    tenants, which then decides without `turn`.
    """

    name: str
    rule: str
    turn: Callable[..., float] | None = None
    gate: Callable[..., bool] | None = None
    source: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)
    drifts: bool = False
    turns_by: str = "tenant"
    reclaims: int = 0
    """How the engine lets tenants take back what others borrow (QUOTA_RECLAIM, …); only the engine adds ways."""
    queues: bool = False
    """It needs a tree of queues and cohorts."""


@dataclass(frozen=True)
class SharingRule:
    """How a GPU is divided: `factor(jobs, shapes, slots, …, j)` is the speed that sharing leaves job j; none given: 1.

    `uses_pairs`: it goes by a table of pairs, where there is one; `needs_pairs`: always. `divides`: `most` jobs may be on
    a device, whatever they ask for.
    """

    name: str
    rule: str
    factor: Callable[..., float] | None = None
    source: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)
    uses_pairs: bool = False
    needs_pairs: bool = False
    divides: bool = False
    by_priority: bool = False
    """Whether jobs of priority `priority` or more are treated otherwise."""
    full_speed_with: Mapping[str, float] = field(default_factory=dict)
    """Values of parameters with which nobody is slowed."""


@dataclass(frozen=True)
class Backfill:
    """Who may overtake a job that does not fit: `schedule_pass` starts who of the waiting jobs may start now.

    `mode` says what the engine keeps for it: one queue for all jobs (STRICT), or one per shape with the room of each
    (GREEDY), with a reservation for the first (EASY) or for everybody (CONSERVATIVE).
    """

    name: str
    rule: str
    mode: int
    schedule_pass: Callable[..., None]
    source: str = ""
    parameters: Mapping[str, float] = field(default_factory=dict)


ORDERINGS: Registry[Ordering] = Registry("order", "gputwin.simulation.ordering")
PLACEMENTS: Registry[Placement] = Registry("placement", "gputwin.simulation.placement")
BACKFILLS: Registry[Backfill] = Registry("backfill", "gputwin.simulation.backfill")
PREEMPTIONS: Registry[Preemption] = Registry("preemption", "gputwin.simulation.preemption")
SPEEDS: Registry[Speed] = Registry("speed", "gputwin.simulation.speed")
FAIRNESS: Registry[FairnessRule] = Registry("fairness", "gputwin.simulation.fairness")
SHARINGS: Registry[SharingRule] = Registry("sharing", "gputwin.simulation.sharing")
KINDS: dict[str, Registry[Any]] = {
    "order": ORDERINGS,
    "backfill": BACKFILLS,
    "placement": PLACEMENTS,
    "preemption": PREEMPTIONS,
    "speed": SPEEDS,
    "fairness": FAIRNESS,
    "sharing": SHARINGS,
}
"""Every question a policy answers, and the policies that do."""


def ordering(
    name: str,
    rule: str,
    *,
    source: str = "",
    parameters: Mapping[str, float] | None = None,
    at_least: Mapping[str, float] | None = None,
    preemption: str = "",
    promotion: Callable[..., float] = never,
    table: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Return a decorator that registers `key(jobs, j, now, knobs)` as the order `name`.

    `parameters` maps names to defaults; `knobs.order` holds their values (`positions`). `at_least` bounds them below.
    """

    def register(key: Callable[..., float]) -> Callable[..., float]:
        settings = dict(parameters or {}), dict(at_least or {})
        ORDERINGS.add(Ordering(name, rule, key, source, *settings, preemption, promotion, table))
        return key

    return register


def preemption(
    name: str,
    rule: str,
    *,
    claim: Callable[..., float],
    crossing: Callable[..., float] = never,
    source: str = "",
    apart: str = "",
    orders: tuple[str, ...] = (),
    keeps_work: bool = False,
    parameters: Mapping[str, float] | None = None,
    at_least: Mapping[str, float] | None = None,
    victims: int = BY_RANK,
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Return a decorator that registers `rank(jobs, j, now, knobs)` as the preemption rule `name`."""

    def register(rank: Callable[..., float]) -> Callable[..., float]:
        settings = dict(parameters or {}), dict(at_least or {})
        rules = name, rule, rank, claim, crossing, source, apart, orders, keeps_work
        PREEMPTIONS.add(Preemption(*rules, *settings, victims))
        return rank

    return register


def speed(
    name: str,
    rule: str,
    *,
    neighbours: bool = False,
    source: str = "",
    parameters: Mapping[str, float] | None = None,
    at_least: Mapping[str, float] | None = None,
) -> Callable[[Callable[..., tuple[float, float, float]]], Callable[..., tuple[float, float, float]]]:
    """Return a decorator that registers `factors` as the rule of speed `name`.

    `speeds[0]` has the work a second by GPU model, `speeds[1]` the rule's parameters (`positions`).
    """

    def register(factors: Callable[..., tuple[float, float, float]]) -> Callable[..., tuple[float, float, float]]:
        SPEEDS.add(Speed(name, rule, factors, neighbours, source, dict(parameters or {}), dict(at_least or {})))
        return factors

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
    first: bool = False,
    parameters: Mapping[str, float] | None = None,
    at_least: Mapping[str, float] | None = None,
    by_model: Callable[[str, float], tuple[float, ...]] | None = None,
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Return a decorator that registers `score(machines, requests, r, n, knobs)` as the placement `name`.

    `parameters` maps names to defaults; `knobs.placement` holds their values (`positions`). `at_least` bounds them below.
    """
    if gang not in ("score", "consolidate", "topology"):
        raise ValueError(f"gang must be score, consolidate or topology, not '{gang}'")

    def register(score: Callable[..., float]) -> Callable[..., float]:
        settings = dict(parameters or {}), dict(at_least or {})
        PLACEMENTS.add(Placement(name, rule, score, source, devices, gang, fresh, typical, first, *settings, by_model))
        return score

    return register


def backfill(name: str, rule: str, *, source: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that registers `schedule_pass(world, now, …)` as the rule of overtaking `name`.

    All jobs wait in one queue, in order; what a pass is made of is in `engine/passes/in_order.py`.
    """

    def register(schedule_pass: Callable[..., None]) -> Callable[..., None]:
        BACKFILLS.add(Backfill(name, rule, STRICT, schedule_pass, source))
        return schedule_pass

    return register


def sharing(
    name: str,
    rule: str,
    *,
    source: str = "",
    parameters: Mapping[str, float] | None = None,
    at_least: Mapping[str, float] | None = None,
    at_most: Mapping[str, float] | None = None,
    needs_pairs: bool = False,
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Return a decorator that registers `factor(jobs, shapes, slots, …, j)`, the speed sharing leaves job j, as `name`.

    Up to `most` jobs, one of its parameters, run on a device, whatever they ask for. `needs_pairs`: it goes by the table
    of pairs.
    """
    settings = {"most": 2, **(parameters or {})}, {"most": 1, **(at_least or {})}, dict(at_most or {})

    def register(factor: Callable[..., float]) -> Callable[..., float]:
        rules = SharingRule(name, rule, factor, source, *settings, needs_pairs, needs_pairs, divides=True)
        SHARINGS.add(rules)
        return factor

    return register


def positions(parameters: Mapping[str, float]) -> Any:
    """Return where the values of parameters stand, by name: with AT = positions(PARAMETERS), knobs.order[AT.aging].

    The engine is compiled once for all policies, so their values come as an array of one type; a record with fields of
    their names would be another type for each policy, and the engine compiled anew for it.
    """
    return namedtuple("Positions", list(parameters))(*range(len(parameters)))
