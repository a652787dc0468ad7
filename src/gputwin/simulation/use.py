"""What jobs use of what they were given: (allocated − used)/allocated, where the trace says what was used.

A job is taken to use on the simulated cluster what it used in the trace, all the time it runs. Instances whose use was
not recorded are taken to be like the others of their task; tasks without any record are left out on both sides.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from gputwin.simulation.engine.state.records import Floats
from gputwin.traces.dataset import Trace

RESOURCES = ("cpu", "memory", "gpu")
_USED = {"cpu": "cpu_milli", "memory": "memory_mib", "gpu": "gpu_milli"}
_ASKED = {
    "cpu": pl.col("cpu_milli"),
    "memory": pl.col("memory_mib"),
    "gpu": pl.col("gpu_count") * pl.col("gpu_milli").fill_null(1000),
}


def use_of(trace: Trace) -> pl.DataFrame | None:
    """Return job_id and, per resource, what the job asked for and what it used, over all its instances.

    Null where nothing is known. Units as in the trace: milli-CPU, MiB, milli-GPU. None for a trace without use.
    """
    if not trace.has("usage"):
        return None
    usage = trace.scan("usage").filter(pl.col("scope") == "instance")
    key = ["job_id", "role"]
    per_instance = usage.group_by(*key, "instance_id").agg(pl.col(_USED[r]).mean().alias(r) for r in RESOURCES)
    per_task = per_instance.group_by(key).agg(pl.col(r).mean() for r in RESOURCES)
    tasks = trace.scan("tasks").select(*key, "instances", *(_ASKED[r].alias(f"{r}_asked") for r in RESOURCES))
    both = tasks.join(per_task, on=key, nulls_equal=True)
    known = {r: pl.col(r).is_not_null() & (pl.col(f"{r}_asked") > 0) for r in RESOURCES}
    sums = [
        pl.when(known[r].any()).then((pl.col(column) * pl.col("instances")).filter(known[r]).sum()).alias(name)
        for r in RESOURCES
        for column, name in ((f"{r}_asked", f"{r}_asked"), (r, f"{r}_used"))
    ]
    use = trace.collect(both.group_by("job_id", maintain_order=True).agg(sums))
    return None if use.is_empty() else use


def unused(jobs: pl.DataFrame, use: pl.DataFrame) -> dict[str, float]:
    """Return per resource the share of what was allocated, over jobs and time, that was not used.

    Below zero where jobs use more than they asked for, as they may of CPU.
    """
    run = _with_use(jobs, use)
    seconds = pl.col("end_time") - pl.col("start_time")
    result = {}
    for r in RESOURCES:
        asked, used = run.select(
            (pl.col(f"{r}_asked") * seconds).sum(), (pl.col(f"{r}_used") * seconds).sum().alias("used")
        ).row(0)
        if asked:
            result[r] = 1.0 - used / asked
    return result


def unused_over_time(jobs: pl.DataFrame, use: pl.DataFrame, time: Floats, width: float) -> dict[str, Floats]:
    """Return per resource the unused share in each bin of `width` seconds from `time` on; NaN where nothing ran."""
    run = _with_use(jobs, use)
    start, end = run["start_time"].to_numpy(), run["end_time"].to_numpy()
    edges = np.append(time, time[-1] + width)
    result = {}
    for r in RESOURCES:
        asked, used = (
            _per_bin(start, end, run[f"{r}_{what}"].fill_null(0).to_numpy(), edges) for what in ("asked", "used")
        )
        if asked.any():
            with np.errstate(divide="ignore", invalid="ignore"):
                # What is left of a difference of large sums is not an amount.
                result[r] = np.where(asked > 1e-9 * asked.max(), 1.0 - used / asked, np.nan)
    return result


def _with_use(jobs: pl.DataFrame, use: pl.DataFrame) -> pl.DataFrame:
    """Return start, end and use of the jobs that ran to an end and whose use is known."""
    ran = jobs.select("job_id", "start_time", "end_time").filter(pl.col("end_time").is_finite())
    return ran.join(use, on="job_id")


def _per_bin(start: Floats, end: Floats, amount: Floats, edges: Floats) -> Floats:
    """Return the integral over each bin of the amounts held from `start` to `end`."""
    return np.diff(_until(start, amount, edges) - _until(end, amount, edges))


def _until(since: Floats, amount: Floats, edges: Floats) -> Floats:
    """Return at each edge the integral of amounts that are held from `since` on for ever."""
    order = np.argsort(since, kind="stable")
    held = np.concatenate([[0.0], np.cumsum(amount[order])])
    moment = np.concatenate([[0.0], np.cumsum((amount * since)[order])])
    passed = np.searchsorted(since[order], edges)
    result: Floats = held[passed] * edges - moment[passed]
    return result
