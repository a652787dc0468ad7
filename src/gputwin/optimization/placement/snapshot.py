"""The cluster at one moment of a simulated run: what is free on each node and device, and who runs where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.units import WHOLE_GPU_MILLI, parse_duration
from gputwin.optimization.placement.problem import Ints
from gputwin.simulation.result import SimulationResult

AMOUNTS = ("cpu", "memory", "disk", "rdma")
_COLUMNS = ("cpu_milli", "memory_mib", "disk_mib", "rdma_percent")
_PLENTY = 1 << 50


@dataclass(frozen=True)
class Request:
    """What one instance takes: amounts, GPUs and the share of each, where it may run, its per-node limit."""

    amounts: tuple[int, int, int, int] = (0, 0, 0, 0)
    gpus: int = 0
    gpu_milli: int = WHOLE_GPU_MILLI
    models: frozenset[str] | None = None
    max_per_node: int | None = None
    application: int = -1


@dataclass(frozen=True)
class Resident:
    """One running instance: whose it is, what it takes, and the devices it holds."""

    job_id: str
    request: Request
    devices: tuple[int, ...]


@dataclass
class Snapshot:
    """Free amounts and devices per node, and the residents of each. Changing it changes only this copy."""

    node_ids: list[str]
    models: list[str]
    free: Ints
    """nodes × amounts"""
    devices: list[Ints]
    """Free milli of each GPU, per node."""
    residents: list[list[Resident]]

    def copy(self) -> Snapshot:
        """Return a copy that can be changed."""
        return Snapshot(
            self.node_ids,
            self.models,
            self.free.copy(),
            [d.copy() for d in self.devices],
            [list(r) for r in self.residents],
        )

    def copy_of(self, node: int) -> Snapshot:
        """Return a copy of one node alone."""
        return Snapshot(
            [self.node_ids[node]],
            [self.models[node]],
            self.free[node : node + 1].copy(),
            [self.devices[node].copy()],
            [list(self.residents[node])],
        )

    def room(self, node: int, request: Request, most: int) -> int:
        """Return how many instances of the request fit on the node now, at most `most`."""
        if request.models is not None and self.models[node] not in request.models:
            return 0
        room = room_for(self.free[node], self.devices[node], request, most)
        if request.max_per_node is not None:
            here = sum(1 for r in self.residents[node] if r.request.application == request.application >= 0)
            room = min(room, request.max_per_node - here)
        return max(int(room), 0)

    def put(self, node: int, request: Request, job_id: str) -> None:
        """Place one instance on the node, on the fullest devices that hold it."""
        devices = self.devices[node]
        able = [int(d) for d in np.argsort(devices, kind="stable") if devices[d] >= request.gpu_milli]
        chosen = tuple(able[: request.gpus]) if request.gpus else ()
        self._change(node, request, chosen, -1)
        self.residents[node].append(Resident(job_id, request, chosen))

    def take(self, node: int, resident: Resident) -> None:
        """Remove a resident from the node."""
        self.residents[node].remove(resident)
        self._change(node, resident.request, resident.devices, 1)

    def _change(self, node: int, request: Request, devices: tuple[int, ...], sign: int) -> None:
        self.free[node] += sign * np.array(request.amounts, np.int64)
        for d in devices:
            self.devices[node][d] += sign * request.gpu_milli

    def best_node(self, request: Request, without: frozenset[int]) -> int | None:
        """Return the node with the least free GPU (then CPU) that has room for one instance; None where none has."""
        whole = np.array([d.sum() for d in self.devices], np.int64)
        able = (self.free >= np.array(request.amounts)).all(axis=1) & (whole >= request.gpus * request.gpu_milli)
        order = np.lexsort((np.arange(len(whole)), self.free[:, 0], whole))
        return next(
            (int(n) for n in order[able[order]] if int(n) not in without and self.room(int(n), request, 1)), None
        )


def room_for(free: Ints, devices: Ints, request: Request, most: int) -> int:
    """Return how many instances of the request the free amounts and devices (milli) hold, at most `most`."""
    room = most
    for left, amount in zip(free.tolist(), request.amounts, strict=True):
        if amount:
            room = min(room, left // amount)
    if request.gpus:
        per_device = devices // request.gpu_milli
        # Each instance needs distinct devices, so n instances fit when devices give min(n, each) parts in all.
        while room > 0 and int(np.minimum(per_device, room).sum()) < request.gpus * room:
            room -= 1
    return room


def snapshot_of(run: SimulationResult, time: float) -> Snapshot:
    """Return the cluster of a run at a time (s)."""
    nodes = run.nodes
    frame = nodes.select(pl.col(c).cast(pl.Int64).fill_null(_PLENTY) for c in _COLUMNS)
    snapshot = Snapshot(
        nodes["node_id"].to_list(),
        [m or "" for m in nodes["gpu_model"]],
        frame.to_numpy().astype(np.int64).copy(),
        [np.full(n, WHOLE_GPU_MILLI, np.int64) for n in nodes["gpu_count"]],
        [[] for _ in range(nodes.height)],
    )
    requests = requests_of(run)
    jobs = run.jobs.with_row_index("job").select("job", "job_id")
    end = pl.col("end_time").is_null() | (pl.col("end_time") > time)
    present = run.segments.with_row_index("segment").filter((pl.col("start_time") <= time) & end).select("segment")
    alive = run.placements.join(present, on="segment", maintain_order="left").join(
        jobs, on="job", maintain_order="left"
    )
    for row in alive.iter_rows(named=True):
        bits = int(row["devices"])
        devices = tuple(d for d in range(len(snapshot.devices[row["node"]])) if bits >> d & 1)
        resident = Resident(row["job_id"], requests[row["request"]], devices)
        snapshot.residents[row["node"]].append(resident)
        snapshot._change(row["node"], resident.request, devices, -1)
    return snapshot


def requests_of(run: SimulationResult) -> dict[int, Request]:
    """Return what an instance of each request of the run takes."""
    found: dict[int, Request] = {}
    every = sorted({m or "" for m in run.nodes["gpu_model"]})
    for row in run.groups.unique("request", maintain_order=True).iter_rows(named=True):
        models = frozenset(row["models"])
        found[row["request"]] = Request(
            tuple(int(row[a]) for a in AMOUNTS),  # type: ignore[arg-type]
            int(row["gpu_count"]),
            int(row["gpu_milli"]) or WHOLE_GPU_MILLI,
            None if models >= set(every) else models,
            int(row["max_per_node"]) if row["max_per_node"] >= 0 else None,
            int(row["application"]),
        )
    return found


def moment(run: SimulationResult, text: str | None) -> float:
    """Return the time asked for (s): a duration, `end` of arrivals, or `busiest` (most GPUs held; where none is given)."""
    submits = run.jobs["submit_time"]
    if text == "end":
        return float(submits.max())  # type: ignore[arg-type]
    if text is None or text == "busiest":
        series = run.series
        row: Any = series["gpu_allocation"].arg_max()
        return float(series["time"][row or 0])
    try:
        time = parse_duration(text)
    except UserError:
        raise UserError(f"--at {text}: give seconds or a time as in 12h, 'busiest' or 'end'") from None
    first, last = run.segments["start_time"].min(), run.segments["end_time"].max()
    if isinstance(first, float) and isinstance(last, float) and not first <= time <= last:
        raise UserError(f"--at {text}: nothing runs then; the run lasts from {first:.0f} to {last:.0f} s")
    return time
