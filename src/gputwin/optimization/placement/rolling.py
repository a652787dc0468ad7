"""Placement over time: online rules, the same with moves at each period, with and without a forecast, and in hindsight.

Instances come and go one by one as in the trace. Online, each goes where a rule puts it and stays. Re-optimised, at the
start of each period nodes are emptied within a budget of moves (`consolidate`): as if nobody came any more, with room kept
for a forecast of who comes (`outlook`), or knowing who comes and who leaves in the period (clairvoyant). The bound of each
step is that of packing everybody anew with free moves.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from time import process_time

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.units import HOUR, format_duration, percent
from gputwin.optimization.placement.bounds import simple_bound
from gputwin.optimization.placement.columns import Generated, generate
from gputwin.optimization.placement.consolidate import consolidate
from gputwin.optimization.placement.demand import lives, numbered_groups, problem_of
from gputwin.optimization.placement.heuristics import Floats, node_prices, weights_of
from gputwin.optimization.placement.master import Column
from gputwin.optimization.placement.online import best_fit, fgd, typical_of
from gputwin.optimization.placement.outlook import Lives, forecast, newcomers
from gputwin.optimization.placement.problem import Ints, Problem
from gputwin.optimization.placement.standing import Rule, Standing
from gputwin.simulation.cluster import Cluster
from gputwin.traces.dataset import Trace

ONLINE, FRAGMENTATION = "best fit", "FGD"
MOVES, FORECAST, CLAIRVOYANT = "moves, no forecast", "moves, forecast", "moves, clairvoyant"
_MOST_STEPS = 2000


@dataclass(frozen=True)
class Rolling:
    """One row per period and policy."""

    table: pl.DataFrame
    """time (start of the period), policy, nodes (after the moves), moves, bound, node_hours, peak_nodes, allocated_hours
    (node-hours times the share allocated, resources weighted by scarcity), missing (instances that found no node)"""
    coverage: float | None
    """Share of periods in which no more was added than the forecast had kept room for; None without a forecast."""

    def summary(self) -> pl.DataFrame:
        """Return per policy: mean and peak nodes, allocated share, gain over online best fit, moves and what they bought."""
        hours = pl.col("node_hours").sum()
        frame = self.table.group_by("policy", maintain_order=True).agg(
            (hours / pl.col("hours").sum()).alias("mean_nodes"),
            pl.col("peak_nodes").max().alias("peak_nodes"),
            (pl.col("nodes") / pl.col("bound") - 1).mean().alias("above_bound"),
            (pl.col("allocated_hours").sum() / hours).alias("allocated"),
            pl.col("moves").sum().alias("moves"),
            pl.col("missing").sum().alias("missing"),
            hours.alias("node_hours"),
        )
        base = frame.row(0, named=True)
        saved = base["node_hours"] - pl.col("node_hours")
        return frame.with_columns(
            (pl.col("allocated") - base["allocated"]).alias("gained"),
            pl.when(pl.col("moves") > 0).then(saved / pl.col("moves")).alias("node_hours_saved_per_move"),
        )

    def verdict(self) -> str:
        """Return what moves and the forecast bring, in a sentence or two."""
        of = {row["policy"]: row for row in self.summary().to_dicts()}
        online, planned, blind, best = (of[name] for name in (ONLINE, FORECAST, MOVES, CLAIRVOYANT))
        text = (
            f"With the forecast, {planned['moves']:,} moves keep {planned['mean_nodes']:,.1f} nodes in use on average "
            f"instead of {online['mean_nodes']:,.1f} online ({100 * planned['gained']:+.1f} points of allocation); "
            f"without it {blind['moves']:,} moves keep {blind['mean_nodes']:,.1f}, knowing who comes and leaves "
            f"{best['moves']:,} keep {best['mean_nodes']:,.1f}."
        )
        if self.coverage is None:
            return text
        return f"{text} The forecast kept room for all who came in {percent(self.coverage, 0)} of periods."


def roll(
    trace: Trace,
    cluster: Cluster,
    *,
    begin: float,
    end: float,
    step: float,
    most_moves: int = 200,
    quantile: float = 0.8,
    seconds: float = 60.0,
    is_supply_limited: bool = False,
    progress: Callable[[str], None] = lambda text: None,
) -> Rolling:
    """Return nodes over time under each policy, and the bound of each step, for which CPU `seconds` are spent in all.

    Up to `begin` all policies place online, so that the first period starts from a placement that has grown.
    """
    if not (step > 0 and math.isfinite(end) and end > begin) or (end - begin) / step > _MOST_STEPS:
        raise UserError(f"steps of {step:g} s from {begin:g} to {end:g} s are none or too many; choose wider ones")
    if most_moves < 0:
        raise UserError(f"{most_moves} moves per period is no budget; give 0 or more")
    if not 0 < quantile < 1:
        raise UserError(f"a quantile of {quantile:g} is none; give one between 0 and 1, as in 0.8")
    demand = _Demand.of(trace, cluster, begin, end, is_supply_limited)
    progress("online, up to the first period")
    policies = demand.policies(begin)
    columns: tuple[Column, ...] = ()
    times = np.arange(begin, end - step * 1e-9, step)
    rows, covered, left = [], [], seconds
    for k, time in enumerate(times.tolist()):
        progress(f"period {k + 1} of {len(times)}")
        until = min(time + step, end)
        # The first linear program takes longest; the others start from its patterns.
        began = process_time()
        bound, worth, columns = demand.relaxed(time, columns, left / min(len(times) - k, 3))
        left -= process_time() - began
        truth = newcomers(demand.lives, time, until)
        expected = forecast(demand.lives, time, step, quantile, demand.since)
        covered.append(float(demand.lives.size[truth].sum()) <= float(demand.lives.size[expected].sum()) + 1e-9)
        for policy in policies:
            policy.hours = policy.allocated = 0.0
            moves = 0
            if policy.name == MOVES:
                moves = consolidate(policy.standing, most_moves, worth=worth)
            elif policy.name == FORECAST:
                who = demand.lives.group[expected].tolist()
                moves = consolidate(policy.standing, most_moves, who, worth=worth)
            elif policy.name == CLAIRVOYANT:
                leaving = {i for i in policy.standing.homes if demand.lives.end[i] <= until}
                who = demand.lives.group[truth].tolist()
                moves = consolidate(policy.standing, most_moves, who, leaving, worth)
            nodes = policy.peak = policy.standing.nodes
            missing = policy.go(until)
            spent = (until - time) / HOUR
            rows.append(
                (time, policy.name, nodes, moves, bound, policy.hours, policy.peak, policy.allocated, missing, spent)
            )
    names = [
        "time",
        "policy",
        "nodes",
        "moves",
        "bound",
        "node_hours",
        "peak_nodes",
        "allocated_hours",
        "missing",
        "hours",
    ]
    table = pl.DataFrame(rows, schema=names, orient="row")
    return Rolling(table, float(np.mean(covered)) if covered else None)


@dataclass(frozen=True)
class _Demand:
    """Who comes and goes when, and what is known of them at the first period."""

    problem: Problem
    lives: Lives
    weights: Floats
    counts: Ints
    """Instances of each group that came by the first period: what the typical workload is made from."""
    since: float

    @classmethod
    def of(cls, trace: Trace, cluster: Cluster, begin: float, end: float, is_supply_limited: bool) -> _Demand:
        seen = lives(trace).filter(pl.col("begin") <= end).sort("begin", maintain_order=True)
        groups, number = numbered_groups(seen)
        problem = problem_of(groups, cluster, is_supply_limited=is_supply_limited)
        repeat = seen["instances"].to_numpy()
        group = np.repeat(number.to_numpy(), repeat)
        came = np.repeat(seen["begin"].to_numpy(), repeat)
        went = np.repeat(seen["end"].to_numpy(), repeat)
        # What is scarce is judged by who has come so far: the future must not decide where anybody goes.
        counts = np.bincount(group[came <= begin], minlength=len(groups))
        if not ((came <= begin) & (went > begin)).any():
            raise UserError(f"nothing is known to be alive at {format_duration(begin)}; give another time with --at")
        known = replace(problem, groups=tuple(replace(g, count=int(n)) for g, n in zip(groups, counts, strict=True)))
        weights = weights_of(known)
        share = problem.sizes / np.maximum(problem.capacities.max(axis=0), 1)
        finite = came[np.isfinite(came)]
        since = float(finite.min()) if finite.size else begin
        return cls(problem, Lives(group, came, went, (share @ weights)[group]), weights, counts, since)

    def policies(self, begin: float) -> list[_Policy]:
        """Return the policies, each placed online up to a time; those with moves go on from best fit's placement."""
        fit = _Policy(ONLINE, self, self._standing(best_fit(self.weights, self.problem.capacities)))
        gradient = _Policy(
            FRAGMENTATION, self, self._standing(fgd(typical_of(self.problem, self.counts), self.problem))
        )
        for policy in (fit, gradient):
            policy.go(begin)
        return [fit, gradient, *(fit.copy(name) for name in (MOVES, FORECAST, CLAIRVOYANT))]

    def _standing(self, rule: Rule) -> Standing:
        return Standing(self.problem, rule, node_prices(self.problem, self.weights))

    def relaxed(
        self, time: float, columns: Iterable[Column], seconds: float
    ) -> tuple[int, tuple[Floats, ...], tuple[Column, ...]]:
        """Return how many nodes everybody alive at a time needs at least, what instances are worth, and the patterns met.

        The worth of an instance of each group per node type is the linear program's price, as a share of the node's cost.
        """
        there = (self.lives.begin <= time) & (self.lives.end > time)
        counts = np.bincount(self.lives.group[there], minlength=len(self.problem.groups))
        # Who is not there has no part in the linear program, not even as a row of zeros: it may come later or never.
        present = np.flatnonzero(counts).tolist()
        number = {g: i for i, g in enumerate(present)}
        groups = tuple(replace(self.problem.groups[g], count=int(counts[g])) for g in present)
        problem = replace(self.problem, groups=groups)
        known = [
            (t, tuple((number[g], n) for g, n in pattern))
            for t, pattern in columns
            if all(n <= counts[g] for g, n in pattern)
        ]
        generated = generate(problem, known, deadline=process_time() + seconds)
        met = tuple((t, tuple((present[c], n) for c, n in pattern)) for t, pattern in generated.columns)
        worth = np.zeros((len(problem.types), len(counts)))
        worth[:, present] = worth_of(problem, generated, self.weights)
        return max(generated.bound, simple_bound(problem)), tuple(worth), met


