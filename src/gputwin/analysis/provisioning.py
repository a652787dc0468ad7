"""What is asked for against what is allowed (limits): how much of the limit a request claims."""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
import polars as pl

from gputwin.analysis.frames import Frame, aggregate
from gputwin.analysis.tasks import TaskFacts

RESOURCES = {
    "CPU": ("cpu_milli", "cpu_limit_milli"),
    "GPU": ("gpu_milli", "gpu_limit_milli"),
    "memory": ("memory_mib", "memory_limit_mib"),
    "RDMA": ("rdma_percent", "rdma_limit_percent"),
    "disk": ("disk_mib", "disk_limit_mib"),
}


def request_over_limit(frame: Frame, facts: TaskFacts, by: Sequence[str] = ()) -> pl.DataFrame:
    """Return request over limit per resource and group, over instances that have a limit.

    `mean_of_ratios`, `ratio_of_sums`, `below_share` (requests under the limit), `above_share`.
    """
    parts = []
    for resource, (request, limit) in RESOURCES.items():
        if not facts.knows(limit):
            continue
        known = frame.filter((nw.col(limit) > 0) & ~nw.col(request).is_null())
        known = known.with_columns(
            _ratio=nw.col(request) / nw.col(limit),
            _below=(nw.col(request) < nw.col(limit)).cast(nw.Float64),
            _above=(nw.col(request) > nw.col(limit)).cast(nw.Float64),
        )
        found = aggregate(
            known,
            by,
            nw.len().alias("count"),
            nw.col("_ratio").mean().alias("mean_of_ratios"),
            nw.col(request).sum().alias("_requests"),
            nw.col(limit).sum().alias("_limits"),
            nw.col("_below").mean().alias("below_share"),
            nw.col("_above").mean().alias("above_share"),
        ).filter(pl.col("count") > 0)
        found = found.with_columns((pl.col("_requests") / pl.col("_limits")).alias("ratio_of_sums"))
        names = [*by, "count", "mean_of_ratios", "ratio_of_sums", "below_share", "above_share"]
        parts.append(found.select(pl.lit(resource).alias("resource"), *names))
    return pl.concat(parts) if parts else pl.DataFrame()
