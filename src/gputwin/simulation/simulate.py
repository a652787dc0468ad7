"""simulate(): one call from a trace and a cluster, or from a scenario, to a result."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from gputwin.simulation.cluster import Cluster, cluster_for
from gputwin.simulation.engine.world import World
from gputwin.simulation.power.energy import energy_of, read_grid
from gputwin.simulation.result import SimulationResult, result_of
from gputwin.simulation.run import Changes, Scheduler, cluster_models, run
from gputwin.simulation.scenario import PowerSpec, Scenario
from gputwin.simulation.use import use_of
from gputwin.simulation.workload import workload_of
from gputwin.traces.dataset import Trace
from gputwin.traces.locate import open_trace


def simulate(
    trace: Trace | str | Scenario,
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
    changes: Changes | None = None,
    told: Callable[[World], None] | None = None,
) -> SimulationResult:
    """Return what would have happened to the trace's jobs on this cluster under these rules.

    A scenario says all of it by itself. Without a cluster the trace's own nodes are used. `predict` is what the
    scheduler believes of durations: 'oracle', 'requested', or a frame of predictions (`workload_of`), which the manifest
    calls by `predict_name`. `changes` says what may change while jobs run; `told` is called from time to time.
    """
    if isinstance(trace, Scenario):
        return simulate_scenario(trace, told=told)
    opened = open_trace(trace) if isinstance(trace, str) else trace
    target = cluster if isinstance(cluster, Cluster) else cluster_for(opened, cluster)
    workload = workload_of(opened, cluster_models(target), share=share, predict=predict)
    scheduler = Scheduler(order, backfill, placement, order_parameters or {}, placement_parameters or {})
    outcome = run(workload, target, scheduler, seed=seed, bin_seconds=bin_seconds, changes=changes, told=told)
    result = result_of(
        outcome, fingerprint=opened.meta.fingerprint, sla_wait_seconds=sla_wait_seconds, use=use_of(opened)
    )
    is_rule = isinstance(predict, str)
    digest = None if is_rule else hashlib.sha256(workload.jobs["predicted"].tobytes()).hexdigest()
    believed = {"predict": predict if is_rule else predict_name, "predictions_sha256": digest}
    return replace(result, manifest={**result.manifest, "share": share, **believed})


def simulate_scenario(
    scenario: Scenario,
    trace: Trace | None = None,
    cluster: Cluster | None = None,
    predictions: pl.DataFrame | None = None,
    told: Callable[[World], None] | None = None,
) -> SimulationResult:
    """Return the run a scenario describes; what is opened already, or predicted, is given beside it."""
    opened = open_trace(scenario.trace, scenario.format) if trace is None else trace
    rules = scenario.scheduler
    result = simulate(
        opened,
        cluster_for(opened, scenario.cluster) if cluster is None else cluster,
        order=rules.order,
        backfill=rules.backfill,
        placement=rules.placement,
        share=scenario.sharing,
        predict=believed_by(scenario.prediction, opened) if predictions is None else predictions,
        seed=scenario.seed,
        bin_seconds=scenario.resolution_seconds,
        order_parameters=rules.order_parameters,
        placement_parameters=rules.placement_parameters,
        sla_wait_seconds=scenario.sla_wait_seconds,
        predict_name=scenario.prediction,
        changes=scenario.changes,
        told=told,
    )
    if scenario.power is not None:
        result = replace(result, summary={**result.summary, "power": power_of(result, scenario.power)})
    described: dict[str, Any] = scenario.model_dump(mode="json", exclude_defaults=True)
    return replace(result, manifest={**result.manifest, "scenario": described})


def power_of(result: SimulationResult, power: PowerSpec) -> dict[str, Any]:
    """Return energy and carbon of a run, new or saved, as plain data."""
    frames = (result.segments, result.placements, result.nodes)
    return energy_of(*frames, limits=power.limits, grid=read_grid(power.carbon)).to_json()


def believed_by(prediction: str, trace: Trace, note: Callable[[str], None] = lambda text: None) -> str | pl.DataFrame:
    """Return the rule, or the predictions of the saved model or file, that a scenario names; `note` is told of doubts."""
    from gputwin.profiling.predict import predict_trace
    from gputwin.profiling.store import load
    from gputwin.simulation.workload import read_predictions
    from gputwin.traces.framefile import EXTENSIONS

    if prediction == "requested":
        asked = trace.tasks["requested_seconds"]
        without = asked.len() - int((asked > 0).sum())
        if 0 < without < asked.len():
            note(
                f"{without:,} of {asked.len():,} tasks asked for no time limit and count as the longest limit asked for"
            )
        return prediction
    if Path(prediction).is_dir():
        found = predict_trace(load(Path(prediction)), trace)
        for text in found.notes:
            note(text)
        return found.frame
    return read_predictions(Path(prediction)) if Path(prediction).suffix.lower() in EXTENSIONS else prediction
