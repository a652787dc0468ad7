"""A batch trace on a fixed cluster and on autoscaled pools: cost, waits, churn and lost work side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputwin.autoscaling.nodes.bill import NodeBill, bill_nodes
from gputwin.autoscaling.nodes.drive import NodeEvent, PoolDriver
from gputwin.autoscaling.nodes.spec import Layout, NodePools, layout_of
from gputwin.autoscaling.nodes.supply import SpotSupply
from gputwin.core.percentiles import percentile
from gputwin.core.units import HOUR
from gputwin.simulation.batch import Batch, workers_for
from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES
from gputwin.simulation.engine.state.lives import BY_DRAIN, BY_FAILURE, SEGMENTS
from gputwin.simulation.engine.world import GAVE_UP, WAITS, World
from gputwin.simulation.goodput import goodput_of
from gputwin.simulation.interruptions import Checkpoints, Pool
from gputwin.simulation.machines import cluster_models
from gputwin.simulation.rules import Changes, Scheduler
from gputwin.simulation.run import Run, run
from gputwin.simulation.waits import job_times
from gputwin.simulation.workload import Workload, workload_of
from gputwin.traces.dataset import Trace

Progress = Callable[[str], None]
FIXED = "fixed"
_DECIDING = 5
"""A job in pools takes as long to simulate as this many on a fixed cluster, for the decisions."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PoolScore:
    """How one way to size the nodes did on a trace."""

    rule: str
    spot_share: float
    seed: int
    cost: float
    allocated_cost: float
    idle_cost: float
    spot_cost: float
    mean_nodes: float
    mean_wait_seconds: float
    p95_wait_seconds: float
    p99_wait_seconds: float
    startup_wait_seconds: float
    """Mean seconds that a job waited for nodes that were booting."""
    launches: int
    removals: int
    reclaims: int
    refused: int
    longest_chain: int
    stops: int
    """How often jobs were stopped because their node left."""
    lost_gpu_hours: float
    """GPU time of work done again, or in vain."""
    overhead_gpu_hours: float
    """GPU time of saving and restarting."""
    unfinished: int
    """Jobs that were never served, or gave up."""
    gpu_hours: float
    """GPU-hours that jobs held within the window that is billed."""
    slow_wait_causes: Mapping[str, float] = field(default_factory=dict)
    """Mean seconds by cause that the slowest 1 % of jobs waited; they add up to their mean wait."""
    at_limit: Mapping[str, float] = field(default_factory=dict)
    """Share of the decisions made while jobs waited at which no more nodes of a type could be had, by type."""
    delay_quantiles: Mapping[str, float] = field(default_factory=dict)
    """Of the jobs that were stopped: how much longer each took than its work alone, s (lost work, restarts, saves)."""
    stopped_jobs: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the score as plain data."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class PoolOutcome:
    """A score, the node events and the raw run it comes from."""

    score: PoolScore
    events: tuple[NodeEvent, ...]
    bill: NodeBill
    jobs: int
    run: Run | None = None
    """None where many were compared: their worlds would take much memory."""


@dataclass(frozen=True)
class PoolOptions:
    """What all variants have in common."""

    scheduler: Scheduler = field(default_factory=lambda: Scheduler("fifo", "greedy", "best-fit"))
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    supply: SpotSupply = field(default_factory=SpotSupply)
    seed: int = 0


@dataclass(frozen=True)
class Variant:
    """One way to size the nodes: pools with a rule and a largest share of spot nodes, or every node up all the time."""

    pools: NodePools
    spot_share: float
    is_fixed: bool = False


def simulate_fixed(pools: NodePools, trace: Trace, options: PoolOptions, on_progress: Any = None) -> PoolOutcome:
    """Return what happens with every node up all the time, bought on demand."""
    layout = layout_of(pools)
    workload = workload_of(trace, cluster_models(layout.cluster))
    done = run(workload, layout.cluster, options.scheduler, seed=options.seed, on_progress=on_progress)
    return _outcome(FIXED, 0.0, options.seed, done, layout, workload, PoolDriver(pools, layout))


def simulate_pools(
    pools: NodePools,
    trace: Trace,
    options: PoolOptions,
    spot_share: float = 0.0,
    on_progress: Callable[[World], None] | None = None,
) -> PoolOutcome:
    """Return what happens when the pools' rule sizes them."""
    layout = layout_of(pools, spot_share)
    workload = workload_of(trace, cluster_models(layout.cluster))
    driver = PoolDriver(pools, layout, options.supply, options.seed)
    nodes = tuple(range(layout.cluster.node_count))
    if not pools.movable and not any(lane.is_spot for lane in layout.lanes):
        # Nothing ever stops a job, so none needs to save its work.
        options = replace(options, checkpoints=Checkpoints())
    saves = 0 < options.supply.notice_seconds >= options.checkpoints.save_seconds
    checkpoints = replace(options.checkpoints, on_drain=saves and math.isfinite(options.checkpoints.interval_seconds))
    changes = Changes(pool=Pool(nodes, layout.always_up), checkpoints=checkpoints)
    done = run(
        workload,
        layout.cluster,
        options.scheduler,
        seed=options.seed,
        changes=changes,
        on_progress=on_progress,
        drive=driver,
    )
    return _outcome(pools.rule, spot_share, options.seed, done, layout, workload, driver)


