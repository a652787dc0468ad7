"""The capacity plan: how many nodes, what is left over or missing, what it costs, and how long it lasts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gputwin.core.display import Shown
from gputwin.core.errors import UserError
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.optimization.capacity.bracket import offered_share
from gputwin.optimization.capacity.evaluate import (
    Evaluator,
    Point,
    Setting,
    describe_points,
    setting_of,
)
from gputwin.optimization.capacity.luck import Luck
from gputwin.optimization.capacity.scale import mix_of, with_counts
from gputwin.optimization.capacity.search import safe_size
from gputwin.optimization.capacity.steps import REACH, Search
from gputwin.optimization.capacity.target import Target, parse_target
from gputwin.optimization.capacity.what_ifs import WhatIf, simulate_what_ifs
from gputwin.simulation.batch import Batch, workers_for
from gputwin.simulation.cluster import MOST_NODES, Cluster
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.simulate import name_of
from gputwin.traces.dataset import Trace
from gputwin.traces.lifetimes import overlap

_MOST_TIMES = 16
"""A target that sixteen times the cluster misses is taken as impossible."""
_MOST_ROUNDS = 5
_RUNS = 50
"""Simulations that a plan takes at the least."""


@dataclass(frozen=True, repr=False)
class Plan(Shown):
    """The answer, and all that was simulated on the way to it."""

    cluster: Cluster
    target: Target
    scenario: Scenario
    """What was simulated, on other numbers of nodes each time."""
    theory_nodes: int
    """What theory alone asks for: where the search began."""
    answer: Point | None
    """The safe size: meets the target with the confidence asked for; None where no number of such nodes does."""
    record: Point | None
    """Least size tried that meets the target on the record itself together with every larger size tried."""
    misses: Point | None
    """The largest size tried that misses it on the record; None where the smallest cluster meets it."""
    luck: Luck | None
    """None where the record itself cannot meet the target."""
    points: tuple[Point, ...]
    load_gpus: float
    """Mean GPUs asked for."""
    what_ifs: tuple[WhatIf, ...]
    jobs: int

    def _title(self) -> str:
        return f"Plan: {self.target} on {self.cluster.name}"

    def _lines(self) -> list[str]:
        return [self.verdict()]

    @property
    def growth(self) -> float:
        """Return the demand planned for, as a multiple of the trace's."""
        return self.scenario.load_scale

    @property
    def planned(self) -> Scenario | None:
        """Return the scenario of the planned nodes: `simulate` gives the plan's figure again."""
        if self.answer is None:
            return None
        return self.scenario.with_(cluster=with_counts(self.cluster, self.answer.counts))

    @property
    def larger(self) -> tuple[Point, ...]:
        """Return the sizes tried that have at least the answer's nodes of each type, and more."""
        if self.answer is None:
            return ()
        planned = self.answer.counts
        return tuple(
            p
            for p in self.points
            if p.counts != planned and all(a >= b for a, b in zip(p.counts, planned, strict=True))
        )

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
        from gputwin.optimization.capacity.verdict import sentences

        return " ".join(sentences(self))

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        answer, record, misses, luck = self.answer, self.record, self.misses, self.luck
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
            "confidence": None if luck is None else luck.confidence,
            "record_nodes": None if record is None else record.nodes,
            "record_value_seconds": None if record is None else record.value,
            "record_nodes_low": None if luck is None else luck.low,
            "record_nodes_high": None if luck is None else luck.high,
            "largest_missing_nodes": None if misses is None else misses.nodes,
            "largest_missing_seconds": None if misses is None or not math.isfinite(misses.value) else misses.value,
            "larger_sizes_tried": len(self.larger),
            "largest_size_tried": max(p.nodes for p in self.points),
            "drawn_records": None if luck is None else luck.records,
            "drawn_records_met": None if luck is None else luck.records_met,
            "block_seconds": None if luck is None else luck.block_seconds,
            "utilisation": None if answer is None else answer.utilisation,
            "headroom": self.headroom,
            "cost_per_hour": self.cost_per_hour,
            "lasting_growth": self.lasting_growth,
            "simulated": describe_points(self.points, self.target),
            "what_ifs": [what_if.to_json() for what_if in self.what_ifs],
            "verdict": self.verdict(),
            "scenario": (self.planned or self.scenario).to_data(),
        }


