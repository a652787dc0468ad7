"""Asked for against used: what sits idle inside requests, what is overrun, and what could be reclaimed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from gputwin.analysis.frames import Frame, aggregate, lazy
from gputwin.analysis.provisioning import request_over_limit
from gputwin.analysis.tasks import TaskFacts, gpu_milli_of_instance
from gputwin.analysis.topic import Remark, Topic
from gputwin.analysis.words import share
from gputwin.core.units import HOUR
from gputwin.traces.lifetimes import runtime

USED = {"CPU": "cpu_milli", "GPU": "gpu_milli", "memory": "memory_mib"}
PER_UNIT = {"CPU": (1000, "core"), "GPU": (1000, "GPU"), "memory": (1024, "GiB")}
CURVE = tuple(i / 100 for i in range(101))
"""The probabilities at which distributions of requests and use are drawn."""
_NOTES = (
    "Use is the mean over an instance's life as its sensors reported it, request what one instance asked for. A row counts "
    "where both are known and the request is above zero.",
    "Reclaimable is what lies between use and request where use is lower, over the sum of requests; by time, each "
    "instance counts for as long as its task ran. A mean hides peaks: not all of it can be taken without harm.",
    "Request over limit: the mean of ratios weighs each instance alike, the ratio of sums by size.",
)


def request_and_use(tasks: Any, usage: Any, nodes: Any) -> Frame:
    """Return one row per instance with sensors: request, use and capacity, role, model, runtime s."""
    rows = lazy(usage).filter(nw.col("scope") == "instance")
    rows = rows.filter(~nw.col("job_id").is_null())
    used = {f"used_{c}": nw.col(c) for c in (*USED.values(), "gpu_memory_mib")}
    rows = rows.select("job_id", "role", "node_id", **used)
    asked = lazy(tasks).select(
        "job_id",
        "role",
        cpu_milli=nw.col("cpu_milli"),
        memory_mib=nw.col("memory_mib"),
        gpu_milli=gpu_milli_of_instance(),
        runtime=runtime(),
        gpu_model=nw.col("gpu_model"),
    )
    capacity = lazy(nodes).select(
        "node_id",
        cap_cpu_milli=nw.col("cpu_milli"),
        cap_memory_mib=nw.col("memory_mib"),
        cap_gpu_milli=nw.col("gpu_count").cast(nw.Int64) * 1000,
    )
    joined = rows.join(asked, on=["job_id", "role"], how="inner").join(capacity, on="node_id", how="left")
    # Names have done their work; carrying them along is most of the cost.
    return joined.drop("job_id", "node_id")


def use_sums(frame: Frame, by: Sequence[str]) -> pl.DataFrame:
    """Return sums of request, use and idle request per resource and group, from which every table below is made."""
    parts = []
    for resource, column in USED.items():
        size, _ = PER_UNIT[resource]
        request, use = nw.col(column), nw.col(f"used_{column}")
        known = frame.filter((request > 0) & ~use.is_null())
        known = known.with_columns(_over=(request > use).cast(nw.Float64), _under=(use > request).cast(nw.Float64))
        known = known.with_columns(_idle=(request - use) * nw.col("_over"))
        known = known.with_columns(_idle_time=nw.col("_idle") * nw.col("runtime"))
        sums = {column: "request", f"used_{column}": "use", "_over": "over", "_under": "under", "_idle": "idle"}
        found = aggregate(
            known,
            by,
            nw.len().alias("count"),
            *(nw.col(c).sum().alias(name) for c, name in (sums | {"_idle_time": "idle_time"}).items()),
        )
        amounts = [(pl.col(c) / size).alias(c) for c in ("request", "use", "idle")]
        hours = (pl.col("idle_time") / size / HOUR).alias("idle_time")
        parts.append(found.select(pl.lit(resource).alias("resource"), *by, "count", "over", "under", *amounts, hours))
    return pl.concat(parts).filter(pl.col("count") > 0)


def use_by(sums: pl.DataFrame, by: Sequence[str] = ()) -> pl.DataFrame:
    """Return request against use per resource and group, from `use_sums` of the same or finer groups.

    `count`, mean `request` and `use` (cores, GPUs, GiB), `use_over_request` (of sums), `over_share` (asked for more
    than used: over-provisioned), `under_share` (used more), `reclaimable_share` of requests, and `reclaimable_hours`
    (core-, GPU-, GiB-hours).
    """
    keys = ["resource", *by]
    count = pl.col("count")
    return (
        sums.drop_nulls(keys)
        .group_by(keys, maintain_order=True)
        .agg(pl.col("count", "over", "under", "request", "use", "idle", "idle_time").sum())
        .select(
            *keys,
            count,
            (pl.col("request") / count).alias("request"),
            (pl.col("use") / count).alias("use"),
            (pl.col("over") / count).alias("over_share"),
            (pl.col("under") / count).alias("under_share"),
            pl.col("idle_time").alias("reclaimable_hours"),
            (pl.col("use") / pl.col("request")).alias("use_over_request"),
            (pl.col("idle") / pl.col("request")).alias("reclaimable_share"),
        )
    )


def use_curves(frame: Frame) -> pl.DataFrame:
    """Return quantiles of request, use and (request − use) over the machine's capacity, per resource.

    `resource`, `share` (probability), `request`, `use` (cores, GPUs, GiB), `idle_over_capacity`.
    """
    parts = []
    for resource, column in USED.items():
        size, _ = PER_UNIT[resource]
        request, use, capacity = nw.col(column), nw.col(f"used_{column}"), nw.col(f"cap_{column}")
        known = frame.filter((request > 0) & ~use.is_null()).select(
            request=request.cast(nw.Float64) / size,
            use=use / size,
            idle_over_capacity=nw.when(capacity > 0).then((request - use) / capacity),
        )
        columns = {name: _quantiles(known, name) for name in ("request", "use", "idle_over_capacity")}
        if columns["request"][0] is not None:
            schema = {"resource": pl.String} | dict.fromkeys(("share", *columns), pl.Float64)
            parts.append(pl.DataFrame({"resource": [resource] * len(CURVE), "share": CURVE, **columns}, schema=schema))
    return pl.concat(parts) if parts else pl.DataFrame()


def gpu_use(frame: Frame) -> pl.DataFrame:
    """Return how much instances that ask for GPUs use of them: `what`, `mean`, `p50`, `p95`, `p99`, `max`.

    GPU busy in % of what was asked for, and GPU memory in GiB.
    """
    asks = frame.filter(nw.col("gpu_milli") > 0)
    values = {"GPU busy, % of the request": nw.col("used_gpu_milli") / nw.col("gpu_milli") * 100}
    values["GPU memory, GiB"] = nw.col("used_gpu_memory_mib") / 1024
    rows = []
    for what, value in values.items():
        known = asks.select(x=value)
        at = {q: v for q, v in zip(CURVE, _quantiles(known, "x"), strict=True) if q in (0.5, 0.95, 0.99, 1.0)}
        if at[0.5] is not None:
            mean = aggregate(known, (), nw.col("x").mean().alias("mean"), nw.col("x").count().alias("n"))
            names = {"p50": at[0.5], "p95": at[0.95], "p99": at[0.99], "max": at[1.0]}
            rows.append({"what": what, "count": mean["n"][0], "mean": mean["mean"][0], **names})
    return pl.DataFrame(rows, infer_schema_length=None)


def _quantiles(frame: Frame, column: str) -> list[float | None]:
    """Return a column's quantiles, interpolated linearly, from how often each of its values occurs."""
    counts = aggregate(frame.filter(~nw.col(column).is_null()), [column], nw.len().alias("n"))
    if counts.is_empty():
        return [None] * len(CURVE)
    values, upto = counts[column].to_numpy(), counts["n"].cum_sum().to_numpy()
    at = np.asarray(CURVE) * (int(upto[-1]) - 1)
    low, high = (values[np.searchsorted(upto, np.asarray(k), side="right")] for k in (np.floor(at), np.ceil(at)))
    return [float(v) for v in low + (high - low) * (at - np.floor(at))]


