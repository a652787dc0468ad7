"""How long tasks wait and run: whole, and by everything the source tells them apart by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import narwhals as nw
import polars as pl

from gputwin.analysis.bootstrap import mean_intervals
from gputwin.analysis.dimensions import BY_NAME, Dimension, labelled
from gputwin.analysis.distributions import distribution_by
from gputwin.analysis.frames import Frame
from gputwin.analysis.spread import largest, spread, tail_bound
from gputwin.analysis.survival import runtime_survival, survival_curve, survival_table
from gputwin.analysis.tasks import TaskFacts
from gputwin.analysis.topic import Remark, Topic
from gputwin.analysis.words import amount, duration, label, share, times

LARGEST_FEW = 5
_CURVES_BY = ("role", "gpu_request", "gpu_model")
_MOST_CURVES = 8
_SURVIVAL_BY = ("role", "gpu_request", "gpu_model", "tenant")
_NOTES = (
    "Wait is the time from submit to start, known only where both are. Runtime is the time a task ran.",
    "Intervals of means are 95 % circular block bootstrap intervals: 200 bins of arrival time, blocks of six, 1,000 "
    "replicates. With a tail that a few tasks make, they are too narrow rather than too wide.",
    "The tail is what lies above the 99th percentile of all tasks.",
    "Kaplan–Meier counts a task that is alive at the end as running until then; the mean is cut at the longest time "
    "seen, so that it is a lower bound while some have not ended. Tasks whose start lies before the trace are left out.",
)


def spread_by(frame: Frame, value: str, dimensions: Sequence[Dimension], seed: int = 0) -> pl.DataFrame:
    """Return the spread of `wait` or `runtime`, s, by each dimension that has two groups or more, in one long frame.

    `dimension`, `group`, the columns of `spread`, `share_of_total` of all time, and `low` and `high` of the mean.
    """
    bound = tail_bound(frame, value)
    if bound is None:
        return pl.DataFrame()
    parts = []
    for dimension in dimensions:
        by = [dimension.column]
        part = spread(frame, value, by, tail_above=bound)
        if part.height < 2:
            continue
        part = part.join(mean_intervals(frame, value, by, seed=seed), on=by, how="left", maintain_order="left")
        total = part["total"].sum()
        part = part.with_columns((pl.col("total") / (total or 1.0)).alias("share_of_total"))
        parts.append(labelled(part, dimension))
    return pl.concat(parts) if parts else pl.DataFrame()


def curves_by(frame: Frame, value: str, dimensions: Sequence[Dimension]) -> pl.DataFrame:
    """Return distribution functions of `wait` or `runtime`, s, by role, GPUs asked for and GPU model.

    `dimension`, `group`, `count`, `value`, `share`; the eight largest groups of each, and `all`.
    """
    whole = distribution_by(frame, value)
    parts = [whole.select(pl.lit("all").alias("dimension"), pl.lit("all").alias("group"), pl.all())]
    for dimension in dimensions:
        if dimension.name not in _CURVES_BY:
            continue
        found = distribution_by(frame, value, [dimension.column])
        groups = found.select(dimension.column, "count").unique()
        if groups.height < 2:
            continue
        kept = groups.sort(["count", dimension.column], descending=[True, False])[dimension.column].head(_MOST_CURVES)
        parts.append(labelled(found.filter(pl.col(dimension.column).is_in(kept.to_list())), dimension))
    return pl.concat(parts)


def delays(frame: Frame, facts: TaskFacts, dimensions: Sequence[Dimension], seed: int = 0) -> Topic | None:
    """Return how long tasks wait; None where no wait is known."""
    if not facts.knows("wait"):
        return None
    whole = spread(frame, "wait", tail_above=tail_bound(frame, "wait"))
    whole = pl.concat([whole, mean_intervals(frame, "wait", seed=seed)], how="horizontal")
    by = spread_by(frame, "wait", dimensions, seed)
    top = largest(frame, "wait", LARGEST_FEW)
    tables = {"wait": whole, "wait_by": by, "largest_waits": top}
    tables["wait_curves"] = curves_by(frame, "wait", dimensions)
    if facts.knows("runtime"):
        halves = completion_halves(frame, facts)
        tables["wait_over_completion"] = wait_over_completion(halves)
        parts = [
            distribution_by(part, "ratio", is_ratio=True).select(pl.lit(name).alias("tasks"), pl.all())
            for name, part in halves.items()
        ]
        tables["completion_curves"] = pl.concat(parts)
    tables = {name: table for name, table in tables.items() if not table.is_empty()}
    return Topic("delays", "Scheduling delay", tables, (*_wait_remarks(whole, top), *_group_remarks(by)), _NOTES[:3])


def completion_halves(frame: Frame, facts: TaskFacts) -> dict[str, Frame]:
    """Return the shorter half, all, and the longer half of completed tasks, with `ratio`: wait over completion time."""
    known = frame.filter(~nw.col("jct").is_null() & (nw.col("jct") > 0))
    known = known.with_columns(ratio=nw.col("wait") / nw.col("jct"))
    median = facts.median_runtime or 0.0
    return {
        "short half": known.filter(nw.col("runtime") <= median),
        "all": known,
        "long half": known.filter(nw.col("runtime") > median),
    }


def wait_over_completion(halves: Mapping[str, Frame]) -> pl.DataFrame:
    """Return the spread of wait as a share of completion time in each part of `completion_halves`."""
    rows = [spread(part, "ratio").select(pl.lit(name).alias("tasks"), pl.all()) for name, part in halves.items()]
    return pl.concat(rows).filter(pl.col("count") > 0).drop("total")


def runtimes(frame: Frame, facts: TaskFacts, dimensions: Sequence[Dimension], seed: int = 0) -> Topic | None:
    """Return how long tasks run, censored ones among them; None where nothing is known of it."""
    if not facts.knows("runtime"):
        return None
    whole = pl.concat([spread(frame, "runtime"), mean_intervals(frame, "runtime", seed=seed)], how="horizontal")
    tables = {"runtime": whole, "runtime_by": spread_by(frame, "runtime", dimensions, seed)}
    tables["runtime_curves"] = curves_by(frame, "runtime", dimensions)
    survival = survival_table(frame)
    if not survival.is_empty() and survival["censored"].sum():
        groups = [survival.select(pl.lit("all").alias("dimension"), pl.lit("all").alias("group"), pl.all())]
        for name in _SURVIVAL_BY:
            dimension = BY_NAME[name]
            if dimension in dimensions:
                part = survival_table(frame, [dimension.column])
                groups += [labelled(part, dimension)] if part.height > 1 else []
        tables["survival"] = pl.concat(groups, how="vertical_relaxed")
        tables["survival_curve"] = survival_curve(runtime_survival(frame)[()])
    tables = {name: table for name, table in tables.items() if not table.is_empty()}
    return Topic("runtimes", "Runtime", tables, _runtime_remarks(tables), (_NOTES[0], *_NOTES[1:2], _NOTES[3]))


def _wait_remarks(whole: pl.DataFrame, top: pl.DataFrame) -> tuple[Remark, ...]:
    w = whole.row(0, named=True)
    if w["max"] == 0:
        return (Remark(f"None of the {w['count']:,} tasks whose wait is known waited at all."),)
    text = f"{w['count']:,} tasks have a known wait: {duration(w['mean'])} on average"
    if w["low"] is not None:
        text += f" (95 % interval {duration(w['low'])} to {duration(w['high'])})"
    text += f", {duration(w['p50'])} in the median; {share(w['zero_share'])} did not wait at all."
    remarks = [Remark(text, False, 0)]
    carried = float(top["share_of_total"][-1])
    if w["count"] > 20 * top.height and w["mean"] > 3 * max(w["p50"], w["p90"] / 3):
        rest = (w["total"] * (1 - carried)) / (w["count"] - top.height)
        remarks.append(
            Remark(
                f"The mean says little about a typical task: the longest 1 % carry {share(w['tail_share'])} of all "
                f"waiting, and the {top.height} longest alone {share(carried)}; without these {top.height} the mean is "
                f"{duration(rest)} instead of {duration(w['mean'])}.",
                True,
            )
        )
    return tuple(remarks)


def _group_remarks(by: pl.DataFrame) -> tuple[Remark, ...]:
    """Return one sentence for the dimension whose two largest-differing sizeable groups differ most."""
    if by.is_empty():
        return ()
    remarks, seen = [], set()
    for name in ("role", "gpu_request", "gpu_model", "tenant", "qos", "workload"):
        groups = by.filter((pl.col("dimension") == name) & (pl.col("count") >= 30))
        if groups.height < 2:
            continue
        high, low = groups.sort("mean").row(-1, named=True), groups.sort("mean").row(0, named=True)
        pair = (high["count"], high["mean"], low["count"], low["mean"])
        # GPUs asked for may be but another name for the role.
        if pair not in seen and high["mean"] >= 2 * low["mean"] and high["mean"] > 0:
            seen.add(pair)
            factor = f"{times(high['mean'] / low['mean'])} as long as" if low["mean"] > 0 else "unlike"
            remarks.append(
                Remark(
                    f"{_waiting(name, high['group'], factor, low['group'])} on average "
                    f"({duration(high['mean'])} against {duration(low['mean'])}; medians {duration(high['p50'])} and "
                    f"{duration(low['p50'])}) and carry {share(high['share_of_total'])} of all waiting.",
                    matters=2,
                )
            )
    return tuple(remarks[:3])


def _waiting(dimension: str, long: str, factor: str, short: str) -> str:
    """Return which tasks wait how much longer than which."""
    if dimension == "gpu_request":
        return f"Tasks that ask for {amount(long, 'GPU')} wait {factor} those that ask for {amount(short, 'GPU')}"
    return f"Tasks of {BY_NAME[dimension].title} {label(long)} wait {factor} those of {label(short)}"


def _runtime_remarks(tables: dict[str, pl.DataFrame]) -> tuple[Remark, ...]:
    r = tables["runtime"].row(0, named=True)
    text = f"{r['count']:,} tasks have a known runtime: {duration(r['mean'])} on average, {duration(r['p50'])} in "
    remarks = [Remark(f"{text}the median, one in a hundred over {duration(r['p99'])}.")]
    if "survival" in tables:
        s = tables["survival"].row(0, named=True)
        longer = s["km_mean"] / s["mean"] if s["mean"] else None
        median = "more than half never end within it" if s["km_p50"] is None else f"its median {duration(s['km_p50'])}"
        remarks.append(
            Remark(
                f"{s['censored']:,} of {s['tasks']:,} tasks with a known start ({share(s['censored'] / s['tasks'])}) "
                f"still ran when the trace ended. The plain mean leaves them out and is too short: with them counted "
                f"(Kaplan–Meier) tasks run {duration(s['km_mean'])} on average within {duration(s['horizon'])}"
                + (f", {times(longer)} the plain {duration(s['mean'])}" if longer else "")
                + f"; {median}.",
                True,
            )
        )
    return tuple(remarks)
