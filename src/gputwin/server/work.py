"""What child processes do: each function calls one room, saves what came out, and returns an id or a key."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from gputwin.api.reading import generate
from gputwin.api.running import compare, explain, tenants
from gputwin.core.errors import UserError, shorten
from gputwin.report.document import document_of
from gputwin.report.page import Section
from gputwin.report.report_input import ReportInput, name_of
from gputwin.report.sections.comparison import comparison
from gputwin.report.sections.explanation import explanation_section
from gputwin.report.sections.run import run_section
from gputwin.report.sections.tenants_of_run import stops_section, tenants_section
from gputwin.report.timeline import Timeline
from gputwin.report.write import sections_of
from gputwin.server.workspace import slug, write_json
from gputwin.simulation.cluster import cluster_for
from gputwin.simulation.engine.world import ARRIVAL, World
from gputwin.simulation.load import check_load
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.scenario import scenario_of
from gputwin.simulation.simulate import simulate_scenario
from gputwin.simulation.use import use_of
from gputwin.simulation.waits_by_tenant import by_tenant
from gputwin.studies.store import RunStore
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.ingest import Options, ingest
from gputwin.traces.readers.mapped import parse_map

_START_DRAWS = 50
Step = Callable[..., None]


def read_upload(
    *,
    step: Step,
    files: list[str],
    traces: str,
    name: str,
    format: str | None,
    map: str | None,
    guess: bool,
    zone: str,
    lenient: bool,
) -> dict[str, Any]:
    """Save the trace in uploaded files below `traces` and return its id; paths of this machine are not told."""
    folder = str(Path(files[0]).parent)
    # What is unpacked on the way goes where the server removes it, also if this process is stopped.
    tempfile.tempdir = folder
    try:
        mapping = parse_map(map, "tasks", zone or None) if map else None
        options = Options(format=format, lenient=lenient, mapping=mapping, guess=guess, zone=zone or None)
        trace = ingest([Path(f) for f in files], options=options, progress=step)
        trace.meta = _by_names(trace.meta, folder)
        return _keep(trace, Path(traces), name)
    except UserError as error:
        raise UserError(str(error).replace(f"{folder}/", "")) from None


def _by_names(meta: TraceMeta, folder: str) -> TraceMeta:
    """Return the record, whose findings name uploaded files without the folder where they were for a moment."""
    found = tuple(
        replace(f, table=f.table.replace(f"{folder}/", ""), detail=f.detail.replace(f"{folder}/", ""))
        for f in meta.findings
    )
    return replace(meta, findings=found)


def make_trace(*, step: Step, traces: str, name: str, jobs: int, seed: int) -> dict[str, Any]:
    """Save a generated trace below `traces` and return its id."""
    step(f"generating {jobs:,} jobs like {name}")
    return _keep(generate(name, jobs=jobs, seed=seed).to_trace(), Path(traces), f"{name}-{jobs}")


def _keep(trace: Trace, traces: Path, name: str) -> dict[str, Any]:
    if not sum(trace.meta.tables.values()):
        raise UserError("nothing of it is left after cleaning: it has no usable row")
    id_ = f"{slug(name)}-{trace.meta.fingerprint[:8]}"
    trace.save(traces / id_)
    return {"id": id_}


def simulate_run(*, step: Step, scenario: dict[str, Any], key: str, store: str) -> dict[str, Any]:
    """Keep the run of a scenario in the store and return its id."""

    def on_progress(world: World) -> None:
        step("simulating", min(int(world.loop[ARRIVAL]) / max(world.queue.jobs.size, 1), 1.0))

    step("preparing the simulator; the first run ever takes about a minute")
    RunStore(Path(store)).run(key, lambda: simulate_scenario(scenario_of(scenario), on_progress=on_progress))
    return {"id": key}


def write_document(*, step: Step, kind: str, path: str, **settings: Any) -> dict[str, Any]:
    """Write the document of this kind to the file `path` and return the name of the file."""
    write_json(Path(path), without_commands(DOCUMENTS[kind](step, **settings)))
    return {"id": Path(path).stem}


def trace_document(step: Step, trace: str) -> dict[str, Any]:
    """Return all that a trace shows."""
    step("analyzing")
    opened = Trace.open(Path(trace))
    check = None
    if not opened.nodes.is_empty() and not opened.tasks.is_empty():
        check = check_load(opened, cluster_for(opened, None))
    subject = ReportInput.of(opened, check=check)
    step("drawing")
    return document_of(subject.title, sections_of(subject))


def run_document(step: Step, run: str, trace: str | None) -> dict[str, Any]:
    """Return a run's waits and causes, tenants and evictions."""
    step("reading the run")
    result = SimulationResult.open(Path(run))
    opened = Trace.open(Path(trace)) if trace else None
    step("charging waits to tenants")
    view = by_tenant(result, use_of(opened)) if opened is not None else tenants(result)
    stops = stops_section(result)
    own = run_section(result, timeline_of(result, opened))
    # A page has buttons for what the report says to type.
    first = Section(own.id, own.title, own.parts, own.notes, own.question)
    return opened_first(document_of("Run", [first, tenants_section(view), *([stops] if stops else [])]))