def efficiency(tasks: Frame, facts: TaskFacts, used: Frame | None) -> Topic | None:
    """Return requests against limits and against use; None where neither limits nor use are known."""
    tables = {"limits": request_over_limit(tasks, facts)}
    if facts.knows("role") and not tables["limits"].is_empty():
        by_role = request_over_limit(tasks, facts, ["role"])
        if by_role["role"].n_unique() > 1:
            tables["limits_by_role"] = by_role
    if used is not None:
        sums = use_sums(used, ["role", "gpu_model"])
        tables["use"] = use_by(sums)
        for name, column in (("use_by_role", "role"), ("use_by_gpu_model", "gpu_model")):
            found = use_by(sums, [column])
            if found[column].n_unique() > 1:
                tables[name] = found
        tables |= {"use_curves": use_curves(used), "gpu": gpu_use(used)}
    tables = {name: table for name, table in tables.items() if not table.is_empty()}
    if not tables:
        return None
    return Topic("efficiency", "Resource efficiency", tables, (*_use_remarks(tables), *_limit_remarks(tables)), _NOTES)


def _limit_remarks(tables: dict[str, pl.DataFrame]) -> tuple[Remark, ...]:
    if "limits" not in tables:
        return ()
    limits = tables["limits"]
    exact = limits.filter((pl.col("below_share") == 0) & (pl.col("above_share") == 0))["resource"].to_list()
    remarks = []
    if exact:
        text = (
            f"{_list(exact)} are asked for exactly up to the limit"
            if len(exact) > 1
            else f"{exact[0]} is asked for exactly up to the limit"
        )
        remarks.append(
            Remark(
                f"{text}: there the limit leaves no room to burst, and the ratio says nothing about efficiency.",
                matters=0,
            )
        )
    for r in limits.filter(~pl.col("resource").is_in(exact)).to_dicts():
        remarks.append(
            Remark(
                f"{r['resource'][:1].upper()}{r['resource'][1:]} requests add up to {share(r['ratio_of_sums'])} of their "
                f"limits (mean of ratios {share(r['mean_of_ratios'])}); {share(r['below_share'])} of instances ask "
                "for less than their limit.",
                matters=0,
            )
        )
    return tuple(remarks)


def _use_remarks(tables: dict[str, pl.DataFrame]) -> tuple[Remark, ...]:
    if "use" not in tables:
        return ()
    rows = {r["resource"]: r for r in tables["use"].to_dicts()}
    over = ", ".join(f"{name} {share(r['over_share'])}" for name, r in rows.items())
    remarks = [Remark(f"Share of instances that ask for more than they use on average: {over}.")]
    most = max(rows.values(), key=lambda r: r["reclaimable_share"])
    unit = PER_UNIT[most["resource"]][1]
    remarks.append(
        Remark(
            f"Most is idle in {most['resource']} requests: instances use {share(most['use_over_request'])} of what they ask "
            f"for, and {share(most['reclaimable_share'])} of the requests ({most['reclaimable_hours']:,.0f} {unit}-hours "
            "over their runtimes) lie above use. Means hide peaks, so this is an upper bound of what can be reclaimed.",
            matters=2,
        )
    )
    under = [r for r in rows.values() if r["under_share"] > 0.1]
    if under:
        words = ", ".join(f"{r['resource']} {share(r['under_share'])}" for r in under)
        remarks.append(
            Remark(f"Some use more than they asked for ({words} of instances), at their neighbours' expense.", True)
        )
    return tuple(remarks)


def _list(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"
