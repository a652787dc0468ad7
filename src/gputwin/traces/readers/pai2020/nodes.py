"""Nodes: the machine specifications, and machines that only the joined sample names."""

from __future__ import annotations

import polars as pl

from gputwin.core.units import CORE_MILLI, MIB_PER_GIB
from gputwin.traces.readers.pai2020.tables import MACHINE_SPEC, Published, gpu_model

_IN_SAMPLE = {f"{name}_machine_spec": name for name in ("gpu_type", "cap_cpu", "cap_mem", "cap_gpu")}


def nodes_of(published: Published, joined: pl.DataFrame) -> pl.DataFrame:
    """Return one row per machine."""
    listed = published.frame(MACHINE_SPEC)
    seen = joined.select("_row", "machine", *_IN_SAMPLE).rename(_IN_SAMPLE)
    seen = seen.filter(pl.col("machine").is_not_null()).unique("machine", keep="first", maintain_order=True)
    unlisted = seen.join(listed, on="machine", how="anti", maintain_order="left")
    return pl.concat([listed, unlisted]).select(
        "_row",
        pl.col("machine").alias("node_id"),
        gpu_model("gpu_type"),
        pl.col("cap_gpu").alias("gpu_count"),
        (pl.col("cap_cpu") * CORE_MILLI).round().alias("cpu_milli"),
        (pl.col("cap_mem") * MIB_PER_GIB).round().alias("memory_mib"),
    )
