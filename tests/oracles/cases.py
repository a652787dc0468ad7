"""Small clusters and workloads: handed to the reference as they are, and to the engine as its arrays."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES
from gputwin.simulation.engine.state.records import APPLICATIONS, GROUP, JOB, REQUEST, SHAPE, Records
from gputwin.simulation.machines import cluster_models
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.run import Run, run
from gputwin.simulation.typical import typical_jobs
from gputwin.simulation.workload import Workload
from gputwin.traces.dataset import Trace, TraceMeta
from tests.oracles.reference import AMOUNTS, WHOLE, Ask, Job, Node, Outcome, Spot, simulate

FATES = ("waits", "runs", "finished", "never fits", "lost")


class FixedCluster(Cluster):
    """A cluster whose node table is made once, since tiny runs spend most of their time on it."""

    @cached_property
    def _frame(self) -> pl.DataFrame:
        return super().nodes()

    def nodes(self) -> pl.DataFrame:
        return self._frame


def cluster_of(nodes: Sequence[Node]) -> Cluster:
    """Return the nodes as a cluster, each its own group."""
    groups = tuple(
        NodeGroup(f"n{i}", 1, n.gpus, n.model, n.gpu_memory, n.cpu, n.memory, n.disk, n.rdma, n.rack, n.domain)
        for i, n in enumerate(nodes)
    )
    return FixedCluster("tiny", groups)


def _asks(jobs: Sequence[Job]) -> list[Ask]:
    return list(dict.fromkeys(ask for job in jobs for ask, _ in job.groups))


def workload_of_jobs(jobs: Sequence[Job], models: tuple[str, ...]) -> Workload:
    """Return the jobs, given in order of submission, as the engine's arrays."""
    asks = _asks(jobs)
    kinds = list(dict.fromkeys(job.groups for job in jobs))
    requests, allowed = _requests(asks, models)
    groups = np.array([(asks.index(ask), size) for kind in kinds for ask, size in kind], GROUP)
    shapes = np.zeros(len(kinds), SHAPE)
    shapes["groups"] = [len(kind) for kind in kinds]
    shapes["first_group"] = np.cumsum(shapes["groups"]) - shapes["groups"]
    shapes["instances"] = [sum(size for _, size in kind) for kind in kinds]
    records = np.zeros(len(jobs), JOB)
    for name in ("submit", "duration", "predicted", "priority", "tenant"):
        records[name] = [getattr(job, name) for job in jobs]
    records["deadline"] = np.inf
    records["gpu_milli"] = [sum(ask.gpus * ask.milli * size for ask, size in job.groups) for job in jobs]
    records["shape"] = [kinds.index(job.groups) for job in jobs]
    instances = shapes["instances"][records["shape"]].astype(np.int64)
    records["first_slot"] = np.cumsum(instances) - instances
    names = pl.Series("job_id", [f"job-{j}" for j in range(len(jobs))])
    return Workload(records, shapes, groups, requests, allowed, names, _tenants(jobs), models, {})


def _tenants(jobs: Sequence[Job]) -> tuple[str, ...]:
    last = max(job.tenant for job in jobs)
    return tuple(f"tenant-{t}" for t in range(last + 1)) if last else ("everyone",)


def _requests(asks: Sequence[Ask], models: tuple[str, ...]) -> tuple[Records, Records]:
    requests = np.zeros(len(asks), REQUEST)
    for name in AMOUNTS:
        requests[name] = [getattr(ask, name) for ask in asks]
    requests["gpu_count"] = [ask.gpus for ask in asks]
    requests["gpu_milli"] = [ask.milli if ask.gpus else 0 for ask in asks]
    requests["gpu_memory"] = [ask.gpu_memory for ask in asks]
    requests["kind"] = [ask.kind for ask in asks]
    requests["max_per_node"] = [-1 if ask.limit is None else ask.limit for ask in asks]
    applications = list(dict.fromkeys(ask.application for ask in asks if ask.limit is not None))
    requests["application"] = [
        -1 if ask.limit is None else APPLICATIONS + applications.index(ask.application) for ask in asks
    ]
    allowed = np.array([[not ask.models or m in ask.models or m == "" for m in models] for ask in asks])
    return requests, allowed


