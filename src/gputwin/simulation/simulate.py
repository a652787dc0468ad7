"""simulate(): one call from a trace and a cluster, or from a scenario, to a result."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from gputwin.core.errors import InputError, UserError
from gputwin.simulation.cluster import Cluster, cluster_for
from gputwin.simulation.elasticity.workers import KINDS, needs_curve
from gputwin.simulation.engine.state.records import Ints
from gputwin.simulation.engine.world import World
from gputwin.simulation.interference.types import job_types
from gputwin.simulation.machines import cluster_models
from gputwin.simulation.mig_requests import table_taken
from gputwin.simulation.policy_parameters import parse_policy
from gputwin.simulation.power.energy import energy_of, read_grid
from gputwin.simulation.priorities import with_priorities
from gputwin.simulation.result import SimulationResult, result_of
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.run import run
from gputwin.simulation.scenario import Scenario, scenario_of
from gputwin.simulation.scenario_parts import PowerSpec
from gputwin.simulation.scenario_settings import caps_of, elastic_plan_of
from gputwin.simulation.segments import has_changes
from gputwin.simulation.shared import with_kinds
from gputwin.simulation.use import use_of
from gputwin.simulation.without_effect import without_effect
from gputwin.simulation.workload import Workload, with_load, workload_of
from gputwin.traces.dataset import Trace
from gputwin.traces.locate import open_trace


def simulate(
    trace: Trace | str | Sequence[str] | Scenario,
    cluster: Cluster | str | None = None,
    *,
    order: str = Scheduler.order,
    backfill: str = Scheduler.backfill,
    placement: str | None = None,
    share: str = "fraction",
    predict: str | pl.DataFrame = "oracle",
    seed: int = 0,
    bin_seconds: float | None = None,
    sla_wait_seconds: float | None = None,
    on_progress: Callable[[World], None] | None = None,
    **others: Any,
) -> SimulationResult:
    """Return what would have happened to the trace's jobs on this cluster under these rules.

    A scenario says all of it by itself. Without a cluster the trace's own nodes are used, without a placement that of
    the scenario's sharing. `predict` is what the scheduler believes of durations: 'oracle', 'requested', a saved model, a
    file of predictions, or a frame of them (`workload_of`), which the scenario calls by `prediction`. `others` are
    further fields of a `Scenario`, as in faults={"mtbf_seconds": 86400}; `on_progress` is called from time to time.
    """
    if isinstance(trace, Scenario):
        return simulate_scenario(trace, on_progress=on_progress)
    given = isinstance(predict, pl.DataFrame)
    fields = {"prediction": "given" if given else predict, **others}
    scenario = scenario_of(
        {
            "trace": name_of(trace) if isinstance(trace, Trace) else trace,
            "cluster": cluster,
            "order": order,
            "backfill": backfill,
            "placement": placement,
            "sharing": share,
            "seed": seed,
            "resolution_seconds": bin_seconds,
            "sla_wait_seconds": sla_wait_seconds,
            **fields,
        }
    )
    opened = trace if isinstance(trace, Trace) else None
    return simulate_scenario(
        scenario, opened, predictions=predict if isinstance(predict, pl.DataFrame) else None, on_progress=on_progress
    )


def simulate_scenario(
    scenario: Scenario,
    trace: Trace | None = None,
    cluster: Cluster | None = None,
    predictions: pl.DataFrame | None = None,
    on_progress: Callable[[World], None] | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> SimulationResult:
    """Return the run a scenario describes; what is opened already, or predicted, is given beside it.

    The scenario in its manifest gives the same run again, to the byte. `note` is called with doubts about predictions and of
    what is assumed of GPUs.
    """
    opened = trace_of(scenario.check(), trace)
    target = cluster_of_scenario(scenario, opened) if cluster is None else cluster
    part = part_of(scenario, opened)
    workload = workload_of_scenario(scenario, part, target, predictions, note)
    predicts = predictions is not None or scenario.prediction != "oracle"
    for doubt in without_effect(scenario, workload, target, predicts):
        note(doubt)
    if scenario.gpu_sharing is not None and scenario.gpu_sharing.name == "mig" and (taken := table_taken(target)):
        note(taken)
    outcome = run(
        workload,
        target,
        scenario.scheduler,
        seed=scenario.seed,
        bin_seconds=scenario.resolution_seconds,
        changes=scenario.changes,
        on_progress=on_progress,
    )
    if scenario.checkpoints.interval_seconds and not has_changes(outcome):
        note("checkpoints have no effect: nothing stops or resizes a job under these rules, so nothing is saved")
    result = result_of(
        outcome,
        fingerprint=opened.meta.fingerprint,
        sla_wait_seconds=scenario.sla_wait_seconds,
        use=use_of(part),
    )
    if scenario.power is not None:
        result = replace(result, summary={**result.summary, "power": power_of(result, scenario.power)})
    is_rule = scenario.prediction in ("oracle", "requested") and predictions is None
    digest = None if is_rule else hashlib.sha256(workload.jobs["predicted"].tobytes()).hexdigest()
    described = {
        "predictions_sha256": digest,
        "scenario": scenario.with_(trace_fingerprint=opened.meta.fingerprint or None).to_data(),
    }
    return replace(result, manifest={**result.manifest, **described})


def name_of(trace: Trace) -> str:
    """Return what a scenario calls a trace that is in memory: how it was made, where it was generated."""
    return trace.meta.source or "a trace in memory"


def trace_of(scenario: Scenario, trace: Trace | None = None) -> Trace:
    """Return the scenario's trace, whole; one with another fingerprint than the scenario's is a user error."""
    opened = open_trace(scenario.trace, scenario.format) if trace is None else trace
    said, found = scenario.trace_fingerprint, opened.meta.fingerprint
    if said and said != found:
        raise UserError(
            f"{scenario.trace} has the fingerprint {found[:12]}, but the scenario's trace_fingerprint is {said[:12]}: the "
            "trace has changed; remove the field to run the scenario on it all the same"
        )
    return opened


def cluster_of_scenario(scenario: Scenario, trace: Trace) -> Cluster:
    """Return the scenario's cluster; the trace's own nodes where it has none."""
    return scenario.cluster if isinstance(scenario.cluster, Cluster) else cluster_for(trace, scenario.cluster)


def part_of(scenario: Scenario, trace: Trace) -> Trace:
    """Return the part of the trace that the scenario takes."""
    if scenario.slice is None:
        return trace
    start, end = scenario.slice.start_time, scenario.slice.end_time
    return trace.between(-math.inf if start is None else start, math.inf if end is None else end)


def workload_of_scenario(
    scenario: Scenario,
    part: Trace,
    cluster: Cluster,
    predictions: pl.DataFrame | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Workload:
    """Return the jobs of the scenario's part of the trace as the engine takes them."""
    believed = believed_by(scenario.prediction, part, note) if predictions is None else predictions
    workload = workload_of(part, cluster_models(cluster), share=scenario.share, predict=believed)
    workload = _with_types(scenario, part, workload, note)
    workload = with_priorities(workload, scenario.priorities, scenario.seed, _goes_by_priority(scenario), note)
    plan = elastic_plan_of(scenario.elasticity)
    if plan is not None and plan.exponent is None:
        workload = replace(workload, kinds=_scaling_kinds(scenario, part, workload, note))
    if scenario.elasticity is not None and plan is None and not _can_be_resized(workload):
        problem = "no job of the trace has several equal instances, so none can be resized"
        raise InputError(problem, field="elasticity", remedy="remove it")
    return with_load(workload, scenario.load_scale)