def plan(
    trace: Trace,
    cluster: Cluster,
    target: Target | str,
    *,
    scenario: Scenario | None = None,
    growth: float = 1.0,
    confidence: float = 0.9,
    by_model: bool = False,
    what_if: bool = False,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Plan:
    """Return the safe number of nodes, in the cluster's mix, with which the trace's jobs meet the target.

    Safe: the record itself meets the target on this size and on every larger size tried, and so does as large a share
    of records made of its days drawn with replacement as `confidence` says. `scenario` has the rules, greedy
    backfilling by default, and all else that goes on; its trace and cluster are those given. `growth` multiplies
    demand. `by_model` takes away nodes of each GPU model in turn while the target is still met. `what_if` simulates
    other rules and faster GPUs at the answer.
    """
    target = parse_target(target) if isinstance(target, str) else target
    if not (math.isfinite(growth) and growth > 0):
        raise UserError(f"growth must be a positive factor, as in 1.3, not {growth:g}")
    if not 0.5 <= confidence < 1:
        raise UserError(f"confidence must be at least 0.5 and below 1, as in 0.9, not {confidence:g}")
    if not cluster.gpu_count:
        raise UserError(f"cluster '{cluster.name}' has no GPUs to plan")
    if scenario is None:
        scenario = Scenario(trace=name_of(trace), backfill="greedy", seed=seed)
    scenario = scenario.with_(
        cluster=cluster,
        load_scale=scenario.load_scale * growth,
        trace_fingerprint=trace.meta.fingerprint or None,
    ).check()
    setting = setting_of(trace, cluster, scenario, target)
    smallest = len(cluster.groups)
    largest = min(max(cluster.node_count * _MOST_TIMES, smallest), MOST_NODES)
    share = offered_share(setting.workload, cluster, target)
    guess = min(max(math.ceil(share * cluster.node_count), smallest), largest)
    workers = workers_for(setting.workload.size * _RUNS) if workers is None else workers
    with Batch(workers=workers) as batch:
        evaluate = Evaluator(setting, batch, progress)
        search = Search(evaluate, cluster, confidence, largest, progress)
        first = [guess, cluster.node_count]
        answer, luck = None, None
        for _ in range(_MOST_ROUNDS):
            found = safe_size(
                evaluate,
                lambda nodes: mix_of(cluster, nodes),
                first,
                smallest,
                largest,
                reach=REACH,
                progress=progress,
            )
            if found.meets is None:
                break
            mix, safe = cluster, found.meets.nodes
            if by_model:
                mix, found = search.by_model(found)
            answer, luck, misses = search.sure(mix, found, safe)
            if not misses:
                break
            # The record itself misses the target on the answer or a larger size: the safe size lies above.
            first = [*first, *misses]
        what_ifs: tuple[WhatIf, ...] = ()
        if what_if and answer is not None:
            progress("simulating what-ifs")
            what_ifs = simulate_what_ifs(trace, setting, answer, batch)
        points = tuple(evaluate.points.values())
    return Plan(
        cluster,
        target,
        scenario,
        guess,
        answer,
        found.meets,
        found.misses,
        luck,
        points,
        _load(setting),
        what_ifs,
        setting.workload.size,
    )


def _load(setting: Setting) -> float:
    """Return the mean GPUs that would be in use over the window, if none had to wait."""
    jobs, (begin, until) = setting.workload.jobs, setting.workload.span
    held = overlap(jobs["submit"], jobs["submit"] + jobs["duration"], begin, until)
    return float((held * jobs["gpu_milli"]).sum()) / WHOLE_GPU_MILLI / (until - begin) if until > begin else 0.0
