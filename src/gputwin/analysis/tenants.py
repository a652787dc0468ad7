"""Who waits, who holds what others wait for, and how much of what a tenant was given it used."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import polars as pl

from gputwin.analysis.blocking import NOBODY, OTHERS, blocking, per_tenant
from gputwin.analysis.frames import aggregate, collect, lazy
from gputwin.analysis.tasks import gpu_milli_of_instance
from gputwin.analysis.topic import Remark, Topic
from gputwin.analysis.words import share
from gputwin.core.units import HOUR, format_duration
from gputwin.traces.lifetimes import held_from, held_seconds, known_times, observed, runtime
from gputwin.traces.measures import GPU_MILLI_TOTAL, WAIT

OWNERS = ("tenant", "user", "application")
LARGEST = 20
UNKNOWN = "unknown"
"""Who submitted what has no tenant."""
_MUCH = 0.1
"""A tenant with at least this share of all waiting for GPUs is named."""
_NOTES = (
    "While a job waits, its GPUs × time are charged to the tenants in proportion to the GPUs they hold at that time, of "
    "models the job may use. A tenant can wait for itself. What is charged says who held GPUs, not who was wrong to.",
    "Used: GPU busy over GPU asked for, where sensors say so; each instance counts for as long as its task ran.",
)


def tenants(tasks: Any, usage: Any | None = None) -> Topic | None:
    """Return waiting and holding per tenant (user, application); None where GPUs or owners are not known."""
    lives = _lives(tasks)
    who = next((name for name in OWNERS if lives[name].drop_nulls().n_unique() > 1), None)
    if who is None or not (lives["gpus"] > 0).any():
        return None
    lives = lives.with_columns(pl.col(who).fill_null(UNKNOWN).alias("tenant"))
    waits = lives.filter(pl.col("wait_seconds") > 0).select(
        "tenant",
        pl.col("submit_time").alias("start"),
        pl.col("start_time").alias("end"),
        "gpus",
        pl.col("gpu_models_allowed").alias("allowed"),
    )
    holds = lives.filter(pl.col("held") > 0).select(
        "tenant",
        pl.col("from").alias("start"),
        (pl.col("from") + pl.col("held")).alias("end"),
        "gpus",
        pl.col("gpu_model").alias("model"),
    )
    charges = blocking(waits, holds)
    table = with_charges(_totals(lives, None if usage is None else _used(tasks, usage, who)), charges)
    tables = {"tenants": table} | ({"blocking": charges} if charges.height else {})
    return Topic("tenants", f"Per {who}", tables, tuple(remarks_on(table, charges, who)), _NOTES)


def _lives(frame: Any) -> pl.DataFrame:
    """Return the tasks with when they held their request: the columns that charging needs, in memory."""
    columns = ["job_id", "role", *OWNERS, "submit_time", "start_time", "end_time", "duration_seconds", "is_running"]
    columns += ["was_running", "status", "instances", "gpu_count", "gpu_milli", "gpu_model", "gpu_models_allowed"]
    tasks = collect(lazy(frame).select(*columns))
    window = observed(tasks)
    life: Any = known_times(tasks).with_columns(**{"from": held_from(window), "held": held_seconds(window)})
    found: pl.DataFrame = life.to_native().collect()
    return found.with_columns(WAIT, (GPU_MILLI_TOTAL / 1000).fill_null(0.0).alias("gpus"))


def _totals(lives: pl.DataFrame, used: pl.DataFrame | None) -> pl.DataFrame:
    hours = (pl.col("gpus") * pl.col("held")).sum() / HOUR
    wait = pl.col("wait_seconds")
    table = lives.group_by("tenant", maintain_order=True).agg(
        pl.col("job_id").n_unique().alias("jobs"),
        hours.fill_null(0.0).alias("gpu_hours"),
        wait.mean().alias("mean_wait_seconds"),
        wait.quantile(0.95, "linear").alias("p95_wait_seconds"),
    )
    if used is not None:
        table = table.join(used, on="tenant", how="left")
    return table


def _used(tasks: Any, usage: Any, who: str) -> pl.DataFrame | None:
    """Return the share of GPU asked for that was used, per tenant; None where no sensor says so."""
    sensed = lazy(usage).filter((nw.col("scope").cast(nw.String) == "instance") & ~nw.col("gpu_milli").is_null())
    per_task = sensed.group_by("job_id", "role").agg(used=nw.col("gpu_milli").mean())
    asked = lazy(tasks).select(
        "job_id",
        "role",
        tenant=nw.col(who).fill_null(UNKNOWN),
        asked=gpu_milli_of_instance(),
        weight=nw.col("instances") * runtime().fill_null(1.0),
    )
    both = per_task.join(asked, on=["job_id", "role"], how="inner").filter(nw.col("asked") > 0)
    both = both.with_columns(gave=nw.col("used") * nw.col("weight"), took=nw.col("asked") * nw.col("weight"))
    sums = aggregate(both, ["tenant"], nw.col("gave").sum(), nw.col("took").sum())
    found = sums.select("tenant", (pl.col("gave") / pl.col("took")).alias("used_share"))
    return found if found.height else None


def with_charges(totals: pl.DataFrame, charges: pl.DataFrame) -> pl.DataFrame:
    """Return the totals per tenant with what each waits and is waited for, most waited for first.

    Charges tell the largest tenants apart; for the others they are null.
    """
    table = totals.join(per_tenant(charges), on="tenant", how="left")
    share_of = (
        pl.col("gpu_hours") / totals["gpu_hours"].sum() if totals["gpu_hours"].sum() else pl.lit(None, pl.Float64)
    )
    return table.with_columns(share_of.alias("gpu_hour_share")).sort(
        ["others_wait_gpu_hours", "gpu_hours", "tenant"], descending=[True, True, False], nulls_last=True
    )


def does(tenant: str, verb: str, who: str, *, first: bool = False) -> str:
    """Return who does it, `first` in a sentence or later: names stay as they are, words of ours begin in upper case.

    Of those whose name is not known, and of those too many to name, there are several.
    """
    if tenant == OTHERS:
        return f"{tenant} together {verb}"
    if tenant != UNKNOWN and not tenant[:1].isdigit():
        return f"{tenant} {verb}s"
    said = f"jobs of unknown {who}s {verb}" if tenant == UNKNOWN else f"{who} {tenant} {verb}s"
    return f"{said[0].upper()}{said[1:]}" if first else said


def _holds_most(table: pl.DataFrame, who: str) -> list[Remark]:
    """Return who holds most GPU-hours; nothing where nobody holds any."""
    held = table.filter(pl.col("gpu_hours") > 0).sort("gpu_hours", "tenant", descending=[True, False])
    if held.height < 2:
        return []
    top = held.row(0, named=True)
    text = f"{does(top['tenant'], 'hold', who, first=True)} most of {table.height:,} {who}s: "
    return [Remark(f"{text}{share(top['gpu_hour_share'])} of all GPU-hours.")]


def remarks_on(table: pl.DataFrame, charges: pl.DataFrame, who: str = "tenant") -> list[Remark]:
    """Return who waits most and who holds most of what others wait for, in sentences."""
    if not table["mean_wait_seconds"].is_not_null().any():
        unknown = f"The trace does not say when jobs waited, so it is not known which {who}s wait for which."
        return [*_holds_most(table, who), Remark(unknown, False, 0)]
    total = float(charges["gpu_hours"].sum())
    if not total:
        waits = float(table["mean_wait_seconds"].max() or 0.0) > 0  # type: ignore[arg-type]
        return [Remark("No job waited for GPUs that others held." if waits else "No job that asks for GPUs waited.")]
    remarks = []
    known = table.filter(pl.col("waited_gpu_hours").is_not_null())
    for most in known.sort("waited_gpu_hours", descending=True).head(1).to_dicts():
        if most["waited_gpu_hours"] < _MUCH * total:
            continue
        remarks.append(
            Remark(
                f"{does(most['tenant'], 'wait', who, first=True)} most for GPUs that somebody holds: "
                f"{most['waited_gpu_hours']:,.0f} GPU-hours, "
                f"{share(most['waited_gpu_hours'] / total)} of all such waiting; the mean wait is "
                f"{format_duration(most['mean_wait_seconds'])}."
            )
        )
    # All others are many: what they wait for among themselves is for each other too.
    is_own = (pl.col("waiting") == pl.col("holding")) & (pl.col("waiting") != OTHERS)
    between = charges.filter(~is_own & (pl.col("holding") != NOBODY))
    for_others = float(between["gpu_hours"].sum())
    holders = known.filter(pl.col("others_wait_gpu_hours") > 0)
    if holders.height and for_others > 0:
        top = holders.sort("others_wait_gpu_hours", descending=True).row(0, named=True)
        pair = between.filter(pl.col("holding") == top["tenant"]).row(0, named=True)
        remarks.append(
            Remark(
                f"{does(top['tenant'], 'hold', who, first=True)} most of what others wait for: "
                f"{top['others_wait_gpu_hours']:,.0f} GPU-hours, "
                f"{share(top['others_wait_gpu_hours'] / for_others)} of all waiting for what others hold, with "
                f"{share(top['gpu_hour_share'])} of all GPU-hours; {does(pair['waiting'], 'wait', who)} for that most "
                f"({pair['gpu_hours']:,.0f} GPU-hours).",
                top["others_wait_gpu_hours"] / for_others > 1.5 * (top["gpu_hour_share"] or 1.0),
            )
        )
        if "used_share" in table.columns and top.get("used_share") is not None:
            remarks.append(
                Remark(
                    f"{does(top['tenant'], 'use', who, first=True)} {share(top['used_share'])} of the GPU time held."
                )
            )
    # Whether jobs of nobody known are the same tenant's is not known either.
    own_total = float(charges.filter(is_own & (pl.col("waiting") != UNKNOWN))["gpu_hours"].sum())
    if own_total > 0.5 * total:
        remarks.append(Remark(f"{share(own_total / total)} of the waiting is for GPUs that the same {who} holds."))
    return remarks
