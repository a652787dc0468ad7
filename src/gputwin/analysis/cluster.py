"""The cluster over time: what was allocated, what queued, where CPU and GPU fall apart, where machines run hot."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl

from gputwin.analysis.bins import Bins
from gputwin.analysis.frames import Frame, aggregate
from gputwin.analysis.occupancy import bin_words, occupancy, time_mean
from gputwin.analysis.tasks import TaskFacts
from gputwin.analysis.topic import Remark, Topic
from gputwin.analysis.words import share

RESOURCES = {"gpus": "GPU", "cores": "CPU", "gib": "memory"}
_MODELS_SHOWN = 8
_NOTES = (
    "Allocated is what tasks asked for, from their start (their submit, where the start is not known) to their end; a task "
    "that ran when the trace began holds it from then on, one alive at the end until then. Tasks of which nobody knows "
    "when they ran are left out. Curves are exact averages over equal bins.",
    "Averages over time are over the window from the first arrival (the trace's beginning, where tasks ran then already) "
    "to the last; stray arrivals at either end lie outside.",
    "A task queues from submit to start. Capacity is that of the trace's own node table.",
)


def timeline_bins(facts: TaskFacts) -> Bins:
    """Return the bins in which tasks are followed: those of the window."""
    window = facts.window
    # What begins at the very end of the window would be a bin of no time.
    return Bins.covering(window.begin, float(np.nextafter(window.until, window.begin)))


def allocation(tasks: Frame, facts: TaskFacts, bins: Bins, by: tuple[str, ...] = ()) -> pl.DataFrame:
    """Return what running tasks held on average in each bin: `running` tasks, `gpus`, `cores`, `gib`."""
    many = nw.col("instances")
    held = tasks.with_columns(_begin=nw.col("held_from"), _end=nw.col("held_from") + nw.col("held_seconds"))
    amounts = {"running": nw.lit(1.0), "gpus": nw.col("gpus").fill_null(0.0)}
    if facts.knows("cpu_milli"):
        amounts["cores"] = (nw.col("cpu_milli") * many / 1000).fill_null(0.0)
    if facts.knows("memory_mib"):
        amounts["gib"] = (nw.col("memory_mib") * many / 1024).fill_null(0.0)
    return occupancy(held, "_begin", "_end", amounts, bins, facts.window, by)


def queue(tasks: Frame, facts: TaskFacts, bins: Bins) -> pl.DataFrame:
    """Return what waited on average in each bin: `queued` tasks, `queued_gpus`."""
    # A task that never started waits until it was taken back or the trace ends, where it is known to have waited on.
    waits_on = (nw.col("status") == "waiting") & nw.col("start").is_null()
    end = nw.coalesce(nw.col("start"), nw.when(waits_on).then(nw.coalesce(nw.col("end"), nw.lit(facts.window.last))))
    amounts = {"queued": nw.lit(1.0), "queued_gpus": nw.col("gpus").fill_null(0.0)}
    return occupancy(tasks.with_columns(_until=end), "submit", "_until", amounts, bins, facts.window)


def capacity_of(nodes: pl.DataFrame) -> dict[str, float]:
    """Return the cluster's GPUs, cores and GiB; a resource of which nothing is known is absent."""
    found = {
        "gpus": float(nodes["gpu_count"].sum() or 0),
        "cores": float(nodes["cpu_milli"].sum() or 0) / 1000,
        "gib": float(nodes["memory_mib"].sum() or 0) / 1024,
    }
    return {name: amount for name, amount in found.items() if amount > 0}


def cluster(tasks: Frame, facts: TaskFacts, nodes: pl.DataFrame) -> Topic | None:
    """Return allocation and queue over time; None where neither starts nor runtimes are known."""
    if not facts.knows("arrival", "runtime"):
        return None
    remarks = [Remark(text, True, 0) for text in facts.window.sentences()]
    bins = timeline_bins(facts)
    series = allocation(tasks, facts, bins)
    if facts.knows("wait"):
        series = series.join(queue(tasks, facts, bins).drop("seconds"), on="begin", maintain_order="left")
    capacity = capacity_of(nodes)
    series = series.with_columns(
        (pl.col(name) / capacity[name]).alias(f"{name}_share")
        for name in RESOURCES
        if name in series and name in capacity
    )
    tables = {"over_time": series}
    if facts.knows("gpu_model"):
        by_model = allocation(tasks.filter(~nw.col("gpu_model").is_null()), facts, bins, ("gpu_model",))
        owned = nodes.group_by("gpu_model").agg(pl.col("gpu_count").sum().cast(pl.Float64).alias("capacity"))
        by_model = by_model.join(owned, on="gpu_model", how="left", maintain_order="left").with_columns(
            pl.when(pl.col("capacity") > 0).then(pl.col("gpus") / pl.col("capacity")).alias("gpus_share")
        )
        largest = by_model.group_by("gpu_model").agg(pl.col("gpus").sum()).sort("gpus", descending=True)
        shown = by_model.filter(pl.col("gpu_model").is_in(largest["gpu_model"].head(_MODELS_SHOWN).to_list()))
        if shown.height:
            tables["by_gpu_model"] = shown
    return Topic("cluster", "Cluster", tables, (*_remarks(tables), *_endless(tasks, series), *remarks), _NOTES)


