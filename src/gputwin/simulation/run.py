"""One scenario, run: a workload on a cluster under an order, a backfill rule and a placement."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numba.core.errors import NumbaError

from gputwin.core.errors import InputError, UserError
from gputwin.core.rng import stream
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.attribution.causes import make_causes
from gputwin.simulation.engine.fit.devices import fullest
from gputwin.simulation.engine.fit.index import FIRST_FITS, make_index
from gputwin.simulation.engine.fit.room import MANY
from gputwin.simulation.engine.fit.totals import make_totals
from gputwin.simulation.engine.kernel import Rules, Stepper
from gputwin.simulation.engine.placing.scores import asking
from gputwin.simulation.engine.queue.jobs import make_queue
from gputwin.simulation.engine.queue.shape_tree import make_shape_tree, no_shape_tree
from gputwin.simulation.engine.reservations.mask import FIELDS
from gputwin.simulation.engine.reservations.plans import make_plans
from gputwin.simulation.engine.rules import full_speed, never, no_gate, no_turn
from gputwin.simulation.engine.state.events import make_events
from gputwin.simulation.engine.state.lives import make_lives
from gputwin.simulation.engine.state.outages import make_outages
from gputwin.simulation.engine.state.records import (
    APPLICATIONS,
    DEVICE,
    LINK,
    NODE,
    PLENTY,
    SLOT,
    WHOLE,
    Floats,
    Knobs,
    Machines,
    Records,
)
from gputwin.simulation.engine.state.series import make_series
from gputwin.simulation.engine.state.tenants import Tenants, make_turns
from gputwin.simulation.engine.world import (
    BY_SCORE,
    CONSERVATIVE,
    CONSOLIDATE,
    COUNTERS,
    EASY,
    FAIR_GREEDY,
    FAIR_STRICT,
    GREEDY,
    LOOP,
    LOSS,
    SETTINGS,
    STRICT,
    TOPOLOGY,
    World,
)
from gputwin.simulation.interruptions import Checkpoints, Elasticity, Faults, Pool, costs_of, with_faults
from gputwin.simulation.planning.drive import Planning, RoundDriver, check_planning
from gputwin.simulation.policy import (
    BACKFILLS,
    FAIRNESS,
    ORDERINGS,
    PLACEMENTS,
    PREEMPTIONS,
    SPEEDS,
    FairnessRule,
    Ordering,
    Placement,
    Speed,
    settle,
)
from gputwin.simulation.policy_source import checked, raise_if_not_ours
from gputwin.simulation.roles import hardest_first
from gputwin.simulation.tenants import Fairness, check_tenants, exceeding, make_tenants
from gputwin.simulation.typical import typical_jobs
from gputwin.simulation.workload import Workload, with_models_apart, with_shapes_apart, with_sizes

_GANGS = {"score": BY_SCORE, "consolidate": CONSOLIDATE, "topology": TOPOLOGY}
MOST_DEVICES = 62
DEFAULT_BINS = 1000
MOST_BINS = 10_000_000


@dataclass(frozen=True)
class Scheduler:
    """The rules of a run: names of registered policies and their parameters. Its defaults are everyone's defaults."""

    order: str = "fifo"
    backfill: str = "greedy"
    placement: str = "first-fit"
    order_parameters: Mapping[str, float] = field(default_factory=dict)
    placement_parameters: Mapping[str, float] = field(default_factory=dict)
    fairness: Fairness | None = None


@dataclass(frozen=True)
class Changes:
    """What may change while jobs run. Nothing by default: then each job has one start and one end."""

    preemption: str = ""
    """Who must yield; the order's own rule where it has one."""
    speed: str = ""
    speeds: Mapping[str, float] = field(default_factory=dict)
    """Work a second by GPU model; 1 where it is not named."""
    speed_parameters: Mapping[str, float] = field(default_factory=dict)
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    faults: Faults | None = None
    elasticity: Elasticity | None = None
    pool: Pool | None = None
    planning: Planning | None = None
    """A planner says who runs, instead of order and backfill."""

    def any(self) -> bool:
        """Return whether something may change."""
        parts = (self.faults, self.elasticity, self.pool, self.planning)
        return bool(self.preemption or self.speed or any(part is not None for part in parts))


@dataclass(frozen=True)
class Run:
    """The raw outcome of a run: the final world, when it ended, and what it was made of."""

    world: World
    workload: Workload
    cluster: Cluster
    scheduler: Scheduler
    seed: int
    last_event: float
    bin_seconds: float
    changes: Changes


