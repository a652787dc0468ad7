"""What a task asks for, per resource, in people's units."""

from __future__ import annotations

import polars as pl

from gputwin.core.units import CORE_MILLI, MIB_PER_GIB, WHOLE_GPU_MILLI, WHOLE_RNIC_PERCENT
from gputwin.traces.measures import GPU_MILLI_TOTAL

_INSTANCES = pl.col("instances")
RESOURCES: dict[str, tuple[str, pl.Expr]] = {
    "cpu": ("cores", _INSTANCES * pl.col("cpu_milli") / CORE_MILLI),
    "gpu": ("GPUs", GPU_MILLI_TOTAL / WHOLE_GPU_MILLI),
    "memory": ("GiB", _INSTANCES * pl.col("memory_mib") / MIB_PER_GIB),
    "rdma": ("RNICs", _INSTANCES * pl.col("rdma_percent") / WHOLE_RNIC_PERCENT),
    "disk": ("GiB", _INSTANCES * pl.col("disk_mib") / MIB_PER_GIB),
    "instances": ("instances", _INSTANCES.cast(pl.Float64)),
}
"""Resource → its unit and what a task asks for in all."""


def amount(resource: str) -> pl.Expr:
    """Return what a task asks for of one resource; nothing where the source does not say."""
    return RESOURCES[resource][1].cast(pl.Float64).fill_null(0.0).alias(resource)
