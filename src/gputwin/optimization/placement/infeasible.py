"""Why a problem has no placement: which constraint, which application, and what would make one possible."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gputwin.core.units import RESOURCE_UNITS
from gputwin.optimization.placement.problem import InstanceGroup, Problem

_SECONDS = 5.0
_OF = {"memory_mib": " of memory", "disk_mib": " of disk"}


def explain_infeasible(problem: Problem, *, is_proven: bool = False) -> tuple[str, ...]:
    """Return sentences on what makes it impossible; empty where nothing plain does.

    With `is_proven` the problem is known to have no placement: then constraints are relaxed in turn to find the one.
    """
    numbered = [(i, g) for i, g in enumerate(problem.groups) if g.missing_cost is None and g.count]
    must = [g for _, g in numbered]
    if not problem.types:
        return ("There are no node types.",) if must else ()
    reasons = [reason for g, group in numbered if (reason := _no_node(problem, g, group))]
    if not reasons:
        reasons = [*_too_little(problem, must), *_limits(problem, numbered), *_too_few_racks(problem)]
    if is_proven and not reasons:
        reasons = _relaxed(problem)
    return tuple(reasons)


def _no_node(problem: Problem, g: int, group: InstanceGroup) -> str | None:
    """Return why no node type can hold one instance of the group."""
    if problem.most[:, problem.group_of == g].any():
        return None
    allowed = [t for t in problem.types if group.node_types is None or t.name in group.node_types]
    if not allowed:
        wanted = ", ".join(sorted(group.node_types or ()))
        return f"{group.name} may only run on node types {wanted or '(none)'}, of which there are none; add such nodes."
    short = []
    for r, resource in enumerate(problem.resources):
        asked, most = min(request[r] for request in group.requests), max(t.capacity[r] for t in allowed)
        if asked > most:
            short.append(f"{_said(resource, asked)} and the largest node it may run on has {_said(resource, most)}")
    if short:
        return f"{group.name} asks for {' and for '.join(short)}; give it a larger node type or ask for less."
    if group.max_per_node == 0:
        return f"{group.name} allows 0 instances per node; raise max_per_node."
    if group.gpus > max(t.gpus for t in allowed):
        return f"{group.name} needs {group.gpus} GPUs on one node and no node it may run on has more than that free."
    names = ", ".join(t.name for t in allowed)
    return f"No single node type of {names} has enough of everything {group.name} asks for at once; give one that has."


def _said(resource: str, number: int) -> str:
    """Return the amount in the unit people use, and what it is of."""
    size, unit = RESOURCE_UNITS.get(resource, (1, resource))
    return f"{number / size:,.10g} {unit}{_OF.get(resource, '')}"


def _nodes(number: int) -> str:
    return f"{number:,} node{'' if number == 1 else 's'}"


def _too_little(problem: Problem, must: list[InstanceGroup]) -> list[str]:
    """Return the resources of which all nodes together have too little."""
    if any(t.supply is None for t in problem.types):
        return []
    reasons = []
    for r, resource in enumerate(problem.resources):
        asked = sum(g.count * min(q[r] for q in g.requests) for g in must)
        there = sum(t.capacity[r] * (t.supply or 0) for t in problem.types)
        if asked > there:
            best = max(problem.types, key=lambda t: t.capacity[r])
            largest = max(must, key=lambda g: g.count * min(q[r] for q in g.requests))
            more = -(-(asked - there) // best.capacity[r]) if best.capacity[r] else 0
            reasons.append(
                f"{_said(resource, asked)} are asked for and all nodes have {_said(resource, there)}; {largest.name} asks "
                f"for most; {f'add {_nodes(more)} of type {best.name}' if more else 'add nodes that have it'}."
            )
    return reasons


def _limits(problem: Problem, numbered: list[tuple[int, InstanceGroup]]) -> list[str]:
    """Return the groups of which even empty nodes hold too few."""
    if any(t.supply is None for t in problem.types):
        return []
    reasons = []
    for g, group in numbered:
        per_node = [int(problem.most[t, problem.group_of == g].max()) for t in range(len(problem.types))]
        room = sum(n * (t.supply or 0) for n, t in zip(per_node, problem.types, strict=True))
        if room < group.count:
            limit = "" if group.max_per_node is None else f" at most {group.max_per_node} per node,"
            nodes = -(-(group.count - room) // max(per_node))
            reasons.append(
                f"{group.name} has {group.count:,} instances,{limit} and all nodes, empty, hold {room:,}; "
                f"add {_nodes(nodes)} or allow more per node."
            )
    return reasons


def _too_few_racks(problem: Problem) -> list[str]:
    """Return the applications of which the racks they may run in hold too few, by the largest share per rack."""
    reasons = []
    for name, groups in problem.applications.items():
        must = [g for g in groups if problem.groups[g].missing_cost is None]
        count = sum(problem.groups[g].count for g in must)
        able = [bool(row.any()) for row in problem.most[:, np.isin(problem.group_of, must)]]
        racks = {t.rack for t, is_able in zip(problem.types, able, strict=True) if is_able}
        # A node type without a rack is under no such limit.
        if not problem.rack_limits or not count or None in racks:
            continue
        each = next(limit for (owner, _), limit in problem.rack_limits.items() if owner == name)
        if each * len(racks) < count:
            reasons.append(
                f"{name} has {count:,} instances, at most {each:,} of them per rack, and may run in {len(racks):,} "
                f"rack{'s' if len(racks) > 1 else ''}; raise rack_share or add racks: it needs {-(-count // each):,}."
            )
    return reasons


def _relaxed(problem: Problem) -> list[str]:
    """Return which constraint, taken away alone, makes a placement possible, and what is missing otherwise."""
    from gputwin.optimization.placement.solve import place

    def is_possible(changed: Problem) -> bool:
        return place(changed, seconds=_SECONDS, explain=False).packing is not None

    reasons = []
    unlimited = replace(problem, groups=tuple(replace(g, max_per_node=None) for g in problem.groups))
    if any(g.max_per_node is not None for g in problem.groups) and is_possible(unlimited):
        reasons.append("Without per-node limits everything fits; raise max_per_node of " + _tightest(problem) + ".")
    if problem.conflicts and is_possible(replace(problem, conflicts=frozenset())):
        pairs = ", ".join(" and ".join(sorted(pair)) for pair in sorted(problem.conflicts, key=sorted))
        reasons.append(f"Without anti-affinity everything fits; let {pairs} share nodes.")
    if problem.rack_share is not None and is_possible(replace(problem, rack_share=None)):
        reasons.append("Without the limit per rack everything fits; raise rack_share or add racks.")
    loose = tuple(replace(g, missing_cost=1 if g.missing_cost is None else 0) for g in problem.groups)
    free = tuple(replace(t, cost=0) for t in problem.types)
    partial = place(replace(problem, groups=loose, types=free), seconds=_SECONDS, explain=False).packing
    if partial is not None:
        left = [
            f"{m:,} of {g.name}"
            for g, m in zip(problem.groups, partial.missing, strict=True)
            if m and g.missing_cost is None
        ]
        if left:
            reasons.append(f"At best, not placed: {', '.join(left[:5])}.")
    more = tuple(replace(t, cost=0) for t in problem.types)
    extra = tuple(replace(t, name=f"more {t.name}", cost=1, supply=None) for t in problem.types)
    widened = tuple(
        g if g.node_types is None else replace(g, node_types=g.node_types | {f"more {n}" for n in g.node_types})
        for g in problem.groups
    )
    grown = place(replace(problem, groups=widened, types=(*more, *extra)), seconds=_SECONDS, explain=False).packing
    if grown is not None:
        added = [f"{n} {name}" for name, n in grown.nodes_by_type(replace(problem, types=(*more, *extra))).items() if n]
        wanted = [a for a in added if " more " in f" {a}"]
        reasons.append(f"Everything fits with {', '.join(wanted)} nodes.")
    return reasons or ["No placement satisfies all constraints together."]


def _tightest(problem: Problem) -> str:
    limited = [g for g in problem.groups if g.max_per_node is not None]
    return min(limited, key=lambda g: (g.max_per_node or 0) / max(g.count, 1)).name
