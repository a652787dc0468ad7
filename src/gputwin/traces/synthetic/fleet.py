"""The machines of a synthetic trace: node types, how many of each, and the node table they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from gputwin.core.units import CORE_MILLI, MIB_PER_GIB
from gputwin.traces.schema import NODES, conform


@dataclass(frozen=True)
class NodeType:
    """A number of equal machines; what is not known of them is None."""

    nodes: int
    cores: int | None
    memory_gib: int | None
    gpus: int = 0
    gpu_model: str | None = None
    gpu_memory_gib: int | None = None
    rdma_percent: int | None = None
    disk_gib: int | None = None


def node_table(types: Sequence[NodeType], node_id: pl.Series) -> pl.DataFrame:
    """Return the canonical node table, types in order, named by `node_id`."""
    rows = pl.DataFrame(
        [
            (
                t.nodes,
                t.gpu_model,
                t.gpus,
                _times(t.gpu_memory_gib, MIB_PER_GIB),
                _times(t.cores, CORE_MILLI),
                _times(t.memory_gib, MIB_PER_GIB),
                t.rdma_percent,
                _times(t.disk_gib, MIB_PER_GIB),
            )
            for t in types
        ],
        schema={
            "nodes": pl.Int64,
            "gpu_model": pl.String,
            "gpu_count": pl.Int32,
            "gpu_memory_mib": pl.Int64,
            "cpu_milli": pl.Int64,
            "memory_mib": pl.Int64,
            "rdma_percent": pl.Int32,
            "disk_mib": pl.Int64,
        },
        orient="row",
    )
    kinds = rows.with_columns(pl.int_ranges("nodes").alias("_")).explode("_").drop("nodes", "_")
    return conform(NODES, kinds.with_columns(node_id.alias("node_id")).lazy()).collect()


def _times(amount: int | None, unit: int) -> int | None:
    return None if amount is None else amount * unit


def node_count(types: Sequence[NodeType]) -> int:
    """Return the number of machines."""
    return sum(t.nodes for t in types)


def gpu_total(types: Sequence[NodeType]) -> int:
    """Return the number of GPUs."""
    return sum(t.nodes * t.gpus for t in types)


def numbered(prefix: str, rows: int) -> pl.Series:
    """Return identifiers prefix-0000, prefix-0001, …, all of one width."""
    width = max(4, len(str(rows - 1)))
    return pl.Series([f"{prefix}-{i:0{width}d}" for i in range(rows)], dtype=pl.String)
