"""What interrupts jobs besides the scheduler, and what an interruption costs: failures, maintenance, checkpoints."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gputwin.core.errors import UserError
from gputwin.simulation.engine.state.events import DRAIN, NODE_DOWN, NODE_UP, Events, make_events
from gputwin.simulation.engine.state.lives import (
    COSTS,
    EXIT,
    INTERVAL,
    MOST_STOPS,
    RESIZE,
    RESTART,
    SAVE,
    SAVE_LATER,
    SAVE_WHEN_DRAINED,
    SAVE_WHEN_PREEMPTED,
)
from gputwin.simulation.engine.state.outages import FIXED, LOGNORMAL, NEVER, WEIBULL, Outages
from gputwin.simulation.engine.state.records import Floats


@dataclass(frozen=True)
class Checkpoints:
    """When jobs save their work, and what saving and restarting take.

    A checkpoint is saved after each `interval_seconds` of work (0: no work is ever lost); a job that fails goes on from
    the last one. A preempted
    job saves before it stops if `on_preemption`; that and the restart are paid when it runs again.
    """

    interval_seconds: float = math.inf
    save_seconds: float = 0.0
    restart_seconds: float = 0.0
    resize_seconds: float = 0.0
    on_preemption: bool = True
    most_stops: float = 10_000.0
    """A job stopped as often gives up, so that jobs that undo each other's work for ever end all the same."""
    grace_seconds: float | None = None
    """How long a preempted job may take to save before it is killed; the job it makes room for waits that long, or until
    it has saved. None: jobs stop at once, and their save is paid when they run again."""
    stagger: bool = False
    """Jobs save their first checkpoint after a part of an interval, another one each, so that few save at the same time."""
    on_drain: bool = False
    """A job that runs on a draining node until it goes down saves before it stops: there was notice enough."""

    def __post_init__(self) -> None:
        if not self.interval_seconds >= 0:
            raise UserError(f"checkpoint interval is {self.interval_seconds:g} s; give 0 or more")
        if self.interval_seconds == 0 and self.save_seconds > 0:
            raise UserError("checkpoints without an interval must take no time to save; give an interval above 0")
        if self.grace_seconds is not None and not 0 <= self.grace_seconds < math.inf:
            raise UserError(f"checkpoint grace_seconds is {self.grace_seconds:g}; give 0 or more")
        for name in ("save_seconds", "restart_seconds", "resize_seconds"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UserError(f"checkpoint {name} is {getattr(self, name):g}; give 0 or more")

    @property
    def is_staggered(self) -> bool:
        """Whether jobs have an interval to be shifted within."""
        return self.stagger and 0 < self.interval_seconds < math.inf

    @property
    def saves_when_preempted(self) -> bool:
        """Whether a preempted job keeps its work: it saves, and in time."""
        return self.on_preemption and (self.grace_seconds is None or self.save_seconds <= self.grace_seconds)

    @property
    def seconds_of_a_stop(self) -> float:
        """How long a preempted job holds its GPUs again before its work goes on, s."""
        later = self.on_preemption and self.grace_seconds is None
        return self.restart_seconds + (self.save_seconds if later else 0.0)


@dataclass(frozen=True)
class Elasticity:
    """Jobs of several equal instances may run on half, a quarter, … of them, down to `least_share` of what they ask for.

    On a share x of its instances a job does x to the power of `exponent` of its work a second (1: perfect scaling).
    """

    least_share: float = 0.5
    exponent: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.least_share <= 1:
            raise UserError(f"least share of instances is {self.least_share:g}; give more than 0 and at most 1")
        if not 0 < self.exponent <= 1:
            raise UserError(f"scaling exponent is {self.exponent:g}; give more than 0 and at most 1")


def costs_of(checkpoints: Checkpoints) -> Floats:
    """Return what interruptions cost as the engine reads it."""
    costs = np.zeros(COSTS)
    costs[INTERVAL], costs[SAVE] = checkpoints.interval_seconds, checkpoints.save_seconds
    costs[RESTART], costs[RESIZE] = checkpoints.restart_seconds, checkpoints.resize_seconds
    costs[SAVE_WHEN_PREEMPTED], costs[MOST_STOPS] = checkpoints.saves_when_preempted, checkpoints.most_stops
    if checkpoints.grace_seconds is None:
        costs[SAVE_LATER] = checkpoints.save_seconds
    elif checkpoints.on_preemption:
        costs[EXIT] = min(checkpoints.save_seconds, checkpoints.grace_seconds)
    costs[SAVE_WHEN_DRAINED] = checkpoints.on_drain
    return costs


@dataclass(frozen=True)
class Maintenance:
    """A window in which a node is not there: it takes no jobs from `drain_time` on, and is down until `up_time`, s."""

    node: int
    drain_time: float
    down_time: float
    up_time: float = math.inf


@dataclass(frozen=True)
class Pool:
    """Nodes that are started and stopped while the run goes on; `up` are those that are up when it begins."""

    nodes: tuple[int, ...]
    up: tuple[int, ...] = ()


@dataclass(frozen=True)
class Fleet:
    """Outages besides those of single nodes at random: `faults.schedule` makes windows of them. All times in s.

    A failed GPU takes its node out; a rack takes all its nodes out; `log` is a file of failures that are replayed; each
    node is maintained once a period, for which it drains from `maintenance_notice_seconds` before.
    """

    gpu_mtbf_seconds: float = math.inf
    rack_mtbf_seconds: float = math.inf
    rack_repair_seconds: float = 3600.0
    log: str = ""
    maintenance_period_seconds: float = math.inf
    maintenance_seconds: float = 3600.0
    maintenance_notice_seconds: float = 0.0


REPAIRS = ("exponential", "weibull", "lognormal", "fixed")


@dataclass(frozen=True)
class Faults:
    """How nodes fail and are repaired, each by itself, and planned maintenance.

    Time to failure is Weibull of mean `mtbf_seconds` (`shape` 1: exponential, below 1: failures come in bursts, above 1:
    with age). Time to repair has mean `repair_seconds`: 'exponential', 'weibull' with `repair_shape`, 'lognormal' with
    `repair_sigma`, or 'fixed'. Without random failures nodes come back from maintenance at its end only.
    """

    mtbf_seconds: float = math.inf
    shape: float = 1.0
    repair_seconds: float = 3600.0
    repair: str = "exponential"
    repair_sigma: float = 1.0
    maintenance: tuple[Maintenance, ...] = ()
    repair_shape: float = 1.0
    fleet: Fleet | None = None

    def __post_init__(self) -> None:
        if not self.mtbf_seconds > 0:
            raise UserError(f"mean time between failures is {self.mtbf_seconds:g} s; give more than 0")
        if not self.shape > 0:
            raise UserError(f"Weibull shape of failures is {self.shape:g}; give more than 0")
        if not 0 < self.repair_seconds < math.inf:
            raise UserError(f"mean time to repair is {self.repair_seconds:g} s; give more than 0")
        if self.repair not in REPAIRS:
            raise UserError(f"unknown law of repair '{self.repair}'; known: {', '.join(REPAIRS)}")
        for name in ("repair_sigma", "repair_shape"):
            if not 0 < getattr(self, name) < math.inf:
                raise UserError(f"{name} is {getattr(self, name):g}; give more than 0")

    def laws(self) -> Floats:
        """Return the laws of failure and repair as the engine reads them."""
        laws = np.zeros((2, 3))
        if self.mtbf_seconds < math.inf:
            laws[0] = WEIBULL, self.shape, self.mtbf_seconds / math.gamma(1.0 + 1.0 / self.shape)
        else:
            laws[0] = NEVER, 0.0, 0.0
        if self.mtbf_seconds == math.inf:
            laws[1] = NEVER, 0.0, 0.0
        elif self.repair == "fixed":
            laws[1] = FIXED, self.repair_seconds, 0.0
        elif self.repair == "lognormal":
            laws[1] = LOGNORMAL, math.log(self.repair_seconds) - self.repair_sigma**2 / 2, self.repair_sigma
        else:
            shape = self.repair_shape if self.repair == "weibull" else 1.0
            laws[1] = WEIBULL, shape, self.repair_seconds / math.gamma(1.0 + 1.0 / shape)
        return laws


def with_faults(events: Events, outages: Outages, faults: Faults, begin: float, pool: Pool | None = None) -> Events:
    """Return the heap with each node's first failure after `begin`, all maintenance, and the nodes that are off at first."""
    codes: list[tuple[float, int]] = []
    if pool is not None:
        _check_pool(pool, faults, outages.pooled.size)
        outages.pooled[list(pool.nodes)] = True
    if faults.mtbf_seconds < math.inf:
        uniform = _first_uniforms(outages)
        _, shape, scale = outages.laws[0]
        times = begin + scale * (-np.log(uniform)) ** (1.0 / shape)
        codes += [(float(t), (int(NODE_DOWN) << 40) | n) for n, t in enumerate(times)]
        outages.due[:] = times
    for n in sorted(set(pool.nodes) - set(pool.up)) if pool is not None else ():
        # Off before the first job comes, but not before it is known which jobs fit on no node at all.
        outages.due[n] = begin
        codes.append((begin, (int(NODE_DOWN) << 40) | n))
    for window in faults.maintenance:
        for time, kind in ((window.drain_time, DRAIN), (window.down_time, NODE_DOWN), (window.up_time, NODE_UP)):
            if time < math.inf:
                codes.append((time, (int(kind) << 40) | window.node))
    heap = make_events(len(codes) + events.heap.size)
    heap.heap[: len(codes)] = sorted(codes)
    heap.count[0] = len(codes)
    return heap


def _check_pool(pool: Pool, faults: Faults, nodes: int) -> None:
    """Raise a user error where a node of the pool does not exist or has maintenance of its own."""
    unknown = [n for n in (*pool.nodes, *pool.up) if not 0 <= n < nodes]
    if unknown:
        raise UserError(f"the pool has node {unknown[0]}, but the cluster has {nodes} nodes, counted from 0")
    planned = {window.node for window in faults.maintenance} & set(pool.nodes)
    if planned:
        raise UserError(f"node {min(planned)} belongs to a pool and cannot have maintenance; remove one of them")


def _first_uniforms(outages: Outages) -> Floats:
    """Return each node's first number of its stream (xorshift64*), as the engine draws the next ones."""
    x = outages.random
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    drawn: Floats = 1.0 - ((x * np.uint64(2685821657736338717)) >> np.uint64(11)).astype(np.float64) / 2.0**53
    return drawn
