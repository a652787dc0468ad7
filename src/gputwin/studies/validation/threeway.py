"""Theory, simulation and trace side by side, and which assumption broke where they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from gputwin.core.display import Shown
from gputwin.core.errors import UserError
from gputwin.core.units import WHOLE_GPU_MILLI, percent
from gputwin.queueing.fit.offered import CLASSES, Offered, class_of, offered
from gputwin.queueing.operational import Law, Record, operational_laws
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.simulate import name_of, workload_of_scenario
from gputwin.studies.validation.assumption_steps import AssumptionStep, Floats, StepInput, measure, simulate_steps
from gputwin.studies.validation.theory import Figures, Prediction, predictions
from gputwin.studies.validation.verdict import verdicts
from gputwin.traces.dataset import Trace
from gputwin.traces.lifetimes import held, with_lives
from gputwin.traces.lifetimes import observed as window_of
from gputwin.traces.locate import SYNTHETIC

_LEAST_WAIT = 1.0
"""s; of shorter waits no relative error is given."""
_MUCH_OLDER = 0.05
"""Share of the load from before the window that is worth a note."""


@dataclass(frozen=True)
class ClassRow:
    """One class of jobs: how it fares in simulation and in the trace. Theory in order of arrival makes no difference."""

    name: str
    jobs: int
    load: float
    """Mean GPUs it asks for."""
    simulation: Figures
    trace: Figures | None


@dataclass(frozen=True, repr=False)
class ThreeWay(Shown):
    """A trace on a cluster, three ways."""

    cluster: str
    gpus: int
    scenario: Scenario
    jobs: Offered
    predictions: tuple[Prediction, ...]
    steps: tuple[AssumptionStep, ...]
    trace: Figures | None
    """None where the trace has no start times."""
    classes: tuple[ClassRow, ...]
    laws: tuple[Law, ...]
    verdicts: tuple[str, ...]
    left_out: Mapping[str, int]
    subject: StepInput
    notes: tuple[str, ...]
    """What the window and the load rest on."""

    def _title(self) -> str:
        return f"Theory, simulation and trace on {self.cluster} ({self.gpus:,} GPUs)"

    def _lines(self) -> list[str]:
        return list(self.verdicts)

    @property
    def simulation(self) -> Figures:
        """Return the simulation of the trace on its nodes."""
        return self.steps[-1].figures

    def error(self, figures: Figures) -> str:
        """Return how far a mean wait is from the simulation of the trace on its nodes; "–" where that is none."""
        value, exact = figures.mean_wait, self.simulation.mean_wait
        if value is None or exact is None or exact < _LEAST_WAIT:
            return "–"
        return percent(value / exact - 1, signed=True)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        jobs = self.jobs
        return {
            "cluster": self.cluster,
            "gpus": self.gpus,
            "jobs": self.subject.gpu_jobs,
            "jobs_arriving_in_window": int(jobs.submit.size),
            "window_seconds": jobs.until - jobs.begin,
            "load_gpus": jobs.load,
            "steady_load_gpus": jobs.steady_load,
            "utilisation_offered": jobs.load / self.gpus,
            "arrival_rate_per_second": jobs.arrivals.rate,
            "arrival_gap_scv": jobs.arrivals.gap_scv,
            "arrival_dispersion_at_mean_run": jobs.arrivals.dispersion_at(jobs.mean_run),
            "arrival_batch_mean": jobs.arrivals.batch_mean,
            "arrival_mmpp": None if jobs.arrivals.modulated is None else asdict(jobs.arrivals.modulated),
            "run_seconds_mean": jobs.mean_run,
            "run_scv": jobs.run_scv,
            "run_tail_index": None if jobs.tail is None else jobs.tail.index,
            "run_fits": [{"family": f.family, "ks": f.ks, "scv_ratio": f.scv_ratio} for f in jobs.services],
            "peakedness": jobs.peakedness,
            "theory": [
                {
                    "model": p.model,
                    "assumes": p.assumes,
                    **_named(p.figures),
                    "share_waiting": p.share_waiting,
                    "why_not": p.why_not or None,
                }
                for p in self.predictions
            ],
            "assumption_steps": [
                {"step": r.name, "dropped": r.dropped or None, **_named(r.figures)} for r in self.steps
            ],
            "simulation": _named(self.simulation),
            "trace": None if self.trace is None else _named(self.trace),
            "classes": [
                {
                    "class": c.name,
                    "jobs": c.jobs,
                    "load_gpus": c.load,
                    "simulation": _named(c.simulation),
                    "trace": None if c.trace is None else _named(c.trace),
                }
                for c in self.classes
            ],
            "operational_laws": [{**law._asdict(), "difference": law.difference} for law in self.laws],
            "verdicts": list(self.verdicts),
            "tasks_left_out": dict(self.left_out),
            "notes": list(self.notes),
        }


def compare(
    trace: Trace,
    cluster: Cluster,
    scenario: Scenario | None = None,
    *,
    workers: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> ThreeWay:
    """Return theory, simulation and trace side by side for the trace's jobs on the cluster.

    `scenario` has the rules, greedy backfilling by default, and all else that goes on.
    """
    scenario = scenario or Scenario(trace=name_of(trace), backfill="greedy")
    if not cluster.gpu_count:
        raise UserError(f"cluster '{cluster.name}' has no GPUs; queueing theory here counts GPUs as servers")
    workload = workload_of_scenario(scenario.check(), trace, cluster)
    progress("fitting arrivals and run times")
    records = workload.jobs
    gpus = records["gpu_milli"] / WHOLE_GPU_MILLI
    jobs = offered(records["submit"], records["duration"], gpus, workload.window, workload.older)
    subject = StepInput(workload, jobs, cluster, scenario)
    said = predictions(jobs, cluster.gpu_count)
    progress("simulating, from theory's assumptions to the trace")
    steps, seen = simulate_steps(subject, workers=workers)
    measured = observed(trace)
    own = None
    laws: list[Law] = []
    if measured is not None:
        own = measure(measured.record, cluster.gpu_count, jobs.begin, jobs.until)
        # The tasks of a job need not run all the time that it does.
        own = own._replace(utilisation=(held(trace.tasks).gpus_mean or 0.0) / cluster.gpu_count)
        laws = operational_laws(measured.record, cluster.gpu_count, jobs.begin, jobs.until, measured.instances)
    classes = _classes(jobs, cluster.gpu_count, seen, None if measured is None else measured.record)
    return ThreeWay(
        cluster.name,
        cluster.gpu_count,
        scenario,
        jobs,
        tuple(said),
        tuple(steps),
        own,
        classes,
        tuple(laws),
        verdicts(jobs, cluster, said, steps, own, is_generated=trace.meta.source.startswith(SYNTHETIC)),
        workload.left_out,
        subject,
        _notes(trace, jobs),
    )


def _notes(trace: Trace, jobs: Offered) -> tuple[str, ...]:
    notes = list(window_of(trace.tasks).notes())
    if jobs.older_share > _MUCH_OLDER:
        notes.append(
            f"{percent(jobs.older_share)} of the load are jobs from before the window; theory spreads it "
            "over those that arrive, "
            "and simulations of theory start empty, so they hold fewer GPUs than it says"
        )
    return tuple(notes)


@dataclass(frozen=True)
class Observed:
    """What the trace itself says of its jobs that took GPUs."""

    record: Record
    instances: Floats


def observed(trace: Trace) -> Observed | None:
    """Return when the trace's jobs were submitted, started and ended; None where it does not give waits."""
    tasks = with_lives(trace.tasks, window_of(trace.tasks)).filter(pl.col("held_seconds").is_not_null())
    wait_known = pl.col("submit_time").is_not_null() & pl.col("start_time").is_not_null()
    end = pl.when(pl.col("is_alive")).then(float("inf")).otherwise(pl.col("held_from") + pl.col("held_seconds"))
    jobs = (
        tasks.group_by("job_id", maintain_order=True)
        .agg(
            pl.when(wait_known.all()).then(pl.col("submit_time").min()).fill_null(float("nan")).alias("submit_time"),
            pl.col("held_from").max().alias("start_time"),
            end.max().alias("end_time"),
            pl.col("gpus").fill_null(0.0).sum(),
            pl.col("instances").sum(),
        )
        .filter(pl.col("gpus") > 0)
    )
    if jobs.is_empty() or jobs["submit_time"].is_nan().all():
        return None
    columns = ("submit_time", "start_time", "end_time", "gpus")
    record = Record(*(jobs[c].cast(pl.Float64).to_numpy() for c in columns))
    return Observed(record, jobs["instances"].cast(pl.Float64).to_numpy())


def _classes(jobs: Offered, capacity: float, seen: Record, traced: Record | None) -> tuple[ClassRow, ...]:
    rows = []
    of_jobs = class_of(jobs.gpus)
    for number, (name, _, _) in enumerate(CLASSES):
        chosen = of_jobs == number
        if not chosen.any():
            continue
        ours, theirs = (
            None if record is None else _measured(record, number, capacity, jobs) for record in (seen, traced)
        )
        load = float((jobs.run * jobs.gpus)[chosen].sum()) / (jobs.until - jobs.begin)
        assert ours is not None
        rows.append(ClassRow(name, int(chosen.sum()), load, ours, theirs))
    return tuple(rows)


def _measured(record: Record, number: int, capacity: float, jobs: Offered) -> Figures:
    chosen = class_of(record.servers) == number
    return measure(Record(*(column[chosen] for column in record)), capacity, jobs.begin, jobs.until)


def _named(figures: Figures) -> dict[str, float | None]:
    return {
        "wait_seconds_mean": figures.mean_wait,
        "wait_seconds_p95": figures.p95_wait,
        "utilisation": figures.utilisation,
        "queue_length": figures.queue_length,
    }
