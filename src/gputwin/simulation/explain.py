"""Why one job waited: its causes, who held what it needed, who went first, and when it could have started otherwise.

The cluster's state during the wait is rebuilt from the run's placements. The job could have started, under a relaxed
constraint, at the first moment at which all its instances had room with that constraint lifted; "no one before it"
lifts only the queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.simulation.cause_words import has_rounds
from gputwin.simulation.completion import completion_of
from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES
from gputwin.simulation.engine.state.records import PLENTY, WHOLE, Floats
from gputwin.simulation.explain_preemption import queues_missing
from gputwin.simulation.explain_stops import displaced_by, quota_of, sizes_of, stops_of
from gputwin.simulation.explanation import Explanation
from gputwin.simulation.neighbours import neighbours_of
from gputwin.simulation.priority_parts import PriorityParts, aged_parts
from gputwin.simulation.quotas.explain import quota_limits
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.slurm.explain import priority_parts

RELAXATIONS = {
    "no one before it": (),
    "any GPU model": ("models",),
    "no CPU or memory limit": ("base",),
    "no per-node limit": ("limit",),
    "no network limit": ("rdma",),
    "free GPUs counted wherever they are": ("models", "base", "limit", "rdma", "whole"),
}
_SHOWN = 5
_MANY = 1 << 30


def explain(result: SimulationResult, job_id: str) -> Explanation:
    """Return why the job called `job_id` waited in this run."""
    rows = result.jobs.with_row_index("row").filter(pl.col("job_id") == job_id)
    if rows.is_empty():
        longest = result.jobs.sort("wait_seconds", descending=True, nulls_last=True)["job_id"][0]
        raise UserError(f"the run has no job '{job_id}'; the one that waited longest is '{longest}'")
    job = rows.row(0, named=True)
    submit, start = job["submit_time"], job["start_time"]
    waited, slowed = job["wait_seconds"], float(job.get("slow_neighbours_seconds") or 0.0)
    causes = {name: float(job.get(f"wait_{name}_seconds") or 0.0) for name in CAUSE_NAMES}
    gone = queues_missing(result)
    groups = result.groups.filter(pl.col("shape") == job["shape"])
    later = result.jobs.filter((pl.col("submit_time") > submit) & (pl.col("start_time") < (start or np.inf)))
    return Explanation(
        job_id=job_id,
        tenant=job["tenant"],
        outcome=job["outcome"],
        submit_time=submit,
        start_time=start,
        wait_seconds=waited,
        instances=job["instances"],
        gpus=job["gpu_milli"] / WHOLE,
        causes_seconds=causes,
        could_have_started=_relaxed_starts(result, job["row"], submit, start, groups) if waited else {},
        holders=_holders(result, job["row"], submit, groups) if waited else [],
        overtaken_by=later.height if waited else 0,
        overtakers=_brief(later.sort("gpu_milli", descending=True)) if waited else [],
        has_rounds=has_rounds(result),
        was_running=bool(job.get("was_running")),
        priority_at_submit=_priority(result, job, submit) if waited else None,
        priority_at_start=_priority(result, job, start) if waited else None,
        stops=stops_of(result, job["row"]),
        displaced=displaced_by(result, job["row"]),
        sizes=sizes_of(result, job["row"]),
        quota=quota_of(result, job["tenant"], submit),
        quota_limits=[] if gone or not causes["quota_or_fairness"] else quota_limits(result, job["row"]),
        queues_missing=gone,
        slowed_by_neighbours_seconds=slowed,
        neighbours=neighbours_of(result, job["row"]) if slowed > 0 else [],
        completion_nanoseconds=next(completion_of(rows).iter_rows(named=True), {}),
    )


def _priority(result: SimulationResult, job: dict[str, Any], time: float) -> PriorityParts | None:
    """Return what made the job's priority at `time`, under an order that goes by priorities."""
    return priority_parts(result, job, time) or aged_parts(result.manifest["scheduler"], job, time)


def _brief(jobs: pl.DataFrame) -> list[dict[str, Any]]:
    return (
        jobs.head(_SHOWN)
        .select("job_id", "tenant", "submit_time", "start_time", (pl.col("gpu_milli") / WHOLE).alias("gpus"))
        .to_dicts()
    )


def _holders(result: SimulationResult, row: int, submit: float, groups: pl.DataFrame) -> list[dict[str, Any]]:
    models = set(groups["models"].explode().drop_nulls())
    usable = result.nodes.with_row_index("node").filter(pl.col("gpu_model").fill_null("").is_in(list(models)))
    held = (
        result.placements.filter(pl.col("job") != row)
        .join(usable.select("node"), on="node", how="semi")
        .group_by("segment", "job")
        .agg((pl.col("gpu_count") * pl.col("gpu_milli")).sum().alias("milli"))
    )
    segments = result.segments.with_row_index("segment").select("segment", "start_time", "end_time")
    jobs = result.jobs.with_row_index("job").select("job", "job_id", "tenant")
    held = held.join(segments, on="segment")
    begin, end = (_waited_until(result, row, submit, held[name].to_numpy()) for name in ("start_time", "end_time"))
    return (
        held.with_columns((pl.Series(end - begin) * pl.col("milli") / WHOLE / 3600.0).alias("gpu_hours"))
        .filter(pl.col("gpu_hours") > 0)
        .group_by("job")
        .agg(pl.col("milli", "end_time").max(), pl.col("gpu_hours").sum(), pl.col("start_time").min())
        .join(jobs, on="job")
        .sort("gpu_hours", "job_id", descending=[True, False])
        .head(_SHOWN)
        .select("job_id", "tenant", (pl.col("milli") / WHOLE).alias("gpus"), "gpu_hours", "start_time", "end_time")
        .to_dicts()
    )


