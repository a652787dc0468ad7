"""Kubernetes nodes: what can be scheduled on them, and where they stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import polars as pl

from gputwin.traces.document import Item
from gputwin.traces.quality import QualityLog
from gputwin.traces.readers.kubernetes import labels as label
from gputwin.traces.readers.kubernetes.resources import amounts_of, cpu_milli, gpus, mib
from gputwin.traces.schema import NODES


class NodeRow(NamedTuple):
    """One node in canonical columns."""

    node_id: str
    gpu_model: str | None
    gpu_count: int
    gpu_memory_mib: int | None
    cpu_milli: int | None
    memory_mib: int | None
    disk_mib: int | None
    rack: str | None
    network_domain: str | None
    is_spot: bool


@dataclass(frozen=True)
class Node:
    """A node's row, how many pods share each of its GPUs in time, and whether it takes new work."""

    row: NodeRow
    sharers: int
    is_open: bool


def node_of(item: Item, quality: QualityLog) -> Node:
    """Return the node an item describes; what pods can have of it counts, not what the machine has."""
    metadata, status = item.child("metadata"), item.child("status")
    labels = metadata.child("labels").text_fields()
    key = "allocatable" if status.value.get("allocatable") else "capacity"
    amounts = amounts_of(status.child(key), quality)
    offered = gpus(amounts)
    sharers = max(1, label.number(labels, "nvidia.com/gpu.replicas") or 1)
    # MIG instances and time slices are offered one by one; the label counts the devices behind them.
    is_divided = sharers > 1 or offered.memory_mib is not None
    devices = label.number(labels, "nvidia.com/gpu.count") if is_divided else None
    count = offered.count if devices is None else devices
    return Node(
        NodeRow(
            node_id=metadata.name("name"),
            gpu_model=label.gpu_model(labels) if count else None,
            gpu_count=count,
            gpu_memory_mib=label.number(labels, "nvidia.com/gpu.memory"),
            cpu_milli=cpu_milli(amounts),
            memory_mib=mib(amounts, "memory"),
            disk_mib=mib(amounts, "ephemeral-storage"),
            rack=label.rack(labels),
            network_domain=label.network_domain(labels),
            is_spot=label.is_spot(labels),
        ),
        sharers,
        is_open=not item.child("spec").flag("unschedulable"),
    )


def node_table(nodes: list[Node], quality: QualityLog) -> pl.DataFrame:
    """Return the nodes as a table; those closed to new work are counted."""
    types = ((name, NODES.schema[name]) for name in NodeRow._fields)
    # Numbers too large for their column must get as far as the rule that counts them.
    schema = {name: pl.Float64() if dtype.is_integer() else dtype for name, dtype in types}
    table = pl.DataFrame([node.row for node in nodes], schema=schema, orient="row")
    closed = table.filter(pl.Series([not node.is_open for node in nodes], dtype=pl.Boolean))
    quality.find("F23", "nodes", closed.height, examples=closed.select("node_id"))
    return table
