"""Jobs as workers of one GPU each, so that they can have any size: the workload of a run with elastic jobs.

A job of one role whose instances take whole GPUs is split into workers, each with its part of the CPU, memory and network.
Other jobs keep their size. Each job runs on one GPU model: of those it may use, the one that has least predicted work per
GPU so far when jobs are taken in order of submission.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gputwin.core.errors import UserError
from gputwin.simulation.elasticity.curves import PROFILES, curves
from gputwin.simulation.elasticity.sizes import ELASTIC, Ints
from gputwin.simulation.elasticity.throughput import Floats
from gputwin.simulation.engine.state.lives import plain_forms
from gputwin.simulation.engine.state.records import GROUP, REQUEST, SHAPE, WHOLE, Flags, Records
from gputwin.simulation.workload import Workload

NO_GPUS = -1
_SHARED = ("cpu", "memory", "disk", "rdma")


@dataclass(frozen=True)
class ElasticPlan:
    """A policy that says at rounds how many GPUs each job has, between `least_gpus` and `most_gpus`.

    A job that asks for more than that may have what it asks for. Speeds follow the curves of measured applications, or
    n to the power of `exponent` where that is given.
    """

    policy: str
    round_seconds: float = 360.0
    least_gpus: int = 1
    most_gpus: int = 16
    exponent: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.least_gpus <= self.most_gpus:
            problem = f"elastic jobs have {self.least_gpus} to {self.most_gpus} GPUs"
            raise UserError(f"{problem}; give 1 <= least_gpus <= most_gpus")
        if self.exponent is not None and not 0 < self.exponent <= 1:
            raise UserError(f"scaling exponent is {self.exponent:g}; give more than 0 and at most 1")


@dataclass(frozen=True)
class Workers:
    """The workload split into workers; per job its GPU model (NO_GPUS: it takes none), sizes, and curve."""

    workload: Workload
    pool: Ints
    asked: Floats
    """GPUs it asks for; its work is counted in seconds on so many."""
    least: Floats
    most: Floats
    kind: Ints
    curves: Floats
    """[kind, GPUs]: speed against that on one GPU."""

    def shape(self, jobs: Ints, sizes: Floats) -> Ints:
        """Return the shapes of jobs at these sizes."""
        base: Ints = self.workload.jobs["shape"][jobs].astype(np.int64)
        return base + np.where(self.most[jobs] > self.least[jobs], sizes - self.least[jobs], 0).astype(np.int64)

    def speeds(self, jobs: Ints) -> Floats:
        """Return [job, GPUs]: work a second; 1 on any number for jobs that keep their size."""
        kind, asked = self.kind[jobs], self.asked[jobs]
        fixed = self.most[jobs] == self.least[jobs]
        table: Floats = self.curves[kind] / self.curves[kind, np.where(fixed, 1, asked).astype(np.int64)][:, None]
        table[fixed, 1:] = 1.0
        return table


def with_workers(workload: Workload, gpus: Ints, plan: ElasticPlan) -> Workers:
    """Return the workload split into workers, for a cluster with so many GPUs of each model."""
    jobs, shapes = workload.jobs.copy(), workload.shapes
    first = workload.groups[shapes["first_group"]]
    request = workload.requests[first["request"]]
    splits = _can_split(workload)
    is_elastic = splits[jobs["shape"]]
    asked = jobs["gpu_milli"] / WHOLE
    most = np.where(is_elastic, np.maximum(asked, plan.most_gpus), asked)
    least = np.where(is_elastic, np.minimum(asked, plan.least_gpus), asked)
    widest = int(most[is_elastic].max(initial=1))
    table = curves(widest, adapts=ELASTIC.get(plan.policy).adapts, exponent=plan.exponent)
    kind = np.zeros(jobs.size, np.int64) if workload.kinds is None or plan.exponent is not None else workload.kinds
    pool = _pools(workload, asked, gpus)
    made = _Shapes(workload)
    codes, number = np.unique(
        np.column_stack([jobs["shape"], pool, np.where(is_elastic, kind, 0)]), axis=0, return_inverse=True
    )
    bases = []
    for s, m, k in codes.tolist():
        if m == NO_GPUS or not splits[s]:
            bases.append(made.fixed(s, m))
            continue
        whole = int(shapes["instances"][s]) * int(request["gpu_count"][s])
        sizes = range(min(whole, plan.least_gpus), max(whole, plan.most_gpus) + 1)
        bases.append(made.sizes(s, m, sizes, table[k] / table[k, whole]))
    jobs["shape"] = np.array(bases)[number.ravel()]
    asked_instances = shapes["instances"][workload.jobs["shape"]].astype(np.int64)
    most_instances = np.where(is_elastic, most, asked_instances).astype(np.int64)
    jobs["first_slot"] = np.cumsum(most_instances) - most_instances
    split = replace(made.workload(jobs), asked_instances=asked_instances, most_instances=most_instances)
    return Workers(split, pool, asked, least, most, kind, table)


def _can_split(workload: Workload) -> Flags:
    """Return by shape whether it can be split into workers of one GPU."""
    shapes = workload.shapes
    request = workload.requests[workload.groups[shapes["first_group"]]["request"]]
    whole = (request["gpu_count"] > 0) & (request["gpu_milli"] == WHOLE)
    found: Flags = (shapes["groups"] == 1) & whole & (request["max_per_node"] < 0)
    return found


def needs_curve(workload: Workload) -> Flags:
    """Return by job whether its size can change, so that its speed at other sizes must be known."""
    found: Flags = _can_split(workload)[workload.jobs["shape"]]
    return found


def _pools(workload: Workload, asked: Floats, gpus: Ints) -> Ints:
    """Return the GPU model that each job runs on."""
    shapes, jobs = workload.shapes, workload.jobs
    may = np.ones((shapes.size, gpus.size), np.bool_)
    for s, shape in enumerate(shapes):
        for g in range(shape["first_group"], shape["first_group"] + shape["groups"]):
            r = workload.groups[g]["request"]
            if workload.requests[r]["gpu_count"] > 0:
                may[s] &= workload.allowed[r]
    may &= gpus > 0
    work = jobs["predicted"] * asked / np.maximum(asked.max(initial=1.0), 1.0)
    load, share = np.zeros(gpus.size), 1.0 / np.maximum(gpus, 1)
    pool = np.full(jobs.size, NO_GPUS)
    for j in np.flatnonzero(asked > 0).tolist():
        models = np.flatnonzero(may[jobs["shape"][j]])
        # Who may run nowhere is never placed, whatever its model.
        pool[j] = models[load[models].argmin()] if models.size else 0
        load[pool[j]] += work[j] * share[pool[j]]
    return pool


class _Shapes:
    """Shapes, groups and requests as they are added."""

    def __init__(self, base: Workload) -> None:
        self.base = base
        self.shapes: list[Records] = []
        self.groups: list[Records] = []
        self.requests: list[Records] = []
        self.allowed: list[Records] = []
        self.constraints: list[str] = []
        self.speeds: list[float] = []
        self._known: dict[tuple[int, int, bool], int] = {}

    def fixed(self, s: int, model: int) -> int:
        """Add shape s on one GPU model and return its number."""
        shape = self.base.shapes[s].copy()
        members = self.base.groups[shape["first_group"] : shape["first_group"] + shape["groups"]].copy()
        members["request"] = [self._request(int(r), model, split=False) for r in members["request"]]
        return self._add(shape, members, 1.0)

    def sizes(self, s: int, model: int, sizes: range, speed: Floats) -> int:
        """Add shape s split into workers, once for each size, and return the number of the first."""
        first, asked = len(self.shapes), self.base.groups[self.base.shapes[s]["first_group"]]
        for n in sizes:
            shape, member = self.base.shapes[s].copy(), np.zeros(1, GROUP)
            member["request"], member["size"] = self._request(int(asked["request"]), model, split=True), n
            shape["instances"] = n
            self._add(shape, member, float(speed[n]))
        return first

    def workload(self, jobs: Records) -> Workload:
        """Return the workload of these jobs with all that was added."""
        forms = plain_forms(len(self.shapes))
        forms["speed"] = self.speeds
        return replace(
            self.base,
            jobs=jobs,
            shapes=np.array(self.shapes, SHAPE),
            groups=np.concatenate(self.groups),
            requests=np.array(self.requests, REQUEST),
            allowed=np.array(self.allowed),
            constraints=tuple(self.constraints),
            forms=forms,
        )

    def _add(self, shape: Records, members: Records, speed: float) -> int:
        shape["first_group"] = sum(len(g) for g in self.groups[-1:]) + (
            int(self.shapes[-1]["first_group"]) if self.shapes else 0
        )
        self.shapes.append(shape)
        self.groups.append(members)
        self.speeds.append(speed)
        return len(self.shapes) - 1

    def _request(self, r: int, model: int, *, split: bool) -> int:
        base, key = self.base, (r, model, split)
        if key not in self._known:
            request, allowed = base.requests[r].copy(), base.allowed[r].copy()
            if request["gpu_count"] > 0 and model != NO_GPUS:
                allowed[:] = np.arange(allowed.size) == model
            if split:
                for name in _SHARED:
                    request[name] = -(-int(request[name]) // int(request["gpu_count"]))
                request["gpu_count"] = 1
            self._known[key] = len(self.requests)
            self.requests.append(request)
            self.allowed.append(allowed & base.allowed[r])
            if base.constraints:
                self.constraints.append(base.constraints[r])
        return self._known[key]


KINDS = tuple(profile.name for profile in PROFILES)
"""Types of jobs with a curve of their own."""
