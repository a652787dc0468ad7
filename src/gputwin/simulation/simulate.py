"""One scenario, run: a workload on a cluster under an order, a backfill rule and a placement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.attribution import make_causes
from gputwin.simulation.engine.devices import fullest
from gputwin.simulation.engine.events import make_events
from gputwin.simulation.engine.index import make_index
from gputwin.simulation.engine.kernel import run_world
from gputwin.simulation.engine.queue import make_queue
from gputwin.simulation.engine.series import make_series
from gputwin.simulation.engine.state import PLENTY, WHOLE, Ints, Knobs, Nodes
from gputwin.simulation.engine.world import (
    BY_SCORE,
    CONSOLIDATE,
    EASY,
    TOPOLOGY,
    Reservation,
    Runs,
    Slots,
    World,
)
from gputwin.simulation.policy import BACKFILLS, ORDERINGS, PLACEMENTS, settle
from gputwin.simulation.typical import Typical, typical_jobs
from gputwin.simulation.workload import Workload

_GANGS = {"score": BY_SCORE, "consolidate": CONSOLIDATE, "topology": TOPOLOGY}
MOST_DEVICES = 62
DEFAULT_BINS = 1000


@dataclass(frozen=True)
class Scheduler:
    """The rules of a run: names of registered policies and their parameters."""

    order: str = "fifo"
    backfill: str = "strict"
    placement: str = "first-fit"
    order_parameters: Mapping[str, float] = field(default_factory=dict)
    placement_parameters: Mapping[str, float] = field(default_factory=dict)


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


def cluster_models(cluster: Cluster) -> tuple[str, ...]:
    """Return the GPU models of the cluster in numbered order; "" stands for GPUs of no stated model and for none."""
    return tuple(dict.fromkeys(g.gpu_model or "" for g in cluster.groups))


def run(
    workload: Workload,
    cluster: Cluster,
    scheduler: Scheduler | None = None,
    *,
    seed: int = 0,
    bin_seconds: float | None = None,
    attribute: bool = True,
    typical: Typical | None = None,
) -> Run:
    """Return the outcome of the workload on the cluster under the scheduler's rules."""
    scheduler = scheduler or Scheduler()
    order, placement = ORDERINGS.get(scheduler.order), PLACEMENTS.get(scheduler.placement)
    backfill = BACKFILLS.get(scheduler.backfill)
    numbers = [*settle(order, scheduler.order_parameters).values()]
    offset = len(numbers)
    numbers += settle(placement, scheduler.placement_parameters).values()
    nodes = make_nodes(cluster, workload)
    if typical is None:
        typical = typical_jobs(workload)
    knobs = Knobs(
        numbers=np.array(numbers, np.float64),
        offset=np.array([offset], np.int64),
        largest=np.array([max(nodes.cpu.max(), 1), max(nodes.gpu_count.max() * WHOLE, 1)], np.float64),
        typical_cpu=typical.cpu_milli,
        typical_milli=typical.gpu_milli,
        typical_count=typical.gpu_count,
        typical_share=typical.share,
        random=stream(seed, "placement").integers(1, 1 << 63, 1, np.uint64),
    )
    span = float(workload.jobs.submit[-1] - workload.jobs.submit[0])
    width = bin_seconds or max(span / DEFAULT_BINS, 1.0)
    begin = float(workload.jobs.submit[0])
    options = np.array([backfill.mode, _GANGS[placement.gang], int(backfill.mode >= EASY), int(attribute)], np.int64)
    world = _make_world(workload, nodes, knobs, options, begin, width, fresh=placement.fresh)
    last = run_world(world, order.key, placement.score, placement.devices or fullest)
    return Run(world, workload, cluster, scheduler, seed, last, width)


