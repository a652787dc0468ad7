"""The quantities every analysis starts from, as expressions over the task table, defined once."""

from __future__ import annotations

import polars as pl

WAIT = (pl.col("start_time") - pl.col("submit_time")).alias("wait_seconds")
"""s from submit to start; null unless both are known, which takes the row out of scheduling analysis."""

RUNTIME = (
    pl.when(~pl.col("is_running"))
    .then(pl.coalesce("duration_seconds", pl.col("end_time") - pl.col("start_time")))
    .alias("runtime_seconds")
)
"""s it ran; null while it runs, which takes the row out of runtime analysis."""

ARRIVAL = pl.coalesce("submit_time", "start_time").alias("arrival_time")
"""s; when demand for it began, as far as the source says."""

GPU_MILLI_TOTAL = (
    pl.col("instances") * pl.col("gpu_count").cast(pl.Int64) * pl.col("gpu_milli").fill_null(1000)
).alias("gpu_milli_total")
"""milli-GPU asked for by the whole gang; null where the source does not say."""

IS_COMPLETE = pl.col("submit_time").is_not_null() & pl.col("start_time").is_not_null() & RUNTIME.is_not_null()
"""True where submit, start and runtime are all known."""