def _endless(tasks: Frame, series: pl.DataFrame) -> list[Remark]:
    """Return a warning where tasks without an end hold much of what is allocated, and that is more than there is."""
    if "gpus_share" not in series.columns or float(series["gpus_share"].max() or 0.0) <= 1.05:  # type: ignore[arg-type]
        return []
    held = tasks.filter(~nw.col("held_seconds").is_null()).with_columns(_held=nw.col("gpu_seconds").fill_null(0.0))
    found = aggregate(held, ["ended"], nw.col("_held").sum().alias("held"), nw.len().alias("tasks"))
    alive = found.filter(pl.col("ended") == 0)
    total = float(found["held"].sum())
    if alive.is_empty() or total <= 0 or alive["held"][0] < 0.2 * total:
        return []
    part = share(alive["held"][0] / total)
    text = f"{alive['tasks'][0]:,} tasks without an end hold {part} of the allocated GPU time; where the "
    return [Remark(f"{text}source lost their ends rather than they ran on, allocation is overstated.", True)]


def _peak(series: pl.DataFrame, column: str) -> float:
    """Return the largest share of a column, rounded so that sums of floats do not exceed 1 by themselves."""
    return round(float(series[column].max() or 0.0), 6)  # type: ignore[arg-type]


def _overfull_models(tables: dict[str, pl.DataFrame]) -> list[str]:
    """Return the GPU models of which more is held in some bin than there is."""
    if "by_gpu_model" not in tables:
        return []
    parts = tables["by_gpu_model"].partition_by("gpu_model", as_dict=True)
    return sorted(str(model) for (model,), part in parts.items() if _peak(part, "gpus_share") > 1)


def _joined(names: list[str]) -> str:
    """Return names as people list them."""
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"


def _remarks(tables: dict[str, pl.DataFrame]) -> tuple[Remark, ...]:
    series, remarks = tables["over_time"], []
    shares = {RESOURCES[n]: f"{n}_share" for n in RESOURCES if f"{n}_share" in series.columns and series[n].sum() > 0}
    if shares:
        means = {name: time_mean(series, column) for name, column in shares.items()}
        words = ", ".join(f"{name} {share(mean)}" for name, mean in means.items())
        remarks.append(Remark(f"On average allocated: {words}.", False, 0))
        if max(means.values()) < 0.01:
            text = "So little is allocated that the trace probably has only part of the work this cluster did."
            return (*remarks, Remark(text, True, 2))
        over = [name for name, column in shares.items() if _peak(series, column) > 1]
        over += [f"GPUs of model {model}" for model in _overfull_models(tables)]
        if over:
            remarks.append(
                Remark(
                    f"At times more {_joined(over)} is allocated than the node table has: the two do not belong "
                    "together, or tasks are given less than they ask for.",
                    True,
                )
            )
        elif len(means) > 1 and max(means.values()) > 1.5 * min(means.values()):
            high, low = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
            remarks.append(
                Remark(
                    f"{high} and {low} are out of balance: {high} fills {means[high] / means[low]:.1f} times the share that "
                    f"{low} does, so {high} runs out first.",
                    matters=2,
                )
            )
    elif float(series["gpus"].sum()) > 0:
        mean, peak = time_mean(series, "gpus"), float(series["gpus"].max())  # type: ignore[arg-type]
        text = f"Running tasks hold {mean:,.1f} GPUs on average and {peak:,.1f} in the fullest {bin_words(series)}."
        remarks.append(Remark(text, False, 0))
    if "queued" in series.columns and float(series["queued"].sum()) > 0:
        top = series.row(int(series["queued"].arg_max() or 0), named=True)
        busy = float((series["seconds"] * (series["queued"] >= 1)).sum()) / float(series["seconds"].sum())
        remarks.append(
            Remark(
                f"On average {time_mean(series, 'queued'):,.1f} tasks queue, {top['queued']:,.0f} in the fullest "
                f"{bin_words(series)}{f'; at least one does in {share(busy)} of the time' if busy > 0 else ''}.",
                matters=0,
            )
        )
    if "by_gpu_model" in tables and tables["by_gpu_model"]["gpus_share"].null_count() < tables["by_gpu_model"].height:
        models = (
            tables["by_gpu_model"]
            .group_by("gpu_model")
            .agg((pl.col("gpus_share") * pl.col("seconds")).sum() / pl.col("seconds").sum())
            .drop_nulls()
            .sort("gpus_share")
        )
        if models.height > 1:
            remarks.append(
                Remark(
                    f"By GPU model, {models['gpu_model'][-1]} is the fullest ({share(models['gpus_share'][-1])} allocated "
                    f"on average) and {models['gpu_model'][0]} the emptiest ({share(models['gpus_share'][0])})."
                )
            )
    return tuple(remarks)
