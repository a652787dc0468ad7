"""Parts of a problem that can be solved apart, and how their results make one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gputwin.optimization.placement.master import Column
from gputwin.optimization.placement.problem import Attempt, Packing, PlacementResult, Problem, Use, packing_of


def independent_parts(problem: Problem) -> list[tuple[Problem, tuple[int, ...], tuple[int, ...]]]:
    """Return (problem, its groups, its node types) of each part that shares no node type with another."""
    if problem.conflicts or problem.rack_limits:
        everything = tuple(range(len(problem.groups))), tuple(range(len(problem.types)))
        return [(problem, *everything)]
    owner = list(range(len(problem.types)))

    def root(t: int) -> int:
        while owner[t] != t:
            t = owner[t]
        return t

    homes: list[int | None] = []
    reach = [
        np.flatnonzero(problem.most[:, problem.group_of == g].any(axis=1)).tolist() for g in range(len(problem.groups))
    ]
    for able in reach:
        for t in able[1:]:
            owner[root(t)] = root(able[0])
        homes.append(able[0] if able else None)
    parts: dict[int | None, list[int]] = {}
    for g, home in enumerate(homes):
        parts.setdefault(None if home is None else root(home), []).append(g)
    if None in parts or len(parts) < 2:
        everything = tuple(range(len(problem.groups))), tuple(range(len(problem.types)))
        return [(problem, *everything)]
    result = []
    for home, groups in parts.items():
        types = tuple(t for t in range(len(problem.types)) if root(t) == home)
        part = replace(
            problem, groups=tuple(problem.groups[g] for g in groups), types=tuple(problem.types[t] for t in types)
        )
        result.append((part, tuple(groups), types))
    return result


def _choice_map(problem: Problem, part: Problem, groups: Sequence[int]) -> dict[int, int]:
    """Return the whole problem's choice of each choice of the part."""
    position = {gk: c for c, gk in enumerate(problem.choices)}
    return {c: position[groups[g], k] for c, (g, k) in enumerate(part.choices)}


def part_of(problem: Problem, packing: Packing, groups: Sequence[int], types: Sequence[int]) -> Packing:
    """Return what the packing has of a part."""
    part = replace(
        problem, groups=tuple(problem.groups[g] for g in groups), types=tuple(problem.types[t] for t in types)
    )
    back = {whole: own for own, whole in _choice_map(problem, part, groups).items()}
    number = {t: i for i, t in enumerate(types)}
    uses = tuple(
        Use(number[u.node_type], tuple(sorted((back[c], n) for c, n in u.pattern)), u.nodes)
        for u in packing.uses
        if u.node_type in number
    )
    return Packing(uses, tuple(packing.missing[g] for g in groups))


def joined(
    problem: Problem,
    parts: Sequence[tuple[Problem, tuple[int, ...], tuple[int, ...]]],
    results: Sequence[PlacementResult],
) -> PlacementResult:
    """Return the result of the whole problem from those of its parts."""
    if len(parts) == 1:
        return results[0]
    uses: list[Use] = []
    missing = [0] * len(problem.groups)
    attempts: list[Attempt] = []
    for (part, groups, types), result in zip(parts, results, strict=True):
        label = "+".join(t.name for t in part.types)
        attempts += [replace(a, method=f"{label}: {a.method}") for a in result.attempts]
        if result.packing is not None:
            names = _choice_map(problem, part, groups)
            uses += [
                Use(types[u.node_type], tuple(sorted((names[c], n) for c, n in u.pattern)), u.nodes)
                for u in result.packing.uses
            ]
            for g, m in zip(groups, result.packing.missing, strict=True):
                missing[g] = m
    whole = None if any(r.packing is None for r in results) else Packing(tuple(uses), tuple(missing))
    reasons = tuple(reason for r in results for reason in r.infeasible)
    return PlacementResult(problem, whole, sum(r.bound for r in results), tuple(attempts), reasons)


def with_fixed(problem: Problem, fixed: Sequence[Column], rest: PlacementResult) -> PlacementResult:
    """Return the result of the whole problem: the nodes fixed beforehand and what was found for the rest."""
    cost = sum(problem.types[t].cost for t, _ in fixed)
    attempts = tuple(
        replace(
            a,
            objective=None if a.objective is None else a.objective + cost,
            bound=None if a.bound is None else a.bound + cost,
        )
        for a in rest.attempts
    )
    packing = None
    if rest.packing is not None:
        nodes = [(u.node_type, u.pattern) for u in rest.packing.uses for _ in range(u.nodes)]
        packing = packing_of(problem, [*fixed, *nodes])
    return PlacementResult(problem, packing, rest.bound + cost, attempts, rest.infeasible)
