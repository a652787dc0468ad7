"""The nodes of a cluster as the engine has them."""

from __future__ import annotations

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.fit.room import MANY
from gputwin.simulation.engine.state.records import APPLICATIONS, DEVICE, NODE, PLENTY, WHOLE, Floats, Ints, Machines
from gputwin.simulation.workload import Workload

MOST_DEVICES = 62


def cluster_models(cluster: Cluster) -> tuple[str, ...]:
    """Return the GPU models of the cluster as they are numbered; "" stands for GPUs of no stated model and for none.

    In order of name, so that the same machines in another order number them alike.
    """
    return tuple(sorted({g.gpu_model or "" for g in cluster.groups}))


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
    nodes["rack"], nodes["domain"] = numbered(frame["rack"]), numbered(frame["network_domain"])
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


def numbered(names: pl.Series) -> Ints:
    """Return each name's number in order of appearance; -1 where there is none."""
    known = {name: i for i, name in enumerate(names.unique(maintain_order=True).drop_nulls())}
    return np.array([known.get(name, -1) for name in names], np.int64)


def largest_node(machines: Machines) -> Floats:
    """Return CPU and GPU (milli) of the largest node."""
    nodes = machines.nodes
    return np.array([max(nodes["cpu"].max(), 1), max(nodes["gpu_count"].max() * WHOLE, 1)], np.float64)