def explain_document(step: Step, run: str, trace: str | None, job: str) -> dict[str, Any]:
    """Return why one job waited."""
    step("rebuilding the cluster's state during the wait")
    result = SimulationResult.open(Path(run))
    found = explain(result, job)
    timeline = timeline_of(result, Trace.open(Path(trace)) if trace else None)
    document = document_of(f"Job {job}", [explanation_section(result, found, timeline)])
    return {**opened_first(document), "explanation": found.to_json()}


def start_document(step: Step, run: str, trace: str, job: str) -> dict[str, Any]:
    """Return when a job was expected to start at its submission, from what was known then."""
    from gputwin.report.sections.predicted_start import predicted_start
    from gputwin.simulation.simulate import cluster_of_scenario, trace_of
    from gputwin.studies.eta.ahead import check as check_rules
    from gputwin.studies.eta.estimate import estimate, with_simulated_waits

    result = SimulationResult.open(Path(run))
    scenario = result.scenario
    check_rules(scenario)
    step("simulating the jobs before it")
    opened = trace_of(scenario, Trace.open(Path(trace)))
    cluster = cluster_of_scenario(scenario, opened)
    (own,) = result.jobs.filter(pl.col("job_id") == job).head(1).to_dicts() or ({},)
    if not own:
        raise UserError(f"the run has no job '{shorten(job)}'")
    waited = own["wait_seconds"]
    row = None
    if waited is None or waited > 0:
        simulated = with_simulated_waits(opened, scenario, cluster)
        # Just after it came: it is the last of those who wait.
        at = float(own["submit_time"]) + min(1.0, float(waited or 1.0) / 2)
        found = estimate(simulated, scenario, cluster, at, draws=_START_DRAWS, calibrate=0, progress=step)
        row = next((r for r in found.frame.to_dicts() if r["job_id"] == job), None)
    return document_of(f"Job {job}", [predicted_start(job, row, waited)])


def compare_document(step: Step, runs: list[str], trace: str | None) -> dict[str, Any]:
    """Return runs side by side."""
    step("comparing")
    results = [SimulationResult.open(Path(run)) for run in runs]
    opened = Trace.open(Path(trace)) if trace else None
    section = comparison(compare(*results), timeline_of(results[0], opened))
    return opened_first(document_of("Runs compared", [section]))


