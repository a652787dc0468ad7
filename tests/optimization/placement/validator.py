"""What a packing must satisfy, checked from the problem's data alone: nothing of the optimiser is used."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

from gputwin.optimization.placement.problem import Packing, Problem

WHOLE = 1000


def violations(problem: Problem, packing: Packing) -> list[str]:
    """Return every rule the packing breaks, in words."""
    broken: list[str] = []
    placed: Counter[int] = Counter()
    nodes: Counter[int] = Counter()
    racks: Counter[tuple[str, str]] = Counter()
    rows = [(g, k) for g, group in enumerate(problem.groups) for k in range(len(group.requests))]
    for use in packing.uses:
        kind = problem.types[use.node_type]
        nodes[use.node_type] += use.nodes
        if use.nodes < 1 or any(n < 1 for _, n in use.pattern):
            broken.append("an empty use")
        held: Counter[str] = Counter()
        for choice, n in use.pattern:
            g, _ = rows[choice]
            group = problem.groups[g]
            placed[g] += n * use.nodes
            held[group.application or group.name] += n
            if group.node_types is not None and kind.name not in group.node_types:
                broken.append(f"{group.name} on {kind.name}")
            if kind.rack is not None:
                racks[group.application or group.name, kind.rack] += n * use.nodes
        for r, resource in enumerate(problem.resources):
            taken = sum(problem.groups[rows[c][0]].requests[rows[c][1]][r] * n for c, n in use.pattern)
            if taken > kind.capacity[r]:
                broken.append(f"{resource}: {taken} of {kind.capacity[r]} on {kind.name}")
        for choice, _ in use.pattern:
            group = problem.groups[rows[choice][0]]
            if group.max_per_node is not None and held[group.application or group.name] > group.max_per_node:
                broken.append(f"{group.name}: more than {group.max_per_node} on a node")
        for pair in problem.conflicts:
            if all(held[a] for a in pair):
                broken.append(f"{sorted(pair)} share a node")
        if problem.has_shares and not devices_suffice(problem, use.node_type, use.pattern):
            broken.append(f"shares do not fit on the GPUs of {kind.name}")
    for t, kind in enumerate(problem.types):
        if kind.supply is not None and nodes[t] > kind.supply:
            broken.append(f"{nodes[t]} nodes of {kind.name}, {kind.supply} exist")
    for g, group in enumerate(problem.groups):
        if placed[g] + packing.missing[g] != group.count:
            broken.append(f"{group.name}: {placed[g]} placed, {packing.missing[g]} missing, {group.count} in all")
        if packing.missing[g] and group.missing_cost is None:
            broken.append(f"{group.name}: {packing.missing[g]} must be placed and are not")
    if problem.rack_share is not None:
        total: Counter[str] = Counter()
        for group in problem.groups:
            total[group.application or group.name] += group.count
        for (owner, rack), n in racks.items():
            if n > max(int(total[owner] * problem.rack_share), 1):
                broken.append(f"{owner}: {n} of {total[owner]} in rack {rack}")
    return broken


def devices_suffice(problem: Problem, node_type: int, pattern: tuple[tuple[int, int], ...]) -> bool:
    """Return whether the instances fit on single devices, by trying every assignment (tiny cases only)."""
    rows = [(g, k) for g, group in enumerate(problem.groups) for k in range(len(group.requests))]
    wanted = [problem.groups[rows[c][0]] for c, n in pattern for _ in range(n) if problem.groups[rows[c][0]].gpus]
    gpus = problem.types[node_type].gpus
    states = {(WHOLE,) * gpus}
    for group in sorted(wanted, key=lambda g: -g.gpu_milli):
        following = set()
        for state in states:
            for chosen in combinations(range(gpus), group.gpus):
                if all(state[d] >= group.gpu_milli for d in chosen):
                    left = [free - group.gpu_milli * (d in chosen) for d, free in enumerate(state)]
                    following.add(tuple(sorted(left)))
        states = following
    return bool(states)