def cluster_models(cluster: Cluster) -> tuple[str, ...]:
    """Return the GPU models of the cluster as they are numbered; "" stands for GPUs of no stated model and for none.

    In order of name, so that the same machines in another order number them alike.
    """
    return tuple(sorted({g.gpu_model or "" for g in cluster.groups}))


def run(
    workload: Workload,
    cluster: Cluster,
    scheduler: Scheduler | None = None,
    *,
    seed: int = 0,
    bin_seconds: float | None = None,
    attribute: bool = True,
    typical: Records | None = None,
    changes: Changes | None = None,
    told: Callable[[World], None] | None = None,
    drive: Callable[[Stepper], None] | None = None,
) -> Run:
    """Return the outcome of the workload on the cluster under the scheduler's rules.

    `told` is called from time to time with the world as it stands. `drive` is handed the run to take it to its end: it
    may stop at any time, look, and start or stop nodes of the pool.
    """
    scheduler = scheduler or Scheduler()
    if bin_seconds is not None and not (math.isfinite(bin_seconds) and bin_seconds > 0):
        raise UserError(f"the series' resolution is {bin_seconds:g} s; give more than 0, as in 5m")
    order, placement = ORDERINGS.get(scheduler.order), PLACEMENTS.get(scheduler.placement)
    backfill = BACKFILLS.get(scheduler.backfill)
    changes = _settled(changes or Changes(), order, scheduler.order_parameters, backfill.name)
    _check_fairness(scheduler, order, changes)
    workload = _prepared(workload, changes, scheduler.fairness)
    machines = make_machines(cluster, workload)
    knobs = Knobs(
        numbers=_largest_node(machines),
        order=_values(order, scheduler.order_parameters),
        placement=_values(placement, scheduler.placement_parameters),
        typical=typical_jobs(workload) if typical is None else typical,
        random=stream(seed, "placement").integers(1, 1 << 63, 1, np.uint64),
    )
    settings, counters = np.zeros(1, SETTINGS), np.zeros(1, COUNTERS)
    # Under a plan all wait in one queue, as under strict order.
    settings["backfill"] = STRICT if changes.planning is not None else backfill.mode
    settings["gang"] = _GANGS[placement.gang]
    settings["planned"] = changes.planning is not None
    max_wait = settle(order, scheduler.order_parameters).get("max_wait", np.inf)
    changing = changes.any()
    tracks = EASY <= settings["backfill"][0] < LOSS or (settings["backfill"][0] == GREEDY and max_wait < np.inf)
    settings["corrects"] = tracks
    settings["tracks"] = tracks or changing
    settings["changes"] = changing
    preempts = bool(changes.preemption) or changes.elasticity is not None
    settings["ranked"] = bool(changes.preemption)
    settings["elastic"] = changes.elasticity is not None
    settings["preempts"] = preempts
    settings["totals"] = backfill.mode != GREEDY or max_wait < np.inf or preempts
    settings["attributes"] = attribute
    fair = _fairness(scheduler)
    if fair is not None:
        settings["backfill"] = FAIR_STRICT if backfill.mode == STRICT else FAIR_GREEDY
        settings["fair"], settings["turns"], settings["gates"] = True, fair.turn is not None, fair.gate is not None
        settings["drifts"] = fair.drifts
        # Who is held back waits though there is room.
        settings["totals"] = backfill.mode == STRICT or fair.gate is not None
    counters["reserved_job"] = -1
    begin, until = workload.span
    width = bin_seconds or max((until - begin) / DEFAULT_BINS, 1.0)
    rules = _rules(order, placement, changes, fair)
    settings["neighbours"] = bool(changes.speed) and SPEEDS.get(changes.speed).neighbours
    tenants = make_tenants(workload, machines, scheduler.fairness)
    world = _make_world(
        workload, machines, knobs, settings, counters, width, placement, max_wait, changes, seed, tenants
    )
    if fair is not None and fair.gate is not None:
        # Who alone exceeds its tenant's limit never starts.
        world.queue.shapes["never_fits"][exceeding(workload, tenants)] = 1
    try:
        stepper = Stepper(world, rules, told)
        if changes.planning is not None:
            drive = RoundDriver(changes.planning, workload)
        if drive is not None:
            drive(stepper)
        stepper.run_until()
        world = stepper.world
    except NumbaError as error:
        raise_if_not_ours((*rules, placement.score), error)
        raise
    return Run(world, workload, cluster, scheduler, seed, float(world.clock[0]), width, changes)