def _goes_by_priority(scenario: Scenario) -> str:
    """Return the rule that goes by the priorities of jobs; "" where none does."""
    rule, _ = parse_policy(scenario.preemption)
    if rule in ("priority", "kube-scheduler", "benefit"):
        return f"preemption '{rule}'"
    return "order 'priority'" if scenario.order.name == "priority" and scenario.planner is None else ""


def _with_types(scenario: Scenario, part: Trace, workload: Workload, note: Callable[[str], None]) -> Workload:
    """Return the jobs with their types where these matter; `note` is called with what was drawn."""
    sharing = scenario.gpu_sharing
    if sharing is None or sharing.pairs is None or not sharing.slows:
        return workload
    types = sharing.pairs.types
    found = job_types(part.tasks, workload.job_ids, types, scenario.seed)
    if found.drawn:
        note(
            f"{found.drawn:,} of {workload.size:,} jobs are of no type that the table of pairs knows; each application got "
            f"one of its {len(types)} types by chance (seed {scenario.seed})"
        )
    return with_kinds(workload, found.kinds)


def _scaling_kinds(scenario: Scenario, part: Trace, workload: Workload, note: Callable[[str], None]) -> Ints:
    """Return the measured application whose scaling curve each job has; `note` is called with what was drawn."""
    found = job_types(part.tasks, workload.job_ids, KINDS, scenario.seed)
    drawn = int((found.is_drawn & needs_curve(workload)).sum())
    if not drawn:
        return found.kinds
    if scenario.elasticity is not None and scenario.elasticity.curves == "drawn":
        note(
            f"{drawn:,} of {workload.size:,} jobs have no scaling curve of their own; each application got that of one of "
            f"{len(KINDS)} measured ones by chance (seed {scenario.seed})"
        )
        return found.kinds
    raise InputError(
        f"{drawn:,} of {workload.size:,} jobs have no scaling curve: how fast they run on other numbers of GPUs is unknown",
        field="elasticity.curves",
        remedy=f"give scaling_exponent (0.8: n GPUs are as fast as n to the power 0.8), or curves=drawn (each application "
        f"gets the curve of one of {len(KINDS)} measured ones by chance)",
    )


def _can_be_resized(workload: Workload) -> bool:
    return bool(((workload.shapes["groups"] == 1) & (workload.shapes["instances"] > 1)).any())


def power_of(result: SimulationResult, power: PowerSpec) -> dict[str, Any]:
    """Return energy and carbon of a run, new or saved, as plain data."""
    frames = (result.segments, result.placements, result.nodes)
    return energy_of(*frames, limits=power.limits, grid=read_grid(power.carbon), caps=caps_of(power)).to_json()


def believed_by(prediction: str, trace: Trace, note: Callable[[str], None] = lambda text: None) -> str | pl.DataFrame:
    """Return the rule, or the predictions of the saved model or file, a scenario names; `note` is called with doubts."""
    from gputwin.profiling.predict import predict_trace
    from gputwin.profiling.store import load
    from gputwin.simulation.predictions import read_predictions
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