def check_document(step: Step, trace: str, cluster: str | None) -> dict[str, Any]:
    """Return whether the trace fits a cluster."""
    from gputwin.report.sections.load import load

    step("adding up the load")
    opened = Trace.open(Path(trace))
    target = cluster_for(opened, cluster)
    subject = ReportInput.of(opened, check=check_load(opened, target), cluster=target)
    section = load(subject)
    if section is None:
        raise UserError("the trace has no jobs with known resources, so its load cannot be checked")
    return document_of(f"Load of {name_of(opened)} on {target.name}", [section])


def forecast_document(
    step: Step, trace: str, target: str, horizon_seconds: float, bin_seconds: float
) -> dict[str, Any]:
    """Return the demand to come, and how well such forecasts did."""
    from gputwin.api.predicting import forecast
    from gputwin.report.sections.forecast import forecast_section

    opened = Trace.open(Path(trace))
    study = forecast(opened, target, horizon_seconds=horizon_seconds, bin_seconds=bin_seconds, progress=step)
    return document_of("Forecast", [forecast_section(study, Timeline.of(opened))])


def plan_document(
    step: Step, trace: str, cluster: str | None, target: str, growth: float, confidence: float, rules: dict[str, str]
) -> dict[str, Any]:
    """Return how many nodes meet a target."""
    from gputwin.api.predicting import plan
    from gputwin.report.sections.capacity import capacity

    opened = Trace.open(Path(trace))
    scenario = scenario_of({"trace": trace, "cluster": cluster, **rules}).check()
    found = plan(
        opened, cluster, target, scenario=scenario, growth=growth, confidence=confidence, workers=1, progress=step
    )
    said = f"order {scenario.order}, backfill {scenario.backfill}, placement {scenario.placement}"
    section = capacity(found, said)
    return document_of(
        "Capacity plan", [Section(section.id, section.title, section.parts, section.notes, section.question)]
    )


def queueing_document(step: Step, trace: str, cluster: str | None) -> dict[str, Any]:
    """Return theory, simulation and trace side by side."""
    from gputwin.api.predicting import queueing
    from gputwin.report.sections.queueing import queueing as section_of
    from gputwin.studies.validation.curve import stability, wait_against_load

    result = queueing(Trace.open(Path(trace)), cluster, progress=step)
    return document_of("Queueing", [section_of(result, wait_against_load(result), stability(result))])


def autoscale_document(step: Step, trace: str, load: float) -> dict[str, Any]:
    """Return scaling rules side by side on a trace of requests, with what each decided over time."""
    from gputwin.autoscaling.compare import Options as ScalingOptions
    from gputwin.autoscaling.compare import compare as compare_rules
    from gputwin.autoscaling.serving.workload import service_of
    from gputwin.report.sections.autoscale import autoscale

    opened = Trace.open(Path(trace))
    result = compare_rules(service_of(opened, load_factor=load), ScalingOptions(), step)
    own = autoscale(result)
    return document_of("Scaling rules", [Section(own.id, own.title, own.parts, own.notes, own.question)])


def without_commands(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document without what to type next: a page has buttons for it."""
    answer = document["answer"]
    return {**document, "answer": {**answer, "next_steps": [s for s in answer["next_steps"] if "`" not in s]}}


def opened_first(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with its first section open."""
    first, *others = document["sections"]
    return {**document, "sections": [{**first, "open": True}, *others]}


DOCUMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "trace": trace_document,
    "run": run_document,
    "compare": compare_document,
    "explain": explain_document,
    "start": start_document,
    "check": check_document,
    "forecast": forecast_document,
    "plan": plan_document,
    "queueing": queueing_document,
    "autoscale": autoscale_document,
}


def timeline_of(result: SimulationResult, trace: Trace | None) -> Timeline:
    """Return the timeline of a run: its trace's, or, where that is gone, one of elapsed time."""
    if trace is not None:
        return Timeline.of(trace)
    first = float(result.series["time"].min() or 0.0)  # type: ignore[arg-type]
    last = float(result.series["time"].max() or 0.0)  # type: ignore[arg-type]
    return Timeline(first, last, None, "UTC", False, last - first)
