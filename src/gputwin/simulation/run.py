"""One scenario, run: a workload on a cluster under an order, a backfill rule and a placement."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numba.core.errors import NumbaError

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.elasticity.drive import ElasticDriver
from gputwin.simulation.elasticity.workers import with_workers
from gputwin.simulation.engine.kernel import Stepper
from gputwin.simulation.engine.rules import full_speed, no_neighbours
from gputwin.simulation.engine.state.records import WHOLE, Floats, Ints, Knobs, Machines, Records
from gputwin.simulation.engine.state.tenants import BY_NEXT_JOB, BY_TENANT, BY_TREE, DRAWN, NO_TURNS, Tenants
from gputwin.simulation.engine.world import (
    BY_END,
    BY_RANK,
    BY_SCORE,
    CONSOLIDATE,
    COUNTERS,
    EASY,
    FAIR_EASY,
    FAIR_GREEDY,
    FAIR_STRICT,
    GREEDY,
    IN_ANY_ORDER,
    IN_RACK,
    LOSS,
    ON_NODE,
    SETTINGS,
    STRICT,
    TOPOLOGY,
    World,
)
from gputwin.simulation.faults.schedule import scheduled
from gputwin.simulation.locality import with_locality
from gputwin.simulation.machines import largest_node, make_machines
from gputwin.simulation.make_world import make_world
from gputwin.simulation.mig_requests import uncut
from gputwin.simulation.passes import pass_of
from gputwin.simulation.planning.drive import RoundDriver
from gputwin.simulation.policy import BACKFILLS, ORDERINGS, PLACEMENTS, PREEMPTIONS, SPEEDS, Ordering, Placement
from gputwin.simulation.policy_parameters import settle
from gputwin.simulation.policy_source import raise_if_not_ours
from gputwin.simulation.power.caps import usable_gpus, use_only
from gputwin.simulation.quotas.admission import beyond_quota, cohorts_of
from gputwin.simulation.rules import Changes, Scheduler, check_fairness, fairness_of, rules_of, settled, values_of
from gputwin.simulation.shared import make_sharing, no_sharing, with_sharing
from gputwin.simulation.slurm.order import lasting_ratings
from gputwin.simulation.tenants import (
    Fairness,
    UsageSettings,
    check_tenants,
    exceeding,
    make_tenants,
    parts_of,
    reclaims,
)
from gputwin.simulation.typical import typical_jobs
from gputwin.simulation.workload import Workload
from gputwin.simulation.workload_shapes import with_models_apart, with_shapes_apart, with_sizes

_TURNS = {"tenant": BY_TENANT, "next-job": BY_NEXT_JOB, "draw": DRAWN, "tree": BY_TREE}
_FAIR = {STRICT: FAIR_STRICT, GREEDY: FAIR_GREEDY, EASY: FAIR_EASY}
_GANGS = {"score": BY_SCORE, "consolidate": CONSOLIDATE, "topology": TOPOLOGY}
DEFAULT_BINS = 1000


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
    on_progress: Callable[[World], None] | None = None,
    drive: Callable[[Stepper], None] | None = None,
) -> Run:
    """Return the outcome of the workload on the cluster under the scheduler's rules.

    `on_progress` is called from time to time with the world as it stands. `drive` is handed the run to take it to its
    end: it may stop at any time, look, and start or stop nodes of the pool.
    """
    scheduler = scheduler or Scheduler()
    if bin_seconds is not None and not (math.isfinite(bin_seconds) and bin_seconds > 0):
        raise UserError(f"the series' resolution is {bin_seconds:g} s; give more than 0, as in 5m")
    order, placement = ORDERINGS.get(scheduler.order), PLACEMENTS.get(scheduler.placement)
    backfill = BACKFILLS.get(scheduler.backfill)
    changes = settled(changes or Changes(), order, scheduler.order_parameters, backfill.name)
    check_fairness(scheduler, order, changes)
    workload = _prepared(workload, changes, scheduler.fairness, cluster)
    workers = None
    if changes.elastic_plan is not None:
        workers = with_workers(workload, _gpus(cluster, workload.models), changes.elastic_plan)
        workload = workers.workload
    if changes.faults is not None:
        changes = replace(changes, faults=scheduled(changes.faults, cluster, workload, seed))
    machines = make_machines(cluster, workload)
    if changes.caps is not None and changes.caps.waits:
        use_only(machines, usable_gpus(changes.caps, workload.models, machines))
    is_cut = False
    if changes.sharing is not None and changes.sharing.cuts:
        is_cut = True
        uncut(machines, changes.sharing.slices(cluster))
    knobs = Knobs(
        numbers=largest_node(machines),
        order=_order_values(order, scheduler.order_parameters, workload),
        placement=_placement_values(placement, scheduler.placement_parameters, workload.models, changes.speeds),
        preemption=_preemption_values(changes),
        typical=typical_jobs(workload) if typical is None else typical,
        random=stream(seed, "placement").integers(1, 1 << 63, 1, np.uint64),
        ratings=np.zeros(0),
        shares=np.zeros(0),
        sharing=no_sharing(len(workload.models))
        if changes.sharing is None
        else make_sharing(changes.sharing, workload, cluster),
    )
    settings, counters = np.zeros(1, SETTINGS), np.zeros(1, COUNTERS)
    # Under a plan all wait in one queue, as under strict order.
    settings["backfill"] = STRICT if changes.is_planned else backfill.mode
    settings["gang"] = _GANGS[placement.gang]
    settings["planned"] = changes.is_planned
    max_wait = settle(order, scheduler.order_parameters).get("max_wait", np.inf)
    settings["reclaims"] = reclaims(scheduler.fairness)
    changing = changes.any() or bool(settings["reclaims"][0])
    tracks = EASY <= settings["backfill"][0] < LOSS or (settings["backfill"][0] == GREEDY and max_wait < np.inf)
    settings["corrects"] = tracks
    settings["changes"] = changing
    preempts = bool(changes.preemption) or changes.elasticity is not None
    settings["ranked"] = bool(changes.preemption)
    settings["victims"] = PREEMPTIONS.get(changes.preemption).victims if changes.preemption else BY_RANK
    settings["elastic"] = changes.elasticity is not None
    settings["preempts"] = preempts
    settings["delays"] = changes.locality is not None
    settings["totals"] = True
    settings["attributes"] = attribute
    settings["mig"] = is_cut
    fair = fairness_of(scheduler)
    if fair is not None:
        settings["backfill"] = _FAIR[backfill.mode]
        settings["fair"], settings["gates"] = True, fair.gate is not None
        settings["turns"] = _TURNS[fair.turns_by] if fair.turn is not None or fair.turns_by == "tree" else NO_TURNS
        settings["drifts"] = fair.drifts
        # Who is held back waits though there is room.
        settings["totals"] = backfill.mode != GREEDY or fair.gate is not None or fair.queues
        # Queues are asked class by class, without the tree of shapes.
        settings["preempts"] = fair.queues
    counters["reserved_job"] = -1
    begin, until = workload.span
    width = bin_seconds or max((until - begin) / DEFAULT_BINS, 1.0)
    rules = rules_of(order, placement, changes, fair)
    slowed = changes.sharing is not None and changes.sharing.slows
    settings["neighbours"] = slowed or (bool(changes.speed) and SPEEDS.get(changes.speed).neighbours)
    if changes.caps is not None and not changes.caps.waits:
        settings["neighbours"] = IN_RACK if changes.caps.rack_watts < math.inf else ON_NODE
    is_slowed = rules.speed is not full_speed or rules.share is not no_neighbours
    settings["rated"] = is_slowed or workload.forms is not None
    if tracks or changing:
        # Where nodes only fail and drain, nobody asks who on a node ends first, and keeping that order takes long.
        asked = (
            tracks or preempts or changes.sharing is not None or settings["neighbours"][0] or settings["reclaims"][0]
        )
        settings["tracks"] = BY_END if asked else IN_ANY_ORDER
    if order.weighs_tenants:
        settings["fair"] = settings["recalculates"] = True
    given = settle(order, scheduler.order_parameters)
    tenants = make_tenants(
        workload, machines, scheduler.fairness, seed, _usage(given) if order.weighs_tenants else None
    )
    if order.weighs_tenants:
        knobs = knobs._replace(
            ratings=_ratings(workload, machines, tenants, given), shares=np.ones(len(workload.tenants))
        )
    cohorts = None
    if scheduler.fairness is not None and scheduler.fairness.queues:
        cohorts = cohorts_of(workload, tenants.demands, scheduler.fairness)
    world = make_world(
        workload, machines, knobs, settings, counters, width, placement, max_wait, changes, seed, tenants, cohorts
    )
    if fair is not None and fair.gate is not None:
        # Who alone exceeds its tenant's limit never starts.
        world.queue.shapes["never_fits"][exceeding(workload, tenants)] = 1
    if cohorts is not None:
        world.queue.shapes["never_fits"][beyond_quota(workload, cohorts)] = 1
    schedule_pass = pass_of(settings, backfill, max_wait)
    try:
        stepper = Stepper(world, rules, schedule_pass, on_progress)
        if changes.planning is not None:
            drive = RoundDriver(changes.planning, workload)
        if changes.elastic_plan is not None and workers is not None:
            drive = ElasticDriver(changes.elastic_plan, workers, changes.checkpoints.resize_seconds)
        if drive is not None:
            drive(stepper)
        stepper.run_until()
        world = stepper.world
    except NumbaError as error:
        raise_if_not_ours((*rules, placement.score, schedule_pass), error)
        raise
    return Run(world, workload, cluster, scheduler, seed, float(world.clock[0]), width, changes)


def _gpus(cluster: Cluster, models: tuple[str, ...]) -> Ints:
    """Return the GPUs of each model."""
    counts = np.zeros(len(models), np.int64)
    for group in cluster.groups:
        counts[models.index(group.gpu_model or "")] += group.count * group.gpus
    return counts


def _usage(given: Mapping[str, float]) -> UsageSettings:
    return UsageSettings(given["half_life"], given["period"], 0.0 if given["fair_tree"] else given["dampening"])


def _ratings(workload: Workload, machines: Machines, tenants: Tenants, given: Mapping[str, float]) -> Floats:
    jobs = workload.jobs
    return lasting_ratings(
        parts_of(tenants),
        workload.shapes["instances"],
        machines.nodes.size,
        jobs["shape"],
        jobs["predicted"],
        jobs["priority"],
        given,
    )


def _order_values(order: Ordering, given: Mapping[str, float], workload: Workload) -> Floats:
    """Return the order's parameters, and the numbers it works out from the services of jobs, GPU-seconds."""
    values = values_of(order, given)
    if order.table is None:
        return values
    gpus = workload.jobs["gpu_milli"] / WHOLE
    services = workload.jobs["duration"] * np.where(gpus > 0, gpus, 1.0)
    return np.append(values, order.table(services, values))


