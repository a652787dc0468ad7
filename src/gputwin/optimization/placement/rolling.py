"""Placement over time: online placement, the same with instances moved at each step, and the best in hindsight.

Instances come and go as in the trace. Online, each goes where a rule puts it and stays. Re-optimised, at each step the
emptiest nodes are emptied into the others, at most so many moves. The bound of each step is that of packing everybody
anew: what a clairvoyant with free moves would need at least.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.optimization.placement.demand import groups_of, lives, problem_of
from gputwin.optimization.placement.heuristics import SCORES, Nodes, fill
from gputwin.optimization.placement.problem import Problem
from gputwin.optimization.placement.solve import place
from gputwin.simulation.cluster import Cluster
from gputwin.traces.dataset import Trace

_MOST_STEPS = 2000


@dataclass(frozen=True)
class Rolling:
    """One row per step and policy: nodes in use, moves paid; and the bound per step."""

    table: pl.DataFrame
    """time, policy, nodes, moves, bound"""

    def summary(self) -> pl.DataFrame:
        """Return per policy: mean nodes, mean share above the bound, moves in all."""
        return (
            self.table.group_by("policy", maintain_order=True)
            .agg(
                pl.col("nodes").mean().alias("mean_nodes"),
                (pl.col("nodes") / pl.col("bound") - 1).mean().alias("above_bound"),
                pl.col("moves").sum().alias("moves"),
            )
            .sort("mean_nodes", maintain_order=True)
        )


def roll(
    trace: Trace,
    cluster: Cluster,
    *,
    begin: float,
    end: float,
    step: float,
    most_moves: int = 200,
    seconds: float = 10.0,
    rules: tuple[str, ...] = ("best-fit", "dot-product"),
    progress: Callable[[str], None] = lambda text: None,
) -> Rolling:
    """Return nodes over time under each online rule, with and without moves, and the bound of each step."""
    if not step > 0 or not math.isfinite(end) or (end - begin) / step > _MOST_STEPS:
        raise UserError(f"steps of {step:g} s from {begin:g} to {end:g} s are none or too many; choose wider ones")
    known = lives(trace)
    seen = known.filter((pl.col("begin") <= end) & (pl.col("end") > begin))
    whole = problem_of(groups_of(seen), cluster, is_supply_limited=False)
    number = {g.name: i for i, g in enumerate(whole.groups)}
    worlds = {rule: _World(whole, rule) for rule in rules}
    worlds |= {f"{rule} and moves": _World(whole, rule, most_moves) for rule in rules[:1]}
    rows = []
    times = np.arange(begin, end + step / 2, step)
    for time in times:
        progress(f"{(time - begin) / 3600:.0f} h")
        alive = seen.filter((pl.col("begin") <= time) & (pl.col("end") > time))
        present = groups_of(alive)
        counts = np.zeros(len(whole.groups), np.int64)
        for group in present:
            counts[number[group.name]] = group.count
        part = replace(
            whole, groups=tuple(replace(g, count=int(n)) for g, n in zip(whole.groups, counts, strict=True) if n)
        )
        bound = place(part, method="columns", seconds=seconds).bound
        for name, world in worlds.items():
            moves = world.step(counts)
            rows.append((float(time), name, world.used, moves, bound))
    return Rolling(pl.DataFrame(rows, schema=["time", "policy", "nodes", "moves", "bound"], orient="row"))


class _World:
    """Nodes under one rule; who leaves leaves the emptiest nodes first, which is the least any order could free."""

    def __init__(self, problem: Problem, rule: str, most_moves: int = 0) -> None:
        if rule not in SCORES:
            raise UserError(f"unknown rule '{rule}'; known: {', '.join(SCORES)}")
        self.nodes, self.problem, self.rule, self.most_moves = Nodes(problem), problem, rule, most_moves

    @property
    def used(self) -> int:
        return sum(1 for held in self.nodes.held if held)

    def step(self, counts: np.ndarray) -> int:
        """Return the moves made, after the numbers of instances have become these."""
        present = np.zeros_like(counts)
        for held in self.nodes.held:
            for choice, n in held.items():
                present[self.problem.group_of[choice]] += n
        for choice in range(len(self.problem.choices)):
            leaving = int(present[choice] - counts[choice])
            # Who of identical instances left is not known by node: the last placed go first.
            for row in range(len(self.nodes) - 1, -1, -1):
                while leaving > 0 and self.nodes.held[row].get(choice):
                    self.nodes.take(row, choice)
                    leaving -= 1
        fill(self.problem, self.nodes, np.maximum(counts - present, 0), self.rule)
        return self._consolidate() if self.most_moves else 0

    def _consolidate(self) -> int:
        """Return the moves made to empty nodes, the emptiest first, each wholly or not at all."""
        moves = 0
        sizes = {row: sum(held.values()) for row, held in enumerate(self.nodes.held) if held}
        for row in sorted(sizes, key=lambda r: (sizes[r], r)):
            count = sum(self.nodes.held[row].values())
            if moves + count > self.most_moves:
                break
            done: list[tuple[int, int]] = []
            for choice, n in sorted(self.nodes.held[row].items()):
                for _ in range(n):
                    target = self._other(row, choice)
                    if target is None:
                        break
                    self.nodes.take(row, choice)
                    self.nodes.put(target, choice)
                    done.append((target, choice))
            if self.nodes.held[row]:
                for target, choice in done:
                    self.nodes.take(target, choice)
                    self.nodes.put(row, choice)
            else:
                moves += len(done)
        return moves

    def _other(self, row: int, choice: int) -> int | None:
        free = self.nodes.free[: len(self.nodes)]
        able = np.flatnonzero((free >= self.problem.sizes[choice]).all(axis=1))
        used = [int(r) for r in able if r != row and self.nodes.held[int(r)]]
        used.sort(key=lambda r: int(free[r].sum()))
        return next((r for r in used if self.nodes.can_hold(r, choice)), None)