def trace_of_jobs(jobs: Sequence[Job], job_ids: Sequence[str] | None = None) -> Trace:
    """Return the jobs as a trace: one task per group, the prediction as the time limit asked for."""
    rows = [
        {
            "job_id": job_ids[j] if job_ids else f"job-{j:04d}",
            "role": f"role-{g}",
            "application": ask.application,
            "priority": int(job.priority),
            "submit_time": float(job.submit),
            "duration_seconds": float(job.duration),
            "requested_seconds": float(job.predicted),
            "instances": size,
            "cpu_milli": ask.cpu,
            "memory_mib": ask.memory,
            "disk_mib": ask.disk,
            "rdma_percent": ask.rdma,
            "gpu_count": ask.gpus,
            "gpu_milli": ask.milli if ask.gpus else 0,
            "gpu_memory_mib": ask.gpu_memory,
            "gpu_models_allowed": "|".join(sorted(ask.models)) or None,
            "max_per_node": ask.limit,
        }
        for j, job in enumerate(jobs)
        for g, (ask, size) in enumerate(job.groups)
    ]
    return Trace.from_frames({"tasks": pl.DataFrame(rows, infer_schema_length=None)}, TraceMeta("cases"))


@dataclass(frozen=True)
class Case:
    """A cluster and jobs in order of submission."""

    nodes: tuple[Node, ...]
    jobs: tuple[Job, ...]

    @property
    def asks(self) -> list[Ask]:
        """Return what instances ask for, in the order in which the engine's requests are numbered."""
        return _asks(self.jobs)

    @cached_property
    def engine_input(self) -> tuple[Workload, Cluster, Records]:
        cluster = cluster_of(self.nodes)
        workload = workload_of_jobs(self.jobs, cluster_models(cluster))
        return workload, cluster, typical_jobs(workload)

    def run(
        self,
        order: str = "fifo",
        backfill: str = "strict",
        placement: str = "first-fit",
        *,
        attribute: bool = True,
        **order_parameters: float,
    ) -> Run:
        workload, cluster, typical = self.engine_input
        rules = Scheduler(order, backfill, placement, order_parameters)
        return run(workload, cluster, rules, typical=typical, attribute=attribute)

    def by_engine(self, order: str = "fifo", backfill: str = "strict", placement: str = "first-fit") -> list[Outcome]:
        return outcomes_of(self.run(order, backfill, placement), self.asks)

    def by_reference(self, order: str, backfill: str, placement: str) -> list[Outcome]:
        return simulate(self.nodes, self.jobs, order, backfill, placement)


def outcomes_of(done: Run, asks: Sequence[Ask]) -> list[Outcome]:
    """Return the engine's result in the reference's terms; `asks` says what each request is."""
    queue, slots, shares = done.world.queue, done.world.slots, done.world.causes.share
    outcomes = []
    for j, record in enumerate(queue.jobs):
        outcome = Outcome(FATES[record["outcome"]], float(record["start"]))
        if not np.isnan(record["start"]):
            first = record["first_slot"]
            taken = slots[first : first + queue.shapes["instances"][record["shape"]]]
            outcome.spots = tuple(Spot(int(s["node"]), bits(int(s["devices"])), asks[s["request"]]) for s in taken)
            outcome.waited.update({c: float(x) for c, x in zip(CAUSE_NAMES, shares[j], strict=True) if x})
        outcomes.append(outcome)
    return outcomes