def _waited_until(result: SimulationResult, row: int, submit: float, times: Floats) -> Floats:
    """Return how many seconds the job had waited by each time: before it first started, and after every stop."""
    own = result.segments.filter(pl.col("job") == row).sort("start_time").select("start_time", "end_time").to_numpy()
    points = np.concatenate(([submit], own.ravel()))
    waits = np.diff(points)
    waits[1::2] = 0.0
    return np.interp(times, points, np.concatenate(([0.0], np.cumsum(waits))))


class _Cluster:
    """Node states during one wait, rebuilt from placements."""

    def __init__(self, result: SimulationResult) -> None:
        nodes = result.nodes
        self.free = {
            name: nodes[column].cast(pl.Int64).fill_null(PLENTY).to_numpy().copy()
            for name, column in (
                ("cpu", "cpu_milli"),
                ("memory", "memory_mib"),
                ("disk", "disk_mib"),
                ("rdma", "rdma_percent"),
            )
        }
        self.count = nodes["gpu_count"].to_numpy()
        width = max(int(self.count.max()), 1)
        exists = np.arange(width) < self.count[:, None]
        self.share = np.where(exists, WHOLE, 0).astype(np.int64)
        memory = nodes["gpu_memory_mib"].cast(pl.Int64).fill_null(PLENTY).to_numpy()
        self.memory = np.where(exists, memory[:, None], 0)
        self.model = nodes["gpu_model"].fill_null("").to_list()
        self.residents: dict[tuple[int, int], int] = {}
        self.request = {r["request"]: r for r in result.groups.unique("request").to_dicts()}

    def change(self, node: int, devices: int, request: int, sign: int) -> None:
        """Take (1) or free (-1) one instance."""
        asks = self.request[request]
        for name, free in self.free.items():
            free[node] -= sign * asks[name]
        for d in range(self.count[node]):
            if devices >> d & 1:
                self.share[node, d] -= sign * asks["gpu_milli"]
                self.memory[node, d] -= sign * asks["gpu_memory"]
        if asks["application"] >= 0:
            key = (node, asks["application"])
            self.residents[key] = self.residents.get(key, 0) + sign

    def room(self, node: int, asks: dict[str, Any], lifted: tuple[str, ...]) -> int:
        """Return how many instances fit on the node with the `lifted` constraints ignored."""
        room = _MANY
        if asks["gpu_count"]:
            if "models" not in lifted and self.model[node] not in asks["models"]:
                return 0
            slots = self.share[node] // asks["gpu_milli"]
            if asks["gpu_memory"]:
                slots = np.minimum(slots, self.memory[node] // asks["gpu_memory"])
            room = int(slots.sum() // asks["gpu_count"])
            while room > 0 and np.minimum(slots, room).sum() < room * asks["gpu_count"]:
                room -= 1
        if "base" not in lifted:
            for name in ("cpu", "memory", "disk"):
                if asks[name]:
                    room = min(room, int(self.free[name][node] // asks[name]))
        if "rdma" not in lifted and asks["rdma"]:
            room = min(room, int(self.free["rdma"][node] // asks["rdma"]))
        if "limit" not in lifted and asks["max_per_node"] >= 0:
            room = min(room, asks["max_per_node"] - self.residents.get((node, asks["application"]), 0))
        return max(room, 0)


def _relaxed_starts(
    result: SimulationResult, row: int, submit: float, start: float, groups: pl.DataFrame
) -> dict[str, float | None]:
    """Return for each relaxation when all groups first had room, s after submission; None: not before the start."""
    cluster = _Cluster(result)
    asks = groups.to_dicts()
    found: dict[str, float | None] = dict.fromkeys(RELAXATIONS)
    rooms: dict[str, np.ndarray[Any, Any]] = {}
    for time, touched in _moments(result, cluster, row, submit, start):
        for name, lifted in RELAXATIONS.items():
            if found[name] is not None:
                continue
            if "whole" in lifted:
                needed = sum(a["size"] * a["gpu_count"] * a["gpu_milli"] for a in asks)
                if cluster.share.sum() >= needed:
                    found[name] = time - submit
                continue
            if name not in rooms:
                rooms[name] = np.array([[cluster.room(n, a, lifted) for n in range(cluster.count.size)] for a in asks])
            for n in touched:
                rooms[name][:, n] = [cluster.room(n, a, lifted) for a in asks]
            if all(rooms[name][g].sum() >= a["size"] for g, a in enumerate(asks)):
                found[name] = time - submit
        if all(value is not None for value in found.values()):
            break
    return found


def _moments(
    result: SimulationResult, cluster: _Cluster, row: int, submit: float, start: float
) -> Iterator[tuple[float, set[int]]]:
    """Yield each moment of the wait at which something changed, the state being brought up to it."""
    segments = result.segments.with_row_index("segment").select("segment", "start_time", "end_time")
    alive = (
        result.placements.filter(pl.col("job") != row)
        .join(segments, on="segment")
        .filter((pl.col("start_time") < start) & (pl.col("end_time") > submit))
        .select("node", "devices", "request", "start_time", "end_time")
    )
    changes: list[tuple[float, int, int, int, int]] = []
    for node, devices, request, begin, end in alive.iter_rows():
        if begin <= submit:
            cluster.change(node, devices, request, 1)
        else:
            changes.append((begin, 1, node, devices, request))
        if end < start:
            changes.append((end, -1, node, devices, request))
    yield submit, set()
    changes.sort()
    k = 0
    while k < len(changes):
        time = changes[k][0]
        touched = set()
        while k < len(changes) and changes[k][0] == time:
            _, sign, node, devices, request = changes[k]
            cluster.change(node, devices, request, sign)
            touched.add(node)
            k += 1
        yield time, touched
