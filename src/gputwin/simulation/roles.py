"""The order in which the roles of a gang are placed: the hardest to place first.

Hardest is the role whose instance fewest nodes of the empty cluster can hold; among equals, the one that asks for most
GPU share (devices × share), then CPU, memory, disk, RDMA, GPU memory, then the one with the lowest limit per node, then
as given.
"""

from __future__ import annotations

import numpy as np

from gputwin.simulation.engine.state.records import Flags, Ints, Machines, Records

_AMOUNTS = ("cpu", "memory", "disk", "rdma")


def hardest_first(shapes: Records, groups: Records, requests: Records, allowed: Flags, machines: Machines) -> Records:
    """Return the groups with those of each shape in the order in which they are placed."""
    if not (shapes["groups"] > 1).any():
        return groups
    shape_of = np.repeat(np.arange(shapes.size), shapes["groups"])
    several = np.unique(groups["request"][shapes["groups"][shape_of] > 1])
    holding = np.zeros(requests.size, np.int64)
    holding[several] = _nodes_that_hold(requests[several], allowed[several], machines)
    asked = requests[groups["request"]]
    limit = np.where(asked["max_per_node"] < 0, np.iinfo(np.int64).max, asked["max_per_node"])
    keys = (
        shape_of,
        holding[groups["request"]],
        -asked["gpu_count"] * asked["gpu_milli"],
        *(-asked[name] for name in (*_AMOUNTS, "gpu_memory")),
        limit,
    )
    ordered: Records = groups[np.lexsort(keys[::-1])]
    return ordered


def _nodes_that_hold(requests: Records, allowed: Flags, machines: Machines) -> Ints:
    """Return how many nodes of the empty cluster have room for one instance of each request."""
    nodes = machines.nodes
    memory = machines.gpus["memory_free"].max(axis=1)
    capacity = np.stack([*(nodes[name] for name in _AMOUNTS), nodes["gpu_count"], memory, nodes["model"]])
    kinds, counts = np.unique(capacity, axis=1, return_counts=True)
    holding = np.zeros(requests.size, np.int64)
    for (*amounts, gpus, gpu_memory, model), count in zip(kinds.T, counts, strict=True):
        fits = requests["max_per_node"] != 0
        for name, amount in zip(_AMOUNTS, amounts, strict=True):
            fits &= requests[name] <= amount
        on_gpus = (requests["gpu_count"] <= gpus) & (requests["gpu_memory"] <= gpu_memory) & allowed[:, model]
        holding += count * (fits & (on_gpus | (requests["gpu_count"] == 0)))
    return holding