def _rules(order: Ordering, placement: Placement, changes: Changes, fair: FairnessRule | None) -> Rules:
    """Return the functions of all policies of a run; what a policy must not do is a user error."""
    by = f"order '{order.name}'", f"placement '{placement.name}'"
    rules = Rules(
        order=checked(by[0], order.key),
        promotion=checked(by[0], order.promotion),
        score=asking(checked(by[1], placement.score)),
        devices=checked(by[1], placement.devices or fullest),
        claim=never,
        rank=never,
        crossing=never,
        speed=full_speed,
    )
    if changes.preemption:
        rule, by_rule = PREEMPTIONS.get(changes.preemption), f"preemption '{changes.preemption}'"
        claim, rank, crossing = (checked(by_rule, f) for f in (rule.claim, rule.rank, rule.crossing))
        rules = rules._replace(claim=claim, rank=rank, crossing=crossing)
    if changes.speed:
        rules = rules._replace(speed=checked(f"speed '{changes.speed}'", SPEEDS.get(changes.speed).factors))
    if fair is not None:
        by_fair = f"fairness '{fair.name}'"
        rules = rules._replace(
            turn=checked(by_fair, fair.turn) if fair.turn else no_turn,
            gate=checked(by_fair, fair.gate) if fair.gate else no_gate,
        )
    return rules


def check_rules(scheduler: Scheduler, changes: Changes) -> None:
    """Raise a user error where a policy, a parameter or a combination of rules does not exist."""
    order, placement = ORDERINGS.get(scheduler.order), PLACEMENTS.get(scheduler.placement)
    settle(order, scheduler.order_parameters)
    settle(placement, scheduler.placement_parameters)
    if changes.speed:
        settle(SPEEDS.get(changes.speed), changes.speed_parameters)
    changes = _settled(changes, order, scheduler.order_parameters, BACKFILLS.get(scheduler.backfill).name)
    _check_fairness(scheduler, order, changes)
    _rules(order, placement, changes, _fairness(scheduler))


def _fairness(scheduler: Scheduler) -> FairnessRule | None:
    return None if scheduler.fairness is None else FAIRNESS.get(scheduler.fairness.name)


def _check_fairness(scheduler: Scheduler, order: Ordering, changes: Changes) -> None:
    """Raise a user error where the rule of fairness does not exist or does not go with the others."""
    if scheduler.fairness is None:
        return
    rule = FAIRNESS.get(scheduler.fairness.name)
    settle(rule, scheduler.fairness.parameters)
    if scheduler.backfill not in ("strict", "greedy"):
        raise UserError(
            f"fairness '{rule.name}' does not go with backfill '{scheduler.backfill}'; use strict or greedy"
        )
    if changes.preemption or changes.elasticity is not None:
        raise UserError(
            f"fairness '{rule.name}' does not go with making room for jobs; leave out preemption and elasticity"
        )
    if settle(order, scheduler.order_parameters).get("max_wait", np.inf) < np.inf:
        raise UserError(f"fairness '{rule.name}' does not go with a longest wait; leave out max_wait")


def _prepared(workload: Workload, changes: Changes, fairness: Fairness | None) -> Workload:
    """Return the workload with the shapes that the changes and fairness need."""
    if fairness is not None:
        check_tenants(fairness, workload.tenants)
        workload = with_shapes_apart(workload, "tenant")
    if changes.preemption and (field := PREEMPTIONS.get(changes.preemption).apart):
        workload = with_shapes_apart(workload, field)
    if changes.planning is not None:
        workload = with_models_apart(workload)
    if changes.elasticity is not None:
        workload = with_sizes(workload, changes.elasticity.least_share)
    return workload


