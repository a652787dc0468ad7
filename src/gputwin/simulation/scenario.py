"""simulate(): one call from a trace and a cluster to a result."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from gputwin.simulation.cluster import Cluster, cluster_for
from gputwin.simulation.result import SimulationResult, result_of
from gputwin.simulation.simulate import Scheduler, cluster_models, run
from gputwin.simulation.use import use_of
from gputwin.simulation.workload import workload_of
from gputwin.traces.dataset import Trace
from gputwin.traces.locate import open_trace


def simulate(
    trace: Trace | str,
    cluster: Cluster | str | None = None,
    *,
    order: str = "fifo",
    backfill: str = "strict",
    placement: str = "first-fit",
    share: str = "fraction",
    predict: str | pl.DataFrame = "oracle",
    seed: int = 0,
    bin_seconds: float | None = None,
    order_parameters: Mapping[str, float] | None = None,
    placement_parameters: Mapping[str, float] | None = None,
    sla_wait_seconds: float | None = None,
    predict_name: str = "given",
) -> SimulationResult:
    """Return what would have happened to the trace's jobs on this cluster under these rules.

    Without a cluster the trace's own nodes are used. `predict` is what the scheduler believes of durations: 'oracle',
    'requested', or a frame of predictions (`workload_of`), which the manifest calls by `predict_name`.
    """
    opened = open_trace(trace) if isinstance(trace, str) else trace
    target = cluster if isinstance(cluster, Cluster) else cluster_for(opened, cluster)
    workload = workload_of(opened, cluster_models(target), share=share, predict=predict)
    scheduler = Scheduler(order, backfill, placement, order_parameters or {}, placement_parameters or {})
    outcome = run(workload, target, scheduler, seed=seed, bin_seconds=bin_seconds)
    result = result_of(
        outcome, fingerprint=opened.meta.fingerprint, sla_wait_seconds=sla_wait_seconds, use=use_of(opened)
    )
    is_rule = isinstance(predict, str)
    digest = None if is_rule else hashlib.sha256(workload.jobs["predicted"].tobytes()).hexdigest()
    believed = {"predict": predict if is_rule else predict_name, "predictions_sha256": digest}
    return replace(result, manifest={**result.manifest, "share": share, **believed})
