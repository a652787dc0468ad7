"""What holds work up: which resource binds and when, who waits behind whom, what short tasks lose."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.analysis.frames import Frame, collect
from gputwin.analysis.tasks import JOB_LABELS, TaskFacts
from gputwin.analysis.topic import Remark, Topic
from gputwin.analysis.words import duration, share, times

FULL = 0.9
"""A resource binds where at least this share of it is allocated."""
HALF_FULL = 0.5
BOUND_SECONDS = 10.0
"""Runtimes below this count as this much in slowdowns (Feitelson, "Metrics for parallel job scheduling", 2001)."""
_RESOURCES = {"gpus_share": "GPU", "cores_share": "CPU", "gib_share": "memory"}
_STRANDED = {"all": "stranded", "CPU": "by_cpu", "memory": "by_memory", "GPU share": "by_gpu"}
_NOTES = (
    "A resource binds in a bin of time where at least 90 % of it is allocated and it is the fullest; where none is, a GPU "
    "model of which that much is held. Queueing time is tasks queued × time.",
    "A waiting task found a queue where, when it was submitted, an earlier one had not started yet; it stood behind a "
    "larger one where such an earlier task asks for more GPUs than it does; it was overtaken where a later one started "
    "before it. None of this needs to know the scheduler.",
    "Bounded slowdown is completion time over runtime, runtimes under 10 s counting as 10 s.",
)


def binding(over_time: pl.DataFrame, by_model: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return which resource binds: `resource`, share of time it is the fullest and 90 % full, share of queueing then.

    A GPU model binds where no resource does as a whole; only models that do are listed.
    """
    shares = [c for c in _RESOURCES if c in over_time.columns and over_time[c].sum() > 0]
    if not shares or "queued" not in over_time.columns:
        return pl.DataFrame()
    values = over_time.select(shares).to_numpy()
    if not over_time["queued"].sum() > 0:
        return pl.DataFrame()
    # Of a cluster never half full the trace holds but a part: what bound its tasks cannot be known from it.
    if values.max() < HALF_FULL:
        return pl.DataFrame()
    fullest = np.where(values.max(axis=1) >= FULL, values.argmax(axis=1), -1)
    models, of_model = _model_shares(over_time, by_model)
    if models:
        is_model = (fullest < 0) & (of_model.max(axis=1) >= FULL)
        fullest = np.where(is_model, len(shares) + of_model.argmax(axis=1), fullest)
    names = [*(_RESOURCES[name] for name in shares), *(f"GPU model {model}" for model in models)]
    seconds = over_time["seconds"].to_numpy()
    queued = over_time["queued"].to_numpy() * seconds
    total = queued.sum()
    rows = [
        {
            "resource": "none" if i < 0 else names[i],
            "time_share": float(seconds[fullest == i].sum() / seconds.sum()),
            "queueing_share": float(queued[fullest == i].sum() / total) if total else None,
        }
        for i in (*range(len(names)), -1)
        if i < len(shares) or (fullest == i).any()
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _model_shares(over_time: pl.DataFrame, by_model: pl.DataFrame | None) -> tuple[list[str], NDArray[np.float64]]:
    """Return the GPU models and what is held of each in each bin; nothing where their GPUs are not known."""
    if by_model is None or by_model["gpus_share"].null_count() == by_model.height:
        return [], np.zeros((over_time.height, 0))
    wide = by_model.drop_nulls("gpus_share").pivot("gpu_model", index="begin", values="gpus_share", maintain_order=True)
    found = over_time.select("begin").join(wide, on="begin", how="left", maintain_order="left").drop("begin")
    return found.columns, found.fill_null(0.0).to_numpy()


def head_of_line(frame: Frame) -> pl.DataFrame:
    """Return, by job class, how waiting tasks waited: `waited`, and shares that found a queue, stood behind a larger
    task, and were overtaken.
    """
    x = nw.col("wait")
    rows = frame.filter(~x.is_null()).select("submit", "start", "wait", "gpus", "job_class", "arrival")
    tasks = collect(rows, ["submit", "start"])
    if tasks.is_empty():
        return pl.DataFrame()
    submit, start = tasks["submit"].to_numpy(), tasks["start"].to_numpy()
    gpus = tasks["gpus"].fill_null(0.0).to_numpy()
    columns = {
        "found_queue": _latest_start_before(submit, start) > submit,
        "behind_larger": _behind_larger(submit, start, gpus),
        "overtaken": _earliest_start_after(submit, start) < start,
    }
    waited = tasks.with_columns(pl.Series(name, values) for name, values in columns.items()).filter(pl.col("wait") > 0)
    if waited.is_empty():
        return pl.DataFrame()
    shares = [pl.col(name).mean().alias(f"{name}_share") for name in columns]
    parts = [waited.select(pl.lit("all").alias("group"), pl.len().cast(pl.Int64).alias("waited"), *shares)]
    classes = waited.drop_nulls("job_class").group_by("job_class").agg(pl.len().cast(pl.Int64).alias("waited"), *shares)
    classes = classes.sort("job_class")
    labels = pl.Series("group", [JOB_LABELS[c] for c in classes["job_class"]], pl.String)
    parts.append(classes.drop("job_class").select(labels, pl.all()))
    return pl.concat(parts)


def slowdowns(frame: Frame) -> pl.DataFrame:
    """Return waits and bounded slowdowns by quarter of runtime: `quarter`, bounds in s, `tasks`, means, p50, p95."""
    tasks = collect(frame.filter(~nw.col("jct").is_null()).select("runtime", "wait"))
    if tasks.height < 8:
        return pl.DataFrame()
    bounds = [float(tasks["runtime"].quantile(q, "linear") or 0.0) for q in (0.25, 0.5, 0.75)]
    bounded = pl.max_horizontal(pl.col("runtime"), pl.lit(BOUND_SECONDS))
    quarter = sum(((pl.col("runtime") > b).cast(pl.Int64) for b in bounds), start=pl.lit(0, pl.Int64))
    found = (
        tasks.with_columns(
            quarter.alias("quarter"),
            pl.max_horizontal((pl.col("wait") + pl.col("runtime")) / bounded, pl.lit(1.0)).alias("slowdown"),
        )
        .group_by("quarter")
        .agg(
            pl.len().cast(pl.Int64).alias("tasks"),
            pl.col("runtime").max().alias("runtime_up_to"),
            pl.col("wait").mean().alias("wait_mean"),
            pl.col("wait").quantile(0.95, "linear").alias("wait_p95"),
            pl.col("slowdown").mean().alias("slowdown_mean"),
            pl.col("slowdown").quantile(0.5, "linear").alias("slowdown_p50"),
            pl.col("slowdown").quantile(0.95, "linear").alias("slowdown_p95"),
        )
        .sort("quarter")
    )
    return found.with_columns(pl.col("quarter") + 1)


def bottlenecks(frame: Frame, facts: TaskFacts, cluster: Topic | None, stranded: pl.DataFrame) -> Topic | None:
    """Return what holds work up; None where no wait is known. `cluster`: allocation and queue over time."""
    tables = {"stranded": stranded if _is_used(stranded) else pl.DataFrame()}
    has_models = False
    if facts.knows("wait"):
        tables |= {"head_of_line": head_of_line(frame), "slowdowns": slowdowns(frame)}
        if cluster is not None:
            tables["binding"] = binding(cluster.tables["over_time"], cluster.table("by_gpu_model"))
            has_models = cluster.table("by_gpu_model") is not None
    tables = {name: table for name, table in tables.items() if not table.is_empty()}
    if not tables:
        return None
    return Topic("bottlenecks", "Bottlenecks", tables, _remarks(tables, has_models), _NOTES)


def _is_used(stranded: pl.DataFrame) -> bool:
    """Return whether enough of the GPUs are held that what is left free says something."""
    return not stranded.is_empty() and float(stranded["free"].sum()) < 0.95 * float(stranded["total"].sum())


def _latest_start_before(submit: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the latest start among the tasks submitted strictly before each, −∞ for none; `submit` ascends."""
    latest = np.concatenate([[-np.inf], np.maximum.accumulate(start)])
    return np.asarray(latest[np.searchsorted(submit, submit, side="left")])


def _earliest_start_after(submit: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64]:
    earliest = np.concatenate([np.minimum.accumulate(start[::-1])[::-1], [np.inf]])
    return np.asarray(earliest[np.searchsorted(submit, submit, side="right")])


def _behind_larger(
    submit: NDArray[np.float64], start: NDArray[np.float64], gpus: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return whether an earlier task that asks for more GPUs had not started when each was submitted."""
    behind = np.zeros(submit.size, dtype=np.bool_)
    for size in np.unique(_sizes(gpus)):
        mine, larger = _sizes(gpus) == size, _sizes(gpus) > size
        if larger.any():
            latest = np.concatenate([[-np.inf], np.maximum.accumulate(start[larger])])
            behind[mine] = latest[np.searchsorted(submit[larger], submit[mine], side="left")] > submit[mine]
    return behind


def _sizes(gpus: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the size class of a request: none, up to one GPU, then doublings."""
    return np.where(gpus <= 0, -1, np.ceil(np.log2(np.maximum(gpus, 1.0)))).astype(np.int64)


def _remarks(tables: dict[str, pl.DataFrame], has_models: bool) -> tuple[Remark, ...]:
    return (
        *_binding_remarks(tables, has_models),
        *_queue_remarks(tables),
        *_slowdown_remarks(tables),
        *_stranded_remarks(tables),
    )


def _binding_remarks(tables: dict[str, pl.DataFrame], has_models: bool) -> list[Remark]:
    if "binding" not in tables:
        return []
    rows, remarks = {r["resource"]: r for r in tables["binding"].to_dicts()}, []
    free = rows.pop("none")
    most = max(rows.values(), key=lambda r: r["time_share"])
    if most["time_share"] > 0:
        text = f"{most['resource']} binds most often: in {share(most['time_share'])} of the time, in which "
        remarks.append(Remark(f"{text}{share(most['queueing_share'])} of all queueing happens.", False, 2))
    if free["queueing_share"] is not None and free["queueing_share"] > 0.2:
        what = "no resource, and no GPU model, is" if has_models else "no resource is"
        text = f"{share(free['queueing_share'])} of all queueing happens while {what} {FULL * 100:.0f} % allocated: "
        text += "not the cluster's size but placement, rules or the order of the queue holds these tasks up."
        remarks.append(Remark(text, True, 2))
    return remarks


def _queue_remarks(tables: dict[str, pl.DataFrame]) -> list[Remark]:
    if "head_of_line" not in tables:
        return []
    r = tables["head_of_line"].row(0, named=True)
    text = f"Of {r['waited']:,} tasks that waited, {share(r['found_queue_share'])} found others in the queue"
    if r["behind_larger_share"] > 0:
        text += f", {share(r['behind_larger_share'])} stood behind one that asks for more GPUs"
    return [Remark(f"{text}; {share(r['overtaken_share'])} were overtaken by a later task.")]


def _slowdown_remarks(tables: dict[str, pl.DataFrame]) -> list[Remark]:
    if "slowdowns" not in tables or tables["slowdowns"].height < 2:
        return []
    first, last = tables["slowdowns"].row(0, named=True), tables["slowdowns"].row(-1, named=True)
    if first["slowdown_mean"] <= 1.05:
        return []
    text = (
        f"Short tasks lose most: the quarter that runs up to {duration(first['runtime_up_to'])} takes "
        f"{times(first['slowdown_mean'])} its runtime to complete on average, the longest quarter "
        f"{last['slowdown_mean']:.2f} times (mean waits {duration(first['wait_mean'])} and {duration(last['wait_mean'])})."
    )
    return [Remark(text, False, 2)]


def _stranded_remarks(tables: dict[str, pl.DataFrame]) -> list[Remark]:
    if "stranded" not in tables:
        return []
    s = tables["stranded"]
    free = float(s["free"].sum())
    if free <= 0:
        return []
    parts = {name: share(float(s[column].sum()) / free) for name, column in _STRANDED.items()}
    text = (
        f"Of the GPUs that are free in {s.height} snapshots, {parts.pop('all')} sit on machines that cannot take the "
        f"typical GPU task, for want of {', '.join(f'{name} ({part})' for name, part in parts.items())}."
    )
    return [Remark(text, False, 2)]