def compare_pools(
    pools: NodePools,
    trace: Trace,
    options: PoolOptions,
    *,
    rules: Sequence[str],
    spot_shares: Sequence[float],
    seeds: Sequence[int],
    step: Progress = lambda text: None,
) -> list[PoolOutcome]:
    """Return the fixed cluster, then each rule with each share of spot nodes and each seed of boots and reclaims."""
    variants = [Variant(pools, 0.0, is_fixed=True)]
    for rule in rules:
        made = replace(pools, rule=rule, settings=pools.settings if rule == pools.rule else {})
        variants += [Variant(made, share) for share in spot_shares]
    return [outcome for runs in simulate_variants(variants, trace, options, seeds, step) for outcome in runs]


def simulate_variants(
    variants: Sequence[Variant], trace: Trace, options: PoolOptions, seeds: Sequence[int], step: Progress
) -> list[list[PoolOutcome]]:
    """Return the outcomes of each way to size the nodes: one, or one a seed where there are spot nodes.

    Many jobs are simulated on all processors, a run on each at a time; the outcomes do not depend on that.
    """
    calls = [(k, seed) for k, v in enumerate(variants) for seed in (seeds if v.spot_share > 0 else seeds[:1])]
    found: list[list[PoolOutcome]] = [[] for _ in variants]
    with Batch(workers=workers_for(trace.tasks.height * len(calls) * _DECIDING)) as batch:
        shared = batch.share((trace, options))
        step(f"run 1 of {len(calls)}")
        outcomes = batch.map(
            _simulate,
            [(shared, variants[k], seed) for k, seed in calls],
            lambda done, of: step(f"run {min(done + 1, of)} of {of}"),
        )
    for (k, _), outcome in zip(calls, outcomes, strict=True):
        found[k].append(outcome)
    return found


def _simulate(shared: tuple[Trace, PoolOptions], variant: Variant, seed: int) -> PoolOutcome:
    trace, options = shared
    if variant.is_fixed:
        return replace(simulate_fixed(variant.pools, trace, options), run=None)
    return replace(simulate_pools(variant.pools, trace, replace(options, seed=seed), variant.spot_share), run=None)


def _outcome(
    rule: str, spot_share: float, seed: int, done: Run, layout: Layout, workload: Workload, driver: PoolDriver
) -> PoolOutcome:
    world, jobs = done.world, done.world.queue.jobs
    window = workload.span
    billed = bill_nodes(done, layout, window, driver.supply.prices)
    waits = job_times(done).wait
    waits = waits[np.isfinite(waits)]
    changed = bool(world.settings["changes"][0])
    share = world.causes.share + world.lives.earlier if changed else world.causes.share
    started = ~np.isnan(jobs["start"])
    startup = share[started, CAUSE_NAMES.index("node_startup")]
    stops = 0
    delays: dict[str, float] = {}
    stopped = 0
    if changed:
        why = world.lives.segments["why"][: world.lives.counts[SEGMENTS]]
        lives = world.lives.records
        left = np.isin(why, (BY_DRAIN, BY_FAILURE))
        stops = int(left.sum())
        who = np.unique(world.lives.segments["job"][: world.lives.counts[SEGMENTS]][left])
        stopped = int(who.size)
        delay = (lives["lost"] + lives["overheads"])[who]
        if stopped:
            delays = {f"p{q}": percentile(delay, q / 100) for q in (50, 95, 99)} | {"max": float(delay.max())}
    gpus = world.machines.nodes["gpu_count"]
    p95, p99 = (percentile(waits, q) if waits.size else 0.0 for q in (0.95, 0.99))
    score = PoolScore(
        rule,
        spot_share,
        seed,
        billed.cost.compute,
        billed.cost.allocated,
        billed.cost.idle,
        billed.spot_cost,
        billed.mean_nodes,
        float(waits.mean()) if waits.size else 0.0,
        float(p95),
        float(p99),
        float(startup.mean()) if startup.size else 0.0,
        driver.log.count("launched"),
        driver.log.count("removed"),
        driver.log.count("reclaimed"),
        driver.log.count("refused"),
        driver.log.longest_chain,
        stops,
        *_wasted(done),
        int(np.isin(jobs["outcome"], (WAITS, GAVE_UP)).sum()),
        float((billed.allocated_seconds * gpus).sum()) / HOUR,
        _slow_causes(job_times(done).wait, share),
        {name: count / driver.log.asked for name, count in driver.log.at_limit.items()},
        delays,
        stopped,
    )
    return PoolOutcome(score, tuple(driver.log.events), billed, workload.size, done)


def _wasted(done: Run) -> tuple[float, float]:
    """Return the GPU-hours of work done again, and of saving and restarting; none where nothing can stop a job."""
    if not done.world.settings["changes"][0]:
        return 0.0, 0.0
    parts = goodput_of(done)
    return float(parts["lost_gpu_hours"] or 0.0), float(parts["overhead_gpu_hours"] or 0.0)


def _slow_causes(waits: Floats, share: Floats) -> dict[str, float]:
    """Return the mean seconds by cause of the slowest 1 % of jobs that started."""
    known = np.isfinite(waits)
    if not known.any() or waits[known].max() <= 0:
        return {}
    slow = known & (waits >= np.quantile(waits[known], 0.99)) & (waits > 0)
    means = share[slow].mean(axis=0)
    return {name: float(seconds) for name, seconds in zip(CAUSE_NAMES, means, strict=True) if seconds > 0}