def read_back(workload: Workload) -> tuple[list[Ask], list[Job]]:
    """Return the requests and jobs that the engine's arrays speak of; names of applications are lost."""
    asks = []
    for request, allowed in zip(workload.requests, workload.allowed, strict=True):
        named = [m for m, may in zip(workload.models, allowed, strict=True) if may and m]
        everywhere = allowed.all()
        limited = request["max_per_node"] >= 0
        asks.append(
            Ask(
                gpus=int(request["gpu_count"]),
                milli=int(request["gpu_milli"]) if request["gpu_count"] else WHOLE,
                **{name: int(request[name]) for name in (*AMOUNTS, "gpu_memory")},
                models=frozenset() if everywhere else frozenset(named or ["nowhere"]),
                limit=int(request["max_per_node"]) if limited else None,
                application=str(request["application"]) if limited else None,
            )
        )
    jobs = []
    for job in workload.jobs:
        shape = workload.shapes[job["shape"]]
        groups = workload.groups[shape["first_group"] : shape["first_group"] + shape["groups"]]
        asked = tuple((asks[group["request"]], int(group["size"])) for group in groups)
        submit, duration, predicted, priority = (
            float(job[name]) for name in ("submit", "duration", "predicted", "priority")
        )
        jobs.append(Job(submit, duration, asked, predicted, priority))
    return asks, jobs


def bits(devices: int) -> tuple[int, ...]:
    return tuple(d for d in range(devices.bit_length()) if devices >> d & 1)


def random_case(seed: int) -> Case:
    """Return a small case with many ties: few instants, few kinds of instances, little room."""
    dice = random.Random(seed)
    rich = dice.random() < 0.6  # CPU, memory, disk, RDMA, GPU memory and limits matter
    nodes = tuple(_random_node(dice, rich) for _ in range(dice.randint(1, 3)))
    pool = [_random_ask(dice, rich) for _ in range(dice.randint(1, 4))]
    kinds = [_random_groups(dice, pool) for _ in range(dice.randint(1, 4))]
    exact = dice.random() < 0.4
    last = dice.choice([0, 3, 8])
    jobs = []
    for submit in sorted(dice.randint(0, last) for _ in range(dice.randint(1, 6))):
        duration = dice.choice([0, 1, 1, 2, 3, 4, 6, 9])
        predicted = duration if exact else dice.choice([duration, 0, 1, 2, 3, 5, 8])
        jobs.append(Job(submit, duration, dice.choice(kinds), predicted, dice.randint(0, 2)))
    return Case(nodes, tuple(jobs))


def _random_node(dice: random.Random, rich: bool) -> Node:
    place = {"rack": dice.choice([None, "r0", "r1"]), "domain": dice.choice([None, "d0", "d1"])}
    gpus, model = dice.choice([0, 1, 2, 2, 3, 3]), dice.choice([None, "A", "A", "B"])
    if not rich:
        return Node(gpus, model, **place)
    return Node(
        gpus,
        model if gpus else None,
        dice.choice([None, 2000, 4000, 6000]),
        dice.choice([None, 8, 16]),
        dice.choice([None, None, 10]),
        dice.choice([None, 100, 200]),
        dice.choice([None, 16, 32]),
        **place,
    )


def _random_ask(dice: random.Random, rich: bool) -> Ask:
    gpus = dice.choice([0, 1, 1, 1, 1, 2, 2, 3])
    shares = [200, 500, 500, 1000] if gpus == 1 else [500, 1000, 1000, 1000]
    ask = {"gpus": gpus, "milli": dice.choice(shares) if gpus else 1000}
    if gpus and dice.random() < 0.25:
        ask["models"] = frozenset(dice.choice([["A"], ["B"], ["A", "B"]]))
    if rich:
        ask["cpu"] = dice.choice([0, 500, 1000, 2000])
        ask["memory"] = dice.choice([0, 0, 2, 4, 8])
        ask["disk"] = dice.choice([0, 0, 0, 5])
        ask["rdma"] = dice.choice([0, 0, 0, 50, 100])
        if gpus and dice.random() < 0.4:
            ask["gpu_memory"] = dice.choice([4, 8, 16])
    if dice.random() < 0.3:
        ask["limit"], ask["application"] = dice.choice([1, 1, 2]), dice.choice(["x", "y"])
    return Ask(**ask)


def _random_groups(dice: random.Random, pool: Sequence[Ask]) -> tuple[tuple[Ask, int], ...]:
    asks = dice.sample(pool, 2) if len(pool) > 1 and dice.random() < 0.35 else [dice.choice(pool)]
    return tuple((ask, dice.choice([1, 1, 1, 2, 3])) for ask in asks)
