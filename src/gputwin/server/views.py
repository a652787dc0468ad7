"""A run at one moment and a node's jobs, as plain data for the API and the pages."""

from __future__ import annotations

from typing import Any

import polars as pl

from gputwin.core.errors import shorten
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.cluster_at import GANG_SIZES, cluster_at, jobs_on_node, span_of
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.waits_by_tenant import owner_of

_MOST_JOBS = 100


def busiest_time(result: SimulationResult) -> float | None:
    """Return when most GPUs are held, s of the trace's clock; None where the run does not say."""
    series = result.series
    if "gpu_allocation" not in series.columns or series.is_empty():
        return None
    at = series["gpu_allocation"].arg_max()
    return None if at is None else float(series["time"][at])


def cluster_view(result: SimulationResult, share: float, time: float | None = None) -> dict[str, Any]:
    """Return the cluster at a share of the run's span, or at a time: nodes with what their devices hold.

    A device is [tenant's number in `tenants`, milli-GPU held, job's row]; null where nobody holds it.
    """
    first, last = span_of(result)
    at = first + share * (last - first) if time is None else time
    moment = cluster_at(result, at)
    names = moment.devices["tenant"].unique().sort().to_list()
    numbers = {name: i for i, name in enumerate(names)}
    held: dict[int, dict[int, list[Any]]] = {}
    for row in moment.devices.iter_rows(named=True):
        held.setdefault(row["node"], {})[row["device"]] = [numbers[row["tenant"]], row["held_milli"], row["job"]]
    nodes = []
    for row in moment.nodes.iter_rows(named=True):
        devices = held.get(row["node"], {})
        nodes.append(
            {
                "node": row["node"],
                "name": shorten(row["node_id"], 60),
                "rack": row["rack"],
                "model": row["gpu_model"] or "",
                "gpus": row["gpu_count"],
                "held": row["gpu_milli_held"] / WHOLE_GPU_MILLI,
                "jobs": row["jobs"],
                "devices": [devices.get(d) for d in range(row["gpu_count"])],
            }
        )
    return {
        "time": at,
        "first": first,
        "last": last,
        "allocated": moment.allocated,
        "waiting_jobs": moment.waiting_jobs,
        "running_jobs": moment.running_jobs,
        "tenants_are": owner_of(result),
        "tenants": [shorten(name, 60) for name in names],
        "nodes": nodes,
        "gang_sizes": list(GANG_SIZES),
        "idle_gangs": moment.idle_gangs().to_dicts(),
    }


def node_view(result: SimulationResult, node: int) -> dict[str, Any]:
    """Return a node and the jobs that ran on it, the latest of them where there are many."""
    jobs = jobs_on_node(result, node)
    rows = result.jobs.with_row_index("row").select("row", "job_id")
    shown = jobs.tail(_MOST_JOBS).join(rows, on="job_id", how="left", maintain_order="left")
    row = result.nodes.row(node, named=True)
    first, last = span_of(result)
    ran = (pl.col("end_time").clip(upper_bound=last) - pl.col("start_time")) * pl.col("gpus")
    used = float(jobs.select(ran.sum()).item() or 0.0)
    most = row["gpu_count"] * (last - first)
    return {
        "node": node,
        "resources": {key: value for key, value in row.items() if value is not None},
        "gpu_allocation": used / most if most else None,
        "total_jobs": jobs.height,
        "jobs": shown.to_dicts(),
    }
