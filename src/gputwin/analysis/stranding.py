"""Free GPUs nobody can use: snapshots of every machine, and what of its free GPUs its CPU and memory still serve.

After the notion of stranded and fragmented GPUs in Weng et al., "Beware of Fragmentation", USENIX ATC'23, section 3:
a free GPU is counted as lost for the typical task if that task does not fit on the machine. Here the typical task is
the median request of an instance that asks for GPUs.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from gputwin.analysis.frames import Frame, aggregate, collect, lazy
from gputwin.analysis.tasks import TaskFacts, gpu_milli_of_instance
from gputwin.core.units import WHOLE_GPU_MILLI

SNAPSHOTS = 12


def stranded_gpus(tasks: Any, instances: Any, nodes: pl.DataFrame, facts: TaskFacts) -> pl.DataFrame:
    """Return free GPUs at twelve instants: `time` s, `total`, `free`, `whole` (free in whole devices), `stranded`.

    Stranded are those on machines with too little free CPU (`by_cpu`), memory (`by_memory`) or GPU share (`by_gpu`) for
    the typical task.
    """
    own = nodes.filter(pl.col("gpu_count") > 0)
    typical = _typical(lazy(tasks))
    if own.is_empty() or typical is None:
        return pl.DataFrame()
    edges = np.linspace(facts.window.begin, facts.window.until, SNAPSHOTS + 2)[1:-1]
    asked = lazy(tasks).select(
        "job_id",
        "role",
        cpu=nw.col("cpu_milli").fill_null(0),
        memory=nw.col("memory_mib").fill_null(0),
        gpu=gpu_milli_of_instance().fill_null(0),
    )
    rows = lazy(instances).filter(~nw.col("node_id").is_null() & ~nw.col("start_time").is_null())
    alive = nw.when(nw.col("is_running")).then(nw.lit(facts.window.last))
    rows = rows.with_columns(_end=nw.coalesce(nw.col("end_time"), alive))
    rows = rows.select("job_id", "role", "node_id", "start_time", "_end")
    there = nw.concat(
        [
            rows.filter((nw.col("start_time") <= time) & (nw.col("_end") > time)).select(
                "job_id", "role", "node_id", snapshot=nw.lit(i)
            )
            for i, time in enumerate(edges.tolist())
        ],
        how="vertical",
    )
    used = aggregate(
        there.join(asked, on=["job_id", "role"], how="inner"),
        ["snapshot", "node_id"],
        *(nw.col(c).sum().alias(c) for c in ("cpu", "memory", "gpu")),
    )
    return pl.DataFrame(
        [_snapshot(time, own, used.filter(pl.col("snapshot") == i), typical) for i, time in enumerate(edges.tolist())]
    )


def _typical(tasks: Frame) -> dict[str, float] | None:
    rows = tasks.select(gpu=gpu_milli_of_instance(), cpu=nw.col("cpu_milli"), memory=nw.col("memory_mib"))
    rows = rows.filter((nw.col("gpu") > 0) & ~nw.col("cpu").is_null() & ~nw.col("memory").is_null())
    row = collect(rows.select(*(nw.col(c).quantile(0.5, "linear").alias(c) for c in ("gpu", "cpu", "memory"))))
    found: dict[str, float] = row.row(0, named=True)
    return None if found["gpu"] is None else found


def _snapshot(time: float, nodes: pl.DataFrame, used: pl.DataFrame, typical: dict[str, float]) -> dict[str, float]:
    state = nodes.join(used, on="node_id", how="left").with_columns(pl.col("cpu", "memory", "gpu").fill_null(0))
    free = state.select(
        (pl.col("gpu_count").cast(pl.Int64) * WHOLE_GPU_MILLI - pl.col("gpu")).clip(lower_bound=0).alias("gpu"),
        (pl.col("cpu_milli") - pl.col("cpu")).alias("cpu"),
        (pl.col("memory_mib") - pl.col("memory")).alias("memory"),
    )
    gpus = pl.col("gpu") / WHOLE_GPU_MILLI
    lacks = {f"by_{r}": (pl.col(r) < typical[r]).fill_null(False) for r in ("cpu", "memory", "gpu")}
    row = free.select(
        pl.lit(float(nodes["gpu_count"].sum())).alias("total"),
        gpus.sum().alias("free"),
        gpus.floor().sum().alias("whole"),
        *((gpus * lack).sum().alias(name) for name, lack in lacks.items()),
        (gpus * pl.any_horizontal(*lacks.values())).sum().alias("stranded"),
    ).row(0, named=True)
    return {"time": time, **row}