def _placement_values(
    placement: Placement, given: Mapping[str, float], models: Sequence[str], speeds: Mapping[str, float]
) -> Floats:
    """Return the placement's parameters, and its numbers of each GPU model."""
    values = values_of(placement, given)
    if placement.by_model is None:
        return values
    return np.append(values, [placement.by_model(model, speeds.get(model, 1.0)) for model in models])


def _preemption_values(changes: Changes) -> Floats:
    if not changes.preemption:
        return np.zeros(0)
    return values_of(PREEMPTIONS.get(changes.preemption), changes.preemption_parameters)


def _prepared(workload: Workload, changes: Changes, fairness: Fairness | None, cluster: Cluster) -> Workload:
    """Return the workload with the shapes that the changes and fairness need."""
    if changes.sharing is not None:
        workload = with_sharing(workload, changes.sharing, cluster)
    if fairness is not None:
        check_tenants(fairness, workload.tenants)
        if fairness.name:
            workload = with_shapes_apart(workload, "tenant")
    if changes.preemption and (field := PREEMPTIONS.get(changes.preemption).apart):
        workload = with_shapes_apart(workload, field)
    if changes.planning is not None:
        workload = with_models_apart(workload)
    if changes.elasticity is not None:
        workload = with_sizes(workload, changes.elasticity.least_share, changes.elasticity.exponent)
    if changes.locality is not None:
        workload = with_locality(workload, cluster, changes.locality)
    return workload
