"""The world at the beginning of a run: all that the engine works on."""

from __future__ import annotations

import numpy as np

from gputwin.core.rng import stream
from gputwin.simulation.engine.attribution.causes import make_causes
from gputwin.simulation.engine.fit.index import FIRST_FITS, make_index
from gputwin.simulation.engine.fit.totals import make_totals
from gputwin.simulation.engine.queue.jobs import make_queue
from gputwin.simulation.engine.queue.shape_tree import make_shape_tree, no_shape_tree
from gputwin.simulation.engine.reservations.mask import FIELDS
from gputwin.simulation.engine.reservations.plans import make_plans
from gputwin.simulation.engine.state.cohorts import Cohorts, no_cohorts
from gputwin.simulation.engine.state.events import make_events
from gputwin.simulation.engine.state.lives import make_lives, plain_forms
from gputwin.simulation.engine.state.outages import make_outages
from gputwin.simulation.engine.state.records import LINK, SLOT, Knobs, Machines, Records
from gputwin.simulation.engine.state.series import make_series
from gputwin.simulation.engine.state.tenants import Tenants, make_turns
from gputwin.simulation.engine.world import (
    CONSERVATIVE,
    EASY,
    FAIR_EASY,
    FAIR_GREEDY,
    FAIR_STRICT,
    GREEDY,
    LOOP,
    World,
)
from gputwin.simulation.interruptions import Faults, costs_of, with_faults
from gputwin.simulation.policy import SPEEDS, Placement
from gputwin.simulation.power.caps import speed_rows
from gputwin.simulation.roles import hardest_first
from gputwin.simulation.rules import Changes, values_of
from gputwin.simulation.workload import Workload

MOST_BINS = 10_000_000


def make_world(
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
    cohorts: Cohorts | None = None,
) -> World:
    """Return the world before the first event; nothing runs."""
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
    links = np.zeros(slots.size if tracked else 1, LINK)
    knobs = knobs._replace(sharing=knobs.sharing._replace(slots=slots, links=links))
    totals = make_totals(requests, groups, shapes, workload.allowed, machines)
    tree = no_shape_tree(shapes.size)
    limited = settings["backfill"][0] == GREEDY and max_wait < np.inf
    asks_by_shape = limited or settings["backfill"][0] in (EASY, FAIR_STRICT, FAIR_GREEDY, FAIR_EASY)
    if asks_by_shape and not settings["preempts"][0]:
        kind_of = totals.entries["kind"][: requests.size]
        tree = make_shape_tree(requests, groups, shapes, index.models, kind_of, machines.nodes.size)
    changing = bool(settings["changes"][0])
    faults = changes.faults or Faults()
    seeds = stream(seed, "faults").integers(1, 1 << 63, machines.nodes.size, np.uint64)
    outages = make_outages(machines, seeds, faults.laws(), kept=changing)
    events = make_events(4096 if changing else jobs.size * (1 + tracked + (max_wait < np.inf)))
    if changing:
        events = with_faults(events, outages, faults, min(begin, float(jobs["submit"][0])), changes.pool)
    values = values_of(SPEEDS.get(changes.speed), changes.speed_parameters) if changes.speed else np.zeros(0)
    speeds = np.ones((2, max(len(workload.models), values.size)))
    speeds[0, : len(workload.models)] = [changes.speeds.get(model, 1.0) for model in workload.models]
    speeds[1, : values.size] = values
    if changes.caps is not None and not changes.caps.waits:
        rows = speed_rows(changes.caps, workload.models, machines)
        speeds = np.concatenate([np.pad(speeds, ((0, 0), (0, rows.shape[1] - speeds.shape[1]))), rows])
    return World(
        machines=machines,
        requests=requests,
        groups=groups,
        queue=make_queue(jobs, shapes, tree),
        index=index,
        totals=totals,
        events=events,
        slots=slots,
        links=links,
        first_end=np.full(machines.nodes.size, np.inf),
        running=np.zeros(jobs.size if tracked else 1, np.int32),
        reserved=np.zeros(gang, SLOT),
        reserved_from=np.full(1, np.inf),
        withheld=np.zeros((max(gang, 2 if planned else 1), FIELDS + 2 * machines.gpus.shape[1])),
        rows=np.arange(machines.nodes.size, dtype=np.int32) if planned else np.full(machines.nodes.size, -1, np.int32),
        masks=np.zeros(machines.nodes.size if planned else gang, np.int32),
        endings=make_events(max(jobs.size, machines.nodes.size * roles if planned else 1) if tracked else 1),
        freed=np.zeros(jobs.size if tracked else 1, np.int32),
        regions=np.zeros(machines.nodes.size, np.int64),
        plans=make_plans(machines.nodes.size, jobs.size, slots.size if planned else 0, roles),
        max_wait=np.array([max_wait], np.float64),
        causes=make_causes(jobs.size if settings["attributes"][0] else 1, shapes.size),
        lives=make_lives(
            jobs,
            workload.slots,
            costs_of(changes.checkpoints),
            plain_forms(shapes.size) if workload.forms is None else workload.forms,
            kept=changing,
            staggered=changes.checkpoints.is_staggered,
        ),
        outages=outages,
        tenants=tenants,
        planned=np.zeros(2 * jobs.size + 1 if settings["planned"][0] else 1, np.int32),
        turns=make_turns(
            jobs if tenants.usage.size else jobs[:0], shapes.size, tenants.usage.size, bool(settings["reclaims"][0])
        ),
        cohorts=no_cohorts() if cohorts is None else cohorts,
        speeds=speeds,
        loop=np.zeros(LOOP, np.int64),
        clock=np.zeros(1),
        until=np.full(1, np.inf),
        series=make_series(begin, width, bins, machines.free),
        knobs=knobs,
        settings=settings,
        counters=counters,
    )