def _settled(changes: Changes, order: Ordering, given: Mapping[str, float], backfill: str) -> Changes:
    """Return the changes with the preemption that the order brings; what cannot go together is a user error."""
    if order.preemption and changes.preemption not in ("", order.preemption):
        raise UserError(f"order '{order.name}' preempts by '{order.preemption}', not by '{changes.preemption}'")
    if changes.preemption and not order.preemption:
        rule = PREEMPTIONS.get(changes.preemption)
        spelled = f"{order.name}:" + ",".join(f"{k}={v:g}" for k, v in settle(order, given).items() if k == "aging")
        if spelled not in rule.orders:
            known = ", ".join(rule.orders) or ", ".join(n for n in ORDERINGS.names() if ORDERINGS.get(n).preemption)
            raise UserError(f"preemption '{rule.name}' does not go with order '{order.name}' as given; use: {known}")
    changes = replace(changes, preemption=changes.preemption or order.preemption)
    loses = not changes.checkpoints.on_preemption and changes.checkpoints.interval_seconds == math.inf
    if changes.preemption and loses and PREEMPTIONS.get(changes.preemption).keeps_work:
        raise InputError(
            f"preemption '{changes.preemption}' needs stopped jobs to keep their work, and nothing saves it",
            field="checkpoints",
            remedy="set on_preemption, or give interval_seconds",
        )
    if changes.planning is not None:
        check_planning(changes.planning)
        if changes.preemption or changes.elasticity is not None or changes.pool is not None:
            raise UserError("a planner decides who runs; leave out preemption, elasticity and node pools")
    if (changes.preemption or changes.elasticity is not None) and backfill not in ("strict", "greedy"):
        raise UserError(f"making room does not go with backfill '{backfill}'; use strict or greedy")
    if changes.any() and backfill == "conservative":
        raise UserError("conservative backfill needs jobs and nodes that do not change; use strict, greedy or easy")
    return changes


def _largest_node(machines: Machines) -> Floats:
    """Return CPU and GPU (milli) of the largest node."""
    nodes = machines.nodes
    return np.array([max(nodes["cpu"].max(), 1), max(nodes["gpu_count"].max() * WHOLE, 1)], np.float64)


def _values(policy: Ordering | Placement | Speed, given: Mapping[str, float]) -> Floats:
    """Return the values of a policy's parameters in the sequence it declares them."""
    return np.array(list(settle(policy, given).values()), np.float64)


def make_machines(cluster: Cluster, workload: Workload) -> Machines:
    """Return the empty cluster as arrays."""
    frame = cluster.nodes()
    models = cluster_models(cluster)
    if models != workload.models:
        raise UserError("the workload was made for a cluster with other GPU models")
    nodes = np.zeros(frame.height, NODE)
    for name, column in (
        ("cpu", "cpu_milli"),
        ("memory", "memory_mib"),
        ("disk", "disk_mib"),
        ("rdma", "rdma_percent"),
    ):
        nodes[name] = nodes[f"{name}_free"] = frame[column].cast(pl.Int64).fill_null(PLENTY).to_numpy()
    nodes["gpu_count"] = nodes["gpus_whole"] = frame["gpu_count"].to_numpy()
    nodes["gpu_free"] = nodes["gpu_count"] * WHOLE
    nodes["model"] = [models.index(m or "") for m in frame["gpu_model"]]
    nodes["rack"], nodes["domain"] = _numbered(frame["rack"]), _numbered(frame["network_domain"])
    nodes["first_slot"] = nodes["first_planned"] = -1
    devices = max(int(nodes["gpu_count"].max()), 1)
    if devices > MOST_DEVICES:
        raise UserError(f"a node has {devices} GPUs; at most {MOST_DEVICES} are supported")
    gpus = np.zeros((nodes.size, devices), DEVICE)
    exists = np.arange(devices) < nodes["gpu_count"][:, None]
    memory = frame["gpu_memory_mib"].cast(pl.Int64).fill_null(PLENTY).to_numpy()
    gpus["free"] = np.where(exists, WHOLE, 0)
    gpus["memory_free"] = np.where(exists, memory[:, None], 0)
    residents = max(int(workload.requests["application"].max()) + 1, APPLICATIONS)
    free = np.zeros(4 + len(models), np.int64)
    free[:4] = [nodes[name].sum() for name in ("cpu", "memory", "disk", "rdma")]
    np.add.at(free, 4 + nodes["model"], nodes["gpu_free"])
    limits = np.unique(workload.requests[["application", "max_per_node"]])["application"]
    several = (np.unique(limits[limits >= 0], return_counts=True)[1] > 1).any()
    caps = np.full((nodes.size, residents - APPLICATIONS if several else 0), MANY, np.int32)
    return Machines(nodes, gpus, np.zeros((nodes.size, residents), np.int32), free, caps)


def _numbered(names: pl.Series) -> list[int]:
    """Return each name's number in order of appearance; -1 where there is none."""
    known = {name: i for i, name in enumerate(names.unique(maintain_order=True).drop_nulls())}
    return [known.get(name, -1) for name in names]


