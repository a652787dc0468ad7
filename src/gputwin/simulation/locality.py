"""Locality relaxed over time: a gang waits for one node for some time, then for one rack, then it goes anywhere.

Zaharia et al., Delay Scheduling, EuroSys'10; so do Philly's scheduler (Jeon et al., ATC'19, section 2.3) and Tiresias. A
place that is asked for is a shape: on one node, all instances are one request for their sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.state.lives import plain_forms
from gputwin.simulation.engine.state.records import GROUP, REQUEST, SHAPE, WHOLE, Records
from gputwin.simulation.workload import Workload

_SUMMED = ("cpu", "memory", "disk", "rdma", "gpu_count")
_COLUMNS = {"cpu": "cpu_milli", "memory": "memory_mib", "disk": "disk_mib", "rdma": "rdma_percent"}


@dataclass(frozen=True)
class Locality:
    """How long a gang waits for one node, and after that for one rack, s; 0: not at all."""

    node_seconds: float = 0.0
    rack_seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("node_seconds", "rack_seconds"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UserError(f"locality {name} is {getattr(self, name):g}; give 0 or more")


class _Nodes:
    """What empty nodes can hold."""

    def __init__(self, cluster: Cluster, models: tuple[str, ...]) -> None:
        frame = cluster.nodes()
        amounts: Mapping[str, pl.Series] = {k: frame[c].cast(pl.Float64) for k, c in _COLUMNS.items()}
        self.amounts = {k: v.fill_null(math.inf).to_numpy() for k, v in amounts.items()}
        self.amounts["gpu_count"] = frame["gpu_count"].cast(pl.Float64).to_numpy()
        self.memory = frame["gpu_memory_mib"].cast(pl.Float64).fill_null(math.inf).to_numpy()
        self.model = np.array([models.index(m or "") for m in frame["gpu_model"]])
        racks = frame["rack"]
        self.rack = np.array([-1 if r is None else racks.unique(maintain_order=True).to_list().index(r) for r in racks])

    def room(self, request: Records, allowed: Records) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return how many instances of a request each node holds."""
        room = np.full(self.model.size, math.inf)
        for name, there in self.amounts.items():
            if request[name] > 0:
                room = np.minimum(room, there // int(request[name]))
        fits = allowed[self.model] & (self.memory >= int(request["gpu_memory"]))
        return np.where(fits, room, 0.0)


def with_locality(workload: Workload, cluster: Cluster, locality: Locality) -> Workload:
    """Return the same jobs, gangs first as shapes on one node or in one rack, where such a place can exist.

    Gangs of several roles, with a limit per node, or of shares of a GPU go anywhere at once.
    """
    nodes = _Nodes(cluster, workload.models)
    shapes, groups, requests = list(workload.shapes), list(workload.groups), list(workload.requests)
    allowed, constraints = list(workload.allowed), list(workload.constraints)
    chains: list[tuple[int, float, int, int]] = []
    begins = np.arange(len(shapes))

    def add(s: int, patience: float, request: int, size: int, in_rack: int) -> None:
        shape, group = shapes[s].copy(), np.zeros((), GROUP)
        group["request"], group["size"] = request, size
        shape["first_group"], shape["instances"] = len(groups), size
        chains.append((len(shapes), patience, int(begins[s]), in_rack))
        begins[s] = len(shapes)
        shapes.append(shape)
        groups.append(group)

    for s in range(workload.shapes.size):
        shape = workload.shapes[s]
        r, size = int(workload.groups[shape["first_group"]]["request"]), int(shape["instances"])
        request = workload.requests[r]
        shares = request["gpu_count"] > 0 and request["gpu_milli"] != WHOLE
        if shape["groups"] > 1 or size == 1 or request["max_per_node"] >= 0 or shares:
            continue
        room = nodes.room(request, workload.allowed[r])
        racks = np.bincount(nodes.rack[nodes.rack >= 0], room[nodes.rack >= 0]) if (nodes.rack >= 0).any() else [0.0]
        if locality.rack_seconds > 0 and max(racks) >= size:
            add(s, locality.rack_seconds, r, size, 1)
        if locality.node_seconds > 0 and room.max() >= size:
            whole = request.copy()
            for name in _SUMMED:
                whole[name] *= size
            requests.append(whole)
            allowed.append(workload.allowed[r])
            constraints += workload.constraints[r : r + 1]
            add(s, locality.node_seconds, len(requests) - 1, 1, 0)
    forms = plain_forms(len(shapes))
    for s, patience, following, in_rack in chains:
        forms[s]["patience"], forms[s]["next"], forms[s]["in_rack"] = patience, following, in_rack
    jobs, asked = workload.jobs.copy(), workload.shapes["instances"][workload.jobs["shape"]].astype(np.int64)
    jobs["shape"] = begins[jobs["shape"]]
    return replace(
        workload,
        jobs=jobs,
        shapes=np.array(shapes, SHAPE),
        groups=np.array(groups, GROUP),
        requests=np.array(requests, REQUEST),
        allowed=np.array(allowed),
        constraints=tuple(constraints),
        forms=forms,
        asked_instances=asked,
        most_instances=asked,
    )