def make_nodes(cluster: Cluster, workload: Workload) -> Nodes:
    """Return the empty cluster as arrays."""
    frame = cluster.nodes()
    count = frame.height
    gpus = frame["gpu_count"].to_numpy().astype(np.int32)
    devices = max(int(gpus.max()), 1)
    if devices > MOST_DEVICES:
        raise UserError(f"a node has {devices} GPUs; at most {MOST_DEVICES} are supported")
    capacity = {
        name: frame[name].cast(pl.Int64).fill_null(PLENTY).to_numpy().copy()
        for name in ("cpu_milli", "memory_mib", "disk_mib", "rdma_percent", "gpu_memory_mib")
    }
    exists = np.arange(devices) < gpus[:, None]
    model_names = cluster_models(cluster)
    if model_names != workload.models:
        raise UserError("the workload was made for a cluster with other GPU models")
    model = np.array([model_names.index(m or "") for m in frame["gpu_model"]], np.int32)
    gpu_total = gpus.astype(np.int64) * WHOLE
    model_free = np.zeros(len(model_names), np.int64)
    np.add.at(model_free, model, gpu_total)
    limits = int(workload.requests.application.max(initial=-1)) + 1
    classes = int(max(workload.requests.gpu_count.max(initial=0), 0)) + 1
    names = ("cpu_milli", "memory_mib", "disk_mib", "rdma_percent")
    return Nodes(
        cpu_free=capacity["cpu_milli"].copy(),
        memory_free=capacity["memory_mib"].copy(),
        disk_free=capacity["disk_mib"].copy(),
        rdma_free=capacity["rdma_percent"].copy(),
        gpu_free=np.where(exists, WHOLE, 0).astype(np.int32),
        gpu_memory_free=np.where(exists, capacity["gpu_memory_mib"][:, None], 0).astype(np.int64),
        gpus_whole=gpus.copy(),
        gpu_total_free=gpu_total,
        application_count=np.zeros((count, max(limits, 1)), np.int32),
        class_count=np.zeros((count, classes), np.int32),
        gpu_count=gpus,
        cpu=capacity["cpu_milli"],
        memory=capacity["memory_mib"],
        disk=capacity["disk_mib"],
        rdma=capacity["rdma_percent"],
        gpu_memory=capacity["gpu_memory_mib"],
        model=model,
        rack=_numbered(frame["rack"]),
        domain=_numbered(frame["network_domain"]),
        model_free=model_free,
        total_free=np.array([capacity[n].sum() for n in names], np.int64),
    )


def _numbered(names: pl.Series) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Return each name's number in order of appearance; -1 where there is none."""
    known = {name: i for i, name in enumerate(names.unique(maintain_order=True).drop_nulls())}
    return np.array([known.get(name, -1) for name in names], np.int32)


def _make_world(
    workload: Workload, nodes: Nodes, knobs: Knobs, options: Ints, begin: float, width: float, *, fresh: bool
) -> World:
    jobs, count = workload.jobs, workload.size
    shapes = workload.shapes.first.size - 1
    backfilling = bool(options[2])
    slots = workload.slots
    popularity = np.zeros(workload.requests.cpu.size, np.int64)
    np.add.at(popularity, workload.shapes.request, np.repeat(
        np.bincount(jobs.shape, minlength=shapes), np.diff(workload.shapes.first)
    ))
    index = make_index(nodes.cpu.size, workload.requests.cpu.size, popularity)
    if fresh:
        index.slot[:] = -1
    largest_gang = int(np.add.reduceat(workload.shapes.size.astype(np.int64), workload.shapes.first[:-1]).max())
    tracked_slots, tracked_jobs = (slots, count) if backfilling else (1, 1)
    reserved = largest_gang if backfilling else 1
    bins = int(min(np.ceil((jobs.submit[-1] - begin) / width) + 1, 10_000_000))
    return World(
        nodes=nodes,
        requests=workload.requests,
        jobs=jobs,
        shapes=workload.shapes,
        queue=make_queue(count, shapes),
        index=index,
        events=make_events(count * (2 if backfilling else 1)),
        slots=Slots(
            node=np.full(slots, -1, np.int32),
            devices=np.zeros(slots, np.int64),
            request=np.zeros(slots, np.int32),
            job=np.full(tracked_slots, -1, np.int32),
            next=np.full(tracked_slots, -1, np.int32),
            previous=np.full(tracked_slots, -1, np.int32),
            first_on_node=np.full(nodes.cpu.size, -1, np.int32),
        ),
        runs=Runs(
            start=np.full(count, np.nan),
            end=np.full(count, np.nan),
            believed_end=np.full(count, np.nan),
            outcome=np.zeros(count, np.int8),
            running=np.zeros(tracked_jobs, np.int32),
            running_at=np.zeros(tracked_jobs, np.int32),
            running_count=np.zeros(1, np.int64),
        ),
        reservation=Reservation(
            job=np.full(1, -1, np.int64),
            time=np.full(1, np.inf),
            count=np.zeros(1, np.int64),
            node=np.zeros(reserved, np.int32),
            devices=np.zeros(reserved, np.int64),
            request=np.zeros(reserved, np.int32),
        ),
        causes=make_causes(count if options[3] else 1, shapes),
        series=make_series(
            begin, width, bins, np.concatenate([nodes.total_free, nodes.model_free]).astype(np.float64), nodes.cpu.size
        ),
        knobs=knobs,
        options=options,
    )