def _make_world(
    workload: Workload,
    machines: Machines,
    knobs: Knobs,
    settings: Records,
    counters: Records,
    width: float,
    placement: Placement,
    max_wait: float,
    changes: Changes,
    seed: int,
    tenants: Tenants,
) -> World:
    jobs, shapes, requests = workload.jobs.copy(), workload.shapes.copy(), workload.requests.copy()
    jobs["start"] = jobs["end"] = np.nan
    planned = settings["backfill"][0] == CONSERVATIVE
    if planned:
        jobs["planned"] = np.nan
    tracked = bool(settings["tracks"][0])
    groups = hardest_first(shapes, workload.groups, requests, workload.allowed, machines)
    popularity = np.zeros(requests.size, np.int64)
    per_shape = np.bincount(jobs["shape"], minlength=shapes.size)
    np.add.at(popularity, groups["request"], np.repeat(per_shape, shapes["groups"]))
    index = make_index(machines, requests, workload.allowed, popularity, dear=placement.typical, fresh=placement.fresh)
    if placement.first:
        requests["slot"] = FIRST_FITS
    begin, until = workload.span
    bins = int(min(max(np.ceil((until - begin) / width * (1 - 1e-12)), 1), MOST_BINS))
    slots = np.zeros(workload.slots, SLOT)
    gang = int(shapes["instances"].max()) if tracked else 1
    roles = int(shapes["groups"].max())
    slots["node"] = -1
    totals = make_totals(requests, groups, shapes, workload.allowed, machines)
    tree = no_shape_tree()
    if settings["backfill"][0] in (GREEDY, EASY, FAIR_STRICT, FAIR_GREEDY) and not settings["preempts"][0]:
        kind_of = totals.entries["kind"][: requests.size]
        tree = make_shape_tree(requests, groups, shapes, index.models, kind_of, machines.nodes.size)
    changing = bool(settings["changes"][0])
    faults = changes.faults or Faults()
    seeds = stream(seed, "faults").integers(1, 1 << 63, machines.nodes.size, np.uint64)
    outages = make_outages(machines, seeds, faults.laws(), kept=changing)
    events = make_events(4096 if changing else jobs.size * (1 + tracked + (max_wait < np.inf)))
    if changing:
        events = with_faults(events, outages, faults, min(begin, float(jobs["submit"][0])), changes.pool)
    values = _values(SPEEDS.get(changes.speed), changes.speed_parameters) if changes.speed else np.zeros(0)
    speeds = np.ones((2, max(len(workload.models), values.size)))
    speeds[0, : len(workload.models)] = [changes.speeds.get(model, 1.0) for model in workload.models]
    speeds[1, : values.size] = values
    return World(
        machines=machines,
        requests=requests,
        groups=groups,
        queue=make_queue(jobs, shapes, tree),
        index=index,
        totals=totals,
        events=events,
        slots=slots,
        links=np.zeros(slots.size if tracked else 1, LINK),
        first_end=np.full(machines.nodes.size, np.inf),
        running=np.zeros(jobs.size if tracked else 1, np.int32),
        reserved=np.zeros(gang, SLOT),
        reserved_from=np.full(1, np.inf),
        withheld=np.zeros((max(gang, machines.nodes.size + 2 if planned else 1), FIELDS + 2 * machines.gpus.shape[1])),
        rows=np.arange(machines.nodes.size, dtype=np.int32) if planned else np.full(machines.nodes.size, -1, np.int32),
        masks=np.zeros(machines.nodes.size if planned else gang, np.int32),
        endings=make_events(max(jobs.size, machines.nodes.size * roles if planned else 1) if tracked else 1),
        freed=np.zeros(jobs.size if tracked else 1, np.int32),
        regions=np.zeros(machines.nodes.size, np.int64),
        plans=make_plans(machines.nodes.size, jobs.size, slots.size if planned else 0, roles),
        max_wait=np.array([max_wait], np.float64),
        causes=make_causes(jobs.size if settings["attributes"][0] else 1, shapes.size),
        lives=make_lives(jobs, workload.slots, costs_of(changes.checkpoints, changes.elasticity), kept=changing),
        outages=outages,
        tenants=tenants,
        planned=np.zeros(jobs.size + 1 if settings["planned"][0] else 1, np.int32),
        turns=make_turns(jobs if tenants.usage.size else jobs[:0], shapes.size, tenants.usage.size),
        speeds=speeds,
        loop=np.zeros(LOOP, np.int64),
        clock=np.zeros(1),
        until=np.full(1, np.inf),
        series=make_series(begin, width, bins, machines.free),
        knobs=knobs,
        settings=settings,
        counters=counters,
    )
