"""Kueue's queues in a saved run: the tree of quotas, the queue of each job, and what it asks of each flavor."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from gputwin.simulation.engine.state.records import Floats, Ints
from gputwin.simulation.engine.state.tenants import CPU, GPU, MEMORY, RESOURCES
from gputwin.simulation.policy import FAIRNESS
from gputwin.simulation.quotas.admission import Asked, amounts_of, queues_of_tenants
from gputwin.simulation.quotas.kueue_yaml import read_local_queues, read_quotas
from gputwin.simulation.quotas.tree import QuotaTree
from gputwin.simulation.result import SimulationResult


class QueuesOfRun(NamedTuple):
    """The tree, the node of each job's queue, and amounts: a row per job, a column per resource of a flavor."""

    tree: QuotaTree
    queue_of_job: Ints
    amounts: Floats


def queues_of_run(result: SimulationResult) -> QueuesOfRun | None:
    """Return the queues of the run's YAML file; None where its jobs wait in no queues of Kueue's."""
    fairness = result.scenario.fairness if "scenario" in result.manifest else None
    if fairness is None or not FAIRNESS.get(fairness.policy.name).queues or not fairness.queues:
        return None
    path = Path(fairness.queues)
    tree, jobs = read_quotas(path), result.jobs
    names = tuple(jobs["tenant"].unique(maintain_order=True).to_list())
    nodes = dict(
        zip(names, queues_of_tenants(names, tree, read_local_queues(path), path, fairness.default_queue), strict=True)
    )
    queue_of_job = np.array([nodes[name] for name in jobs["tenant"]], np.int64)
    shapes = jobs["shape"].to_numpy()
    amounts = amounts_of(_asked(result), tree, _queue_of_shape(result, shapes, queue_of_job))
    return QueuesOfRun(tree, queue_of_job, amounts[shapes])


def _queue_of_shape(result: SimulationResult, shapes: Ints, queue_of_job: Ints) -> Ints:
    queues = np.zeros(int(result.groups["shape"].max() or 0) + 1, np.int64)  # type: ignore[arg-type]
    queues[shapes] = queue_of_job
    return queues


def _asked(result: SimulationResult) -> Asked:
    """Return what one job of each shape of the run asks for."""
    of_group = result.groups.select(
        "shape",
        (pl.col("size") * pl.col("cpu")).alias("cpu"),
        (pl.col("size") * pl.col("memory")).alias("memory"),
        (pl.col("size") * pl.col("gpu_count") * pl.col("gpu_milli")).alias("gpu"),
        "size",
        "models",
    )
    models = tuple(sorted({m for row in of_group["models"] for m in row}))
    count = int(of_group["shape"].max() or 0) + 1  # type: ignore[arg-type]
    demands, instances = np.zeros((count, RESOURCES)), np.zeros(count, np.int64)
    allowed = np.ones((count, len(models)), np.bool_)
    for group in of_group.to_dicts():
        s = group["shape"]
        demands[s, [CPU, MEMORY, GPU]] += group["cpu"], group["memory"], group["gpu"]
        instances[s] += group["size"]
        allowed[s] &= [m in group["models"] for m in models]
    return Asked(demands, instances, allowed, models)
