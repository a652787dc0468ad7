"""Virtual clusters that report their state: how full each is, when it queues, and whether GPUs stood idle meanwhile."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import polars as pl

from gputwin.analysis.bins import Bins
from gputwin.analysis.frames import aggregate, collect, lazy
from gputwin.analysis.topic import Remark, Topic
from gputwin.analysis.words import share

NEEDED = ("running_gpus", "total_gpus", "pending_gpus")
_STATES = (*NEEDED, "idle_gpus", "pending_large_jobs", "pending_small_jobs")
_NOTES = (
    "Each virtual cluster reports its state once a minute. It queues where GPUs are pending; it queues while GPUs are idle "
    "where at least one GPU is idle then: gangs that do not fit, or the order of the queue.",
)


def tenancy(series: Any, metrics: dict[str, int]) -> Topic | None:
    """Return the state of virtual clusters; None where the series do not give running, total and pending GPUs."""
    if not all(name in metrics for name in NEEDED):
        return None
    names = [name for name in _STATES if name in metrics]
    rows = lazy(series).filter(nw.col("metric").is_in(names) & ~nw.col("entity").is_null())
    wide = rows.with_columns(**{n: nw.when(nw.col("metric") == n).then(nw.col("value")) for n in names})
    states = collect(wide.group_by("entity", "time").agg(*(nw.col(n).max().alias(n) for n in names)))
    states = states.drop_nulls(list(NEEDED))
    if states.is_empty():
        return None
    frame = lazy(states.lazy())
    queues = nw.col("pending_gpus") > 0
    idle = (nw.col("idle_gpus") if "idle_gpus" in names else nw.col("total_gpus") - nw.col("running_gpus")) > 0
    derived = {"queues": queues.cast(nw.Float64), "queues_beside_idle": (queues & idle).cast(nw.Float64)}
    for size in ("large", "small"):
        if f"pending_{size}_jobs" in names:
            derived[f"{size}_queue"] = (nw.col(f"pending_{size}_jobs") > 0).cast(nw.Float64)
    frame = frame.with_columns(**derived)
    by = aggregate(
        frame,
        ["entity"],
        nw.len().alias("samples"),
        *(nw.col(n).mean().alias(n) for n in NEEDED),
        *(nw.col(n).mean().alias(f"{n}_share") for n in derived),
    )
    allocated = pl.when(pl.col("total_gpus") > 0).then(pl.col("running_gpus") / pl.col("total_gpus"))
    by = by.with_columns(allocated.alias("allocated_share")).sort(["total_gpus", "entity"], descending=[True, False])
    tables = {"virtual_clusters": by, "over_time": _over_time(states)}
    return Topic("tenancy", "Virtual clusters", tables, _remarks(by), _NOTES)


def _over_time(states: pl.DataFrame) -> pl.DataFrame:
    """Return sums over virtual clusters, averaged per bin: `begin` s, `running_gpus`, `total_gpus`, `pending_gpus`."""
    bins = Bins.covering(float(states["time"].min()), float(states["time"].max()))  # type: ignore[arg-type]
    own = states.group_by("entity", bins.number(pl.col("time")).alias("bin")).agg(pl.col(NEEDED).mean())
    return (
        own.group_by("bin")
        .agg(pl.col(NEEDED).sum())
        .sort("bin")
        .select((bins.start + pl.col("bin") * bins.width).alias("begin"), *NEEDED)
    )


def _remarks(by: pl.DataFrame) -> tuple[Remark, ...]:
    total, running = float(by["total_gpus"].sum()), float(by["running_gpus"].sum())
    if not total:
        return ()
    queues = by.sort("queues_share", descending=True).row(0, named=True)
    text = f"{by.height} virtual clusters share {total:,.0f} GPUs, of which {share(running / total)} are allocated on "
    remarks = [Remark(f"{text}average; {queues['entity']} queues most, {share(queues['queues_share'])} of the time.")]
    queueing = float((by["queues_share"] * by["samples"]).sum())
    if queueing > 0:
        beside = float((by["queues_beside_idle_share"] * by["samples"]).sum()) / queueing
        text = f"In {share(beside)} of the time in which a virtual cluster queues, some of its own GPUs are idle: "
        remarks.append(Remark(f"{text}what waits does not fit them, or is not let pass.", beside > 0.5))
    busy, idle = by.sort("allocated_share").row(-1, named=True), by.sort("allocated_share").row(0, named=True)
    if busy["allocated_share"] - idle["allocated_share"] > 0.3:
        text = f"Quotas do not follow demand: {busy['entity']} is {share(busy['allocated_share'])} allocated, "
        text += f"{idle['entity']} {share(idle['allocated_share'])}; GPUs idle in one cannot help the other."
        remarks.append(Remark(text))
    return tuple(remarks)