def worth_of(problem: Problem, generated: Generated, weights: Floats) -> Floats:
    """Return node types × choices: the linear program's price of an instance, as a share of the node's cost."""
    proof = generated.proof
    if not proof.worth:
        # No prices in the time given: an instance is worth its share of a node.
        share = problem.sizes / np.maximum(problem.capacities.max(axis=0), 1) @ weights
        return np.tile(share, (len(problem.types), 1))
    return np.array([w * float(proof.shrink / p) for w, p in zip(proof.worth, proof.node_prices, strict=True)])


@dataclass
class _Policy:
    """A standing placement under one policy as time goes on, and what it used since it was last asked."""

    name: str
    demand: _Demand
    standing: Standing
    now: float = -math.inf
    next: int = 0
    ends: list[tuple[float, int]] = field(default_factory=list)
    hours: float = 0.0
    peak: int = 0
    allocated: float = 0.0

    def go(self, until: float) -> int:
        """Return the instances that found no node, after all that happens up to and including a time."""
        lives, missing = self.demand.lives, 0
        while True:
            came = lives.begin[self.next] if self.next < len(lives.begin) else math.inf
            went = self.ends[0][0] if self.ends else math.inf
            time = min(came, went)
            if time > until:
                break
            self._pass(time)
            if went <= came:
                self.standing.take(heapq.heappop(self.ends)[1])
            else:
                instance, self.next = self.next, self.next + 1
                if lives.end[instance] <= came:
                    continue
                if self.standing.arrive(instance, int(lives.group[instance])):
                    heapq.heappush(self.ends, (float(lives.end[instance]), instance))
                    self.peak = max(self.peak, self.standing.nodes)
                else:
                    missing += 1
        self._pass(until)
        return missing

    def copy(self, name: str) -> _Policy:
        """Return another policy that goes on from the same placement."""
        return replace(self, name=name, standing=self.standing.copy(), ends=list(self.ends))

    def _pass(self, time: float) -> None:
        """Count what is in use until a time."""
        hours = (time - self.now) / HOUR if math.isfinite(self.now) else 0.0
        self.now = time
        if hours > 0:
            self.hours += hours * self.standing.nodes
            self.allocated += hours * self.standing.nodes * self._share()

    def _share(self) -> float:
        """Return the share of the nodes in use that is allocated, resources weighted by how scarce they are."""
        standing, problem = self.standing, self.demand.problem
        whole = standing.used @ problem.capacities
        there = whole > 0
        weights = self.demand.weights[there]
        return float(standing.taken[there] / whole[there] @ weights / max(weights.sum(), 1e-12))
