"""The demonstration: one generated trace through everything gputwin does, as one report and one conclusion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.processors import processors
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.report.page import Section, Statement
from gputwin.report.sections.comparison import shown_metric
from gputwin.report.timeline import Timeline
from gputwin.simulation.batch import Batch
from gputwin.simulation.scenario import Scenario
from gputwin.studies.comparison import Comparison
from gputwin.studies.store import RunStore
from gputwin.studies.study import Study, StudyOutcome, run_study, study_of
from gputwin.traces.dataset import Trace
from gputwin.traces.locate import SYNTHETIC

CLUSTER = "pai2020"
REPLICATES = 3
SCHEDULERS: dict[str, Mapping[str, object]] = {
    "FIFO": {"backfill": "strict"},
    "SJF": {"order": "sjf", "backfill": "strict"},
    "backfill": {"backfill": "greedy"},
    "EASY": {"backfill": "easy"},
    "SJF + backfill": {"order": "sjf", "backfill": "greedy"},
    "SRTF + backfill": {"order": "srtf", "backfill": "greedy"},
    "LAS + backfill": {"order": "las", "backfill": "greedy"},
    "GPU-time + backfill": {"order": "gpu-time", "backfill": "greedy"},
}
"""Eight schedulers: in order of arrival, shortest first, with jobs that overtake, with preemption."""
OTHERS: dict[str, Mapping[str, object]] = {
    "backfill + best fit": {"backfill": "greedy", "placement": "best-fit"},
    "backfill + FGD": {"backfill": "greedy", "placement": "fgd"},
    "backfill without sharing": {"backfill": "greedy", "sharing": "exclusive"},
}
"""Where jobs go, and what sharing GPUs is worth."""
_SERVICE_SECONDS = 300.0
_PLACING_SECONDS = 5.0
_WORTH_PROCESSES = 5_000
"""Jobs: with fewer, starting processes takes longer than what they would do."""
_MODELS = ("group-median", "online")
_FORECASTERS = ("ses", "theta")
_RULES = ("threshold", "hpa", "predictive")


def demo_study(jobs: int, seed: int) -> Study:
    """Return the demonstration's study: eight schedulers, two placements and GPUs that are not shared."""
    return study_of(
        {
            "name": "demo",
            "trace": f"{SYNTHETIC}pai2020?jobs={jobs}",
            "cluster": CLUSTER,
            "variants": {**SCHEDULERS, **OTHERS},
            "seeds": [seed + k for k in range(REPLICATES)],
        }
    )


def profile_part(trace: Trace) -> tuple[Section, ...]:
    """Return what kinds of jobs there are, and how well their runtimes can be predicted."""
    from gputwin.profiling.profile import profile
    from gputwin.report.sections.profile import profile_sections

    return profile_sections(profile(trace, models=_MODELS))


def forecast_part(trace: Trace) -> tuple[Section, ...]:
    """Return what demand comes next, and how good that forecast is."""
    from gputwin.forecasting.study import forecast
    from gputwin.report.sections.forecast import forecast_section

    return (forecast_section(forecast(trace, "in-force", models=_FORECASTERS), Timeline.of(trace)),)


def placement_part(trace: Trace) -> tuple[Section, ...]:
    """Return on how few nodes of the cluster's types what runs in the busiest hour fits, of instances on whole GPUs."""
    from gputwin.optimization.placement.demand import alive, busiest_hour, groups_of, problem_of
    from gputwin.optimization.placement.solve import place
    from gputwin.report.sections.placement_plan import placement_plan
    from gputwin.simulation.cluster import open_cluster

    # Shares of GPUs are searched device by device, which takes too long for thousands of instances.
    groups = tuple(g for g in groups_of(alive(trace, busiest_hour(trace))) if g.gpu_milli % WHOLE_GPU_MILLI == 0)
    problem = problem_of(groups, open_cluster(CLUSTER), is_supply_limited=False)
    section = placement_plan(place(problem, method="heuristics", seconds=_PLACING_SECONDS))
    verdict, *rest = section.parts
    assert isinstance(verdict, Statement)
    text = f"The busiest hour's instances on whole GPUs: {verdict.text}"
    return (replace(section, parts=(replace(verdict, text=text), *rest)),)


