"""The capacity plan: how many nodes, what is left over or missing, what it costs, and how long it lasts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gputwin.core.errors import UserError
from gputwin.core.units import WHOLE_GPU_MILLI, format_duration
from gputwin.optimization.capacity.bracket import offered_share
from gputwin.optimization.capacity.evaluate import (
    Evaluator,
    Point,
    Setting,
    describe_points,
    evaluator,
    resample,
    setting_of,
    usable_workers,
)
from gputwin.optimization.capacity.levers import Lever, pull
from gputwin.optimization.capacity.scale import Counts, mix_of
from gputwin.optimization.capacity.search import Found, least
from gputwin.optimization.capacity.target import Target, parse_target
from gputwin.simulation.cluster import MOST_NODES, Cluster
from gputwin.simulation.simulate import Scheduler
from gputwin.traces.dataset import Trace

_YEAR_HOURS = 8766
_MOST_TIMES = 16
"""A target that sixteen times the cluster misses is taken as impossible."""


@dataclass(frozen=True)
class Plan:
    """The answer, and all that was simulated on the way to it."""

    cluster: Cluster
    target: Target
    growth: float
    theory_nodes: int
    """What theory alone asks for: where the search began."""
    answer: Point | None
    """None where no number of such nodes meets the target."""
    one_fewer: Point | None
    """The size below, which misses it; None where the smallest cluster meets it."""
    points: tuple[Point, ...]
    load_gpus: float
    """Mean GPUs asked for."""
    chance_one_fewer_misses: float | None
    """Over days drawn with replacement."""
    levers: tuple[Lever, ...]
    jobs: int

    @property
    def nodes_by_type(self) -> dict[str, int]:
        """Return the planned nodes of each group."""
        if self.answer is None:
            return {}
        return {g.name: n for g, n in zip(self.cluster.groups, self.answer.counts, strict=True)}

    @property
    def headroom(self) -> float | None:
        """Return how many more nodes the given cluster has than planned, as a share of the plan; negative: missing."""
        return None if self.answer is None else self.cluster.node_count / self.answer.nodes - 1

    @property
    def cost_per_hour(self) -> float | None:
        """Return the price of the planned nodes, per hour; None where a price is not given."""
        if self.answer is None or any(g.price_per_hour is None for g in self.cluster.groups):
            return None
        return sum((g.price_per_hour or 0.0) * n for g, n in zip(self.cluster.groups, self.answer.counts, strict=True))

    @property
    def lasting_growth(self) -> float | None:
        """Return the further growth of demand after which the given cluster is too small; None without an answer.

        Square-root staffing (Halfin and Whitt, 1981): capacity = load + β·√load, β from the answer. Below 1 the cluster
        is too small already.
        """
        if self.answer is None or self.load_gpus <= 0:
            return None
        spare = (self.answer.gpus - self.load_gpus) / math.sqrt(self.load_gpus)
        root = (-spare + math.sqrt(spare**2 + 4 * self.cluster.gpu_count)) / 2
        return root**2 / self.load_gpus

    def verdict(self) -> str:
        """Return the answer in sentences."""
        return " ".join(_sentences(self))

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        answer, fewer = self.answer, self.one_fewer
        return {
            "target": self.target.name,
            "target_seconds": self.target.seconds,
            "growth": self.growth,
            "jobs": self.jobs,
            "cluster": self.cluster.name,
            "cluster_nodes": self.cluster.node_count,
            "cluster_gpus": self.cluster.gpu_count,
            "load_gpus": self.load_gpus,
            "theory_nodes": self.theory_nodes,
            "nodes": None if answer is None else answer.nodes,
            "gpus": None if answer is None else answer.gpus,
            "nodes_by_type": self.nodes_by_type,
            "value_seconds": None if answer is None else answer.value,
            "one_fewer_nodes": None if fewer is None else fewer.nodes,
            "one_fewer_seconds": None if fewer is None or not math.isfinite(fewer.value) else fewer.value,
            "chance_one_fewer_misses": self.chance_one_fewer_misses,
            "utilisation": None if answer is None else answer.utilisation,
            "headroom": self.headroom,
            "cost_per_hour": self.cost_per_hour,
            "lasting_growth": self.lasting_growth,
            "simulated": describe_points({p.counts: p for p in self.points}),
            "levers": [lever.to_json() for lever in self.levers],
            "verdict": self.verdict(),
        }


def plan(
    trace: Trace,
    cluster: Cluster,
    target: Target | str,
    *,
    scheduler: Scheduler | None = None,
    growth: float = 1.0,
    by_model: bool = False,
    what_if: bool = False,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Plan:
    """Return the least nodes, in the cluster's mix, with which the trace's jobs meet the target.

    `growth` multiplies demand. `by_model` then takes away nodes of each GPU model in turn while the target is still met.
    `what_if` simulates other rules and faster GPUs at the answer.
    """
    target = parse_target(target) if isinstance(target, str) else target
    if not (math.isfinite(growth) and growth > 0):
        raise UserError(f"growth must be a positive factor, as in 1.3, not {growth:g}")
    if not cluster.gpu_count:
        raise UserError(f"cluster '{cluster.name}' has no GPUs to plan")
    scheduler = scheduler or Scheduler(backfill="greedy")
    setting = setting_of(trace, cluster, scheduler, target, growth=growth, seed=seed)
    smallest = len(cluster.groups)
    largest = min(max(cluster.node_count * _MOST_TIMES, smallest), MOST_NODES)
    share = offered_share(setting.workload, cluster, target)
    guess = min(max(math.ceil(share * cluster.node_count), smallest), largest)
    with evaluator(setting, usable_workers() if workers is None else workers) as evaluate:
        found = least(
            evaluate,
            lambda nodes: mix_of(cluster, nodes),
            guess,
            smallest,
            largest,
            also=cluster.node_count,
            progress=progress,
        )
        if by_model and found.meets is not None:
            found = _by_model(evaluate, cluster, found, progress)
        levers: tuple[Lever, ...] = ()
        if what_if and found.meets is not None:
            progress("pulling levers")
            levers = pull(trace, setting, found.meets, growth, evaluate.pool)
        points = tuple(evaluate.points.values())
    return Plan(
        cluster,
        target,
        growth,
        guess,
        found.meets,
        found.misses,
        points,
        _load(setting),
        _chance(setting, found),
        levers,
        setting.workload.size,
    )


def _load(setting: Setting) -> float:
    """Return the mean GPUs that would be in use while jobs arrive, if none had to wait."""
    jobs = setting.workload.jobs
    last = float(jobs["submit"][-1])
    held = np.minimum(jobs["duration"], last - jobs["submit"])
    span = last - float(jobs["submit"][0])
    return float((held * jobs["gpu_milli"]).sum()) / WHOLE_GPU_MILLI / span if span > 0 else 0.0


def _by_model(evaluate: Evaluator, cluster: Cluster, found: Found, progress: Callable[[str], None]) -> Found:
    """Return the plan after nodes of each GPU model, the largest share first, were taken away as far as possible."""
    assert found.meets is not None
    counts, misses = found.meets.counts, found.misses
    models = list(dict.fromkeys(g.gpu_model for g in cluster.groups))
    models.sort(key=lambda m: -sum(n * g.gpus for g, n in zip(cluster.groups, counts, strict=True) if g.gpu_model == m))
    for model in models:
        own = [i for i, g in enumerate(cluster.groups) if g.gpu_model == model]
        have = [counts[i] for i in own]
        part = replace(cluster, groups=tuple(replace(cluster.groups[i], count=counts[i]) for i in own), node_ids=None)

        def with_part(nodes: int, own: list[int] = own, part: Cluster = part, base: Counts = counts) -> Counts:
            changed = list(base)
            for i, n in zip(own, mix_of(part, nodes), strict=True):
                changed[i] = n
            return tuple(changed)

        progress(f"fewer {model or 'CPU'} nodes")
        smaller = least(evaluate, with_part, max(int(sum(have) * 0.8), len(own)), len(own), sum(have), also=sum(have))
        if smaller.meets is not None:
            counts, misses = smaller.meets.counts, smaller.misses or misses
    return Found(evaluate([counts])[0], misses)


def _chance(setting: Setting, found: Found) -> float | None:
    """Return how often, over days drawn with replacement, the size below misses the target; the same days for both."""
    if found.meets is None or found.misses is None:
        return None
    fewer = resample(setting.target, setting.workload.jobs["submit"], found.misses.times)
    return float(np.mean([not setting.target.met(value) for value in fewer]))


def _sentences(plan: Plan) -> list[str]:
    target, answer, fewer = plan.target, plan.answer, plan.one_fewer
    demand = "" if plan.growth == 1 else f" at {plan.growth:g} times the demand"
    if answer is None:
        assert fewer is not None
        most = max(plan.points, key=lambda p: p.nodes)
        if most.never_run:
            return [
                f"No number of such nodes meets {target}: {most.never_run:,} of {plan.jobs:,} jobs never run even on "
                f"{most.nodes:,} nodes, since they ask for more than such a node has."
            ]
        return [
            f"No number of such nodes meets {target}: on {most.nodes:,} nodes, {most.nodes / plan.cluster.node_count:.0f} "
            f"times the cluster, {target.name} is still {_seconds(most.value)}."
        ]
    said = [
        f"{answer.nodes:,} nodes ({answer.gpus:,} GPUs) meet {target}{demand}: simulated {_seconds(answer.value)}"
        f" ({_seconds(answer.low)} to {_seconds(answer.high)} in 90 % of draws of its days)."
    ]
    if fewer is None:
        said.append("That is the smallest cluster with one node of each type.")
    else:
        word = "one node fewer" if fewer.nodes == answer.nodes - 1 else f"{fewer.nodes:,} nodes"
        said.append(f"With {word} it is {_seconds(fewer.value)}, which misses it.")
    have = plan.cluster.node_count
    if have >= answer.nodes:
        said.append(f"The cluster's {have:,} nodes leave {have - answer.nodes:,} to spare ({plan.headroom:.1%}).")
    else:
        said.append(f"The cluster's {have:,} nodes are {answer.nodes - have:,} too few.")
    lasts = plan.lasting_growth
    if lasts is not None and lasts > 1:
        said.append(f"They last until demand has grown {lasts:.2f} times, by square-root staffing.")
    if plan.cost_per_hour is not None:
        said.append(
            f"The plan costs {plan.cost_per_hour:,.2f} an hour, {plan.cost_per_hour * _YEAR_HOURS:,.0f} a year."
        )
    return said


def _seconds(value: float) -> str:
    return format_duration(value) if math.isfinite(value) else "without end, since jobs never run"