def autoscaling_part(trace: Trace) -> tuple[Section, ...]:
    """Return how scaling rules serve the trace's arrivals as requests to one service, a GPU a replica."""
    from gputwin.autoscaling.compare import Options, compare
    from gputwin.autoscaling.serving.workload import service_of
    from gputwin.report.sections.autoscale import autoscale

    arrivals = trace.tasks.select("job_id", "submit_time").drop_nulls().unique("job_id", maintain_order=True)
    requests = arrivals.select(pl.col("job_id").alias("request_id"), "submit_time")
    asked = Trace.from_frames({"requests": requests}, trace.meta)
    served = service_of(asked, service_seconds=_SERVICE_SECONDS)
    section = autoscale(compare(served, Options(rules=_RULES)))
    assumed = (
        f"The jobs' arrivals as requests to one service; {_SERVICE_SECONDS / 60:.0f} min each on average, assumed."
    )
    verdict, *rest = section.parts
    assert isinstance(verdict, Statement)
    return (replace(section, parts=(replace(verdict, text=f"{verdict.text} {assumed}"), *rest)),)


def theory_part(trace: Trace) -> tuple[Section, ...]:
    """Return queueing theory next to the simulation of the same jobs."""
    from gputwin.report.sections.queueing import queueing
    from gputwin.simulation.cluster import open_cluster
    from gputwin.studies.validation.curve import stability, wait_against_load
    from gputwin.studies.validation.threeway import compare

    scenario = Scenario(trace=trace.meta.source or "trace", cluster=CLUSTER)
    result = compare(trace, open_cluster(CLUSTER), scenario)
    return (queueing(result, wait_against_load(result), stability(result)),)


_BESIDE: Mapping[str, Callable[[Trace], tuple[Section, ...]]] = {
    "profile": profile_part,
    "forecast": forecast_part,
    "placement": placement_part,
    "autoscaling": autoscaling_part,
}


def part(name: str, trace: Trace) -> tuple[Section, ...]:
    """Return the sections of a part by its name; a trace too small for it gives a section that says so."""
    make = theory_part if name == "theory" else _BESIDE[name]
    try:
        return make(trace)
    except UserError as error:
        return (Section(name, name.capitalize(), (Statement(f"Left out: {error}."),)),)


@dataclass(frozen=True)
class Demonstration:
    """What the demonstration found: the study's outcome, and the sections of the other parts by name."""

    outcome: StudyOutcome
    parts: Mapping[str, tuple[Section, ...]]

    def sharing(self) -> str:
        """Return what sharing GPUs is worth, in a sentence."""
        return _against(self.outcome.compared, "backfill without sharing", "backfill", "GPUs that are not shared")

    def placing(self) -> str:
        """Return what the rule of placement is worth, in a sentence."""
        return _against(self.outcome.compared, "backfill + FGD", "backfill", "FGD placement")


def _against(compared: Comparison, label: str, base: str, what: str) -> str:
    rows = {row["scenario"]: row for row in compared.means().to_dicts()}
    own, other = (shown_metric("mean wait", rows[k]["mean wait"]) for k in (label, base))
    use, usual = (shown_metric("GPU allocation", rows[k]["GPU allocation"]) for k in (label, base))
    return f"With {what} the mean wait is {own} against {other}, GPU allocation {use} against {usual}."


def demonstrate(
    trace: Trace, jobs: int, seed: int, store: RunStore, progress: Callable[[str], None] = lambda step: None
) -> Demonstration:
    """Return everything about the trace; parts without simulation are made beside the study, in a process of their own."""
    worth_it = processors() > 1 and jobs >= _WORTH_PROCESSES
    with Batch(workers=2 if worth_it else 1) as batch, ThreadPoolExecutor(1) as threads:
        shared = batch.share(trace)
        beside: Future[list[tuple[Section, ...]]] = threads.submit(batch.map, part, [(n, shared) for n in _BESIDE])
        outcome = run_study(
            demo_study(jobs, seed),
            store,
            workers=1,
            progress=progress,
            watch=lambda state: progress(f"simulated {state.done} of {state.total} runs"),
        )
        progress("comparing with queueing theory")
        theory = part("theory", trace)
        progress("profiling, forecasting, placing and scaling")
        found = dict(zip(_BESIDE, beside.result(), strict=True))
    return Demonstration(outcome, {**found, "theory": theory})
