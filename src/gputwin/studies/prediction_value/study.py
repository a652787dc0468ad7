"""The same jobs under first-in-first-out and under shortest-job-first that believes one model after another.

Each rule's mean wait stands beside FIFO's with a 95 % interval of the difference, paired by job. Where the oracle is
surely better than FIFO, the gain of a model is how much of that reduction it keeps. Beside the models may stand noise:
the truth times a log-normal factor, calibrated to each model's own error, so that one sees whether it is the size of
the errors or their pattern that costs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.rng import stream
from gputwin.profiling.evaluation.scores import rank_correlation
from gputwin.profiling.evaluation.splits import FIRST_SHARE
from gputwin.profiling.jobs import Floats, History, Ints, Submitted
from gputwin.profiling.model import fit
from gputwin.simulation.batch import Batch, workers_for
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.load import check_load
from gputwin.simulation.metrics import spread
from gputwin.simulation.offered import overload
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.simulate import cluster_of_scenario, name_of, simulate_scenario
from gputwin.studies.comparison.compare import compare
from gputwin.studies.comparison.scenario_run import ScenarioRun
from gputwin.studies.prediction_value.crowd import crowd_of
from gputwin.traces.dataset import Trace

FIFO, ORACLE, NOISE = "fifo", "sjf, oracle", "noise like "
LONG = 0.9
"""Jobs that run longer than this share of jobs are the long ones, who may pay for the others."""


@dataclass(frozen=True)
class RuleOutcome:
    """One run: waits and completion times in s, the share of the oracle's gain kept, and how the long jobs fare."""

    rule: str
    mean_wait_seconds: float
    mean_jct_seconds: float
    p99_wait_seconds: float
    long_jobs_p99_wait_seconds: float
    difference_seconds: float
    """Mean wait less FIFO's; negative: jobs wait less."""
    difference_low_seconds: float | None
    difference_high_seconds: float | None
    """Ends of the difference's 95 % interval; None where the jobs are too few for one."""
    gain_kept: float | None
    """None where the oracle is not surely better than FIFO."""
    within_2x: float | None
    rank_correlation: float | None

    @property
    def is_shorter(self) -> bool:
        """Return whether jobs surely wait less than under FIFO: the whole interval lies below zero."""
        return self.difference_high_seconds is not None and self.difference_high_seconds < 0

    @property
    def is_longer(self) -> bool:
        """Return whether jobs surely wait longer than under FIFO."""
        return self.difference_low_seconds is not None and self.difference_low_seconds > 0


@dataclass(frozen=True)
class PredictionValue:
    """The runs side by side, first-in-first-out and the oracle first, and the load the jobs offer to the cluster."""

    cluster: str
    jobs: int
    load: float
    """The largest mean load of any resource and GPU model."""
    faster: float
    """How many times as fast as in their trace the jobs come."""
    outcomes: tuple[RuleOutcome, ...]
    warnings: tuple[str, ...] = ()
    """Of what more is offered than the cluster has."""

    @property
    def setting(self) -> str:
        """Return what was simulated, in words."""
        pace = f", arrivals drawn together {self.faster:.3g} times" if self.faster > 1.005 else ""
        return f"{self.jobs:,} jobs on {self.cluster}, offered load {self.load:.2f}{pace}"

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return asdict(self)

    def of(self, rule: str) -> RuleOutcome:
        """Return the outcome of one rule."""
        return next(o for o in self.outcomes if o.rule == rule)


def prediction_value(
    trace: Trace,
    cluster: Cluster | str,
    predictions: dict[str, Floats],
    *,
    scenario: Scenario | None = None,
    noise: bool = True,
    faster: float = 1.0,
    workers: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> PredictionValue:
    """Return what each model's predictions (s, one per task of `History.of(trace)`) do to waits on this cluster.

    `scenario` has the rules but for the order, which is varied, and all else that goes on.
    """
    history = History.of(trace)
    actual = history.outcomes.duration
    base = (scenario or Scenario(trace=name_of(trace))).with_(cluster=cluster)
    target = cluster_of_scenario(base, trace)
    rules: dict[str, tuple[Scenario, Floats | None]] = {
        FIFO: (base.with_(order="fifo"), None),
        ORACLE: (base.with_(order="sjf"), actual),
    }
    for name, believed in predictions.items():
        rules[name] = base.with_(order="sjf", prediction=name), believed
        if noise:
            alike = noisy(actual, believed, base.seed)
            rules[NOISE + name] = base.with_(order="sjf", prediction=NOISE + name), alike
    with Batch(workers=workers_for(history.size * len(rules)) if workers is None else workers) as batch:
        given = [batch.share(trace), batch.share(target)]
        frames = [
            None if name in (FIFO, ORACLE) or believed is None else as_frame(history.jobs, believed)
            for name, (_, believed) in rules.items()
        ]
        progress(f"simulating {len(rules)} rules")
        results = batch.map(
            simulate_scenario,
            [(rule, *given, frame) for (rule, _), frame in zip(rules.values(), frames, strict=True)],
            lambda done, of: progress(f"simulated {done} of {of} rules"),
        )
    runs = {name: (result, believed) for (name, (_, believed)), result in zip(rules.items(), results, strict=True)}
    load = max((load.mean for load in check_load(trace, target).loads), default=0.0)
    outcomes = _outcomes(runs, actual, base.seed)
    warnings = overload(trace, target)
    return PredictionValue(target.name, runs[FIFO][0].jobs.height, load, faster, outcomes, warnings)


def _outcomes(
    runs: dict[str, tuple[SimulationResult, Floats | None]], actual: Floats, seed: int
) -> tuple[RuleOutcome, ...]:
    compared = compare([ScenarioRun(rule, "jobs", result) for rule, (result, _) in runs.items()], seed=seed)
    found = [_outcome(FIFO, runs[FIFO][0].jobs, (0.0, 0.0, 0.0))]
    for rule, (result, believed) in runs.items():
        if rule == FIFO:
            continue
        gap = compared.difference(rule, "mean wait")
        outcome = _outcome(rule, result.jobs, (gap["difference"] or 0.0, gap["low"], gap["high"]))
        found.append(_judged(outcome, actual, believed))
    oracle = found[1]
    if not oracle.is_shorter:
        return tuple(found)
    # Plus zero: FIFO keeps 0, not −0.
    return tuple(replace(o, gain_kept=o.difference_seconds / oracle.difference_seconds + 0.0) for o in found)


def _outcome(rule: str, jobs: pl.DataFrame, gap: tuple[float, float | None, float | None]) -> RuleOutcome:
    long = jobs.filter(pl.col("duration_seconds") >= pl.col("duration_seconds").quantile(LONG, "linear"))
    none = dict.fromkeys(("mean", "p99"), 0.0)
    wait, jct, of_long = (
        spread(values) or none for values in (jobs["wait_seconds"], jobs["jct_seconds"], long["wait_seconds"])
    )
    waits = wait["mean"], jct["mean"], wait["p99"], of_long["p99"]
    return RuleOutcome(rule, *waits, *gap, gain_kept=None, within_2x=None, rank_correlation=None)


def _judged(outcome: RuleOutcome, actual: Floats, believed: Floats | None) -> RuleOutcome:
    """Return the outcome with how good the predictions it went by are."""
    if believed is None:
        return outcome
    near = float((np.maximum(believed / actual, actual / believed) <= 2.0).mean())
    return replace(outcome, within_2x=near, rank_correlation=rank_correlation(believed, actual))


def as_frame(jobs: Submitted, seconds: Floats) -> pl.DataFrame:
    """Return predictions as the simulator takes them: one row per task."""
    return jobs.frame.select("job_id", "role").with_columns(pl.Series("predicted_seconds", seconds))


def noisy(actual: Floats, predicted: Floats, seed: int) -> Floats:
    """Return the truth times a log-normal factor with the mean and spread of the predictions' log error."""
    error = np.log(predicted / actual)
    draws = stream(seed, "noise").standard_normal(actual.size)
    return np.asarray(actual * np.exp(error.mean() + error.std() * draws))


def predictions_of(
    past: History,
    jobs: History,
    models: Sequence[str],
    *,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> dict[str, Floats]:
    """Return each model's mean durations of `jobs`, s, learned from the past; ends become known as they come.

    The mean is what non-preemptive shortest-job-first should go by (Rothkopf, Management Science 1966).
    """
    found = {}
    for name in models:
        progress(f"training {name}")
        found[name] = fit(name, past, seed=seed).observing(jobs).predict_mean(jobs.jobs)
    return found


def rows_of(asked: Submitted, scheduled: Submitted) -> Ints:
    """Return, for each scheduled task, its row among the tasks that were asked about."""
    task = ["job_id", "role"]
    rows = asked.frame.select(task).with_row_index()
    found = scheduled.frame.select(task).join(rows, on=task, how="left", maintain_order="left")["index"]
    return found.cast(pl.Int64).to_numpy()


def prediction_value_in_time(
    trace: Trace,
    cluster: Cluster | str | None,
    models: Sequence[str],
    *,
    noise: bool = False,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> PredictionValue | None:
    """Return what models do to waits on the later part of a trace, learned from the earlier part (`FIRST_SHARE`).

    Without a cluster, jobs run on one made for them (`crowd_of`); None where none can be made.
    """
    history = History.of(trace)
    origin = float(history.jobs.arrival[int(history.size * FIRST_SHARE)])
    later = trace.between(origin, float("inf"))
    scheduled, target, faster = later, cluster, 1.0
    if target is None:
        crowd = crowd_of(later)
        if crowd is None:
            return None
        scheduled, target, faster = crowd.trace, crowd.cluster, crowd.faster
    # Predicted as they came, also where they are then made to come faster.
    asked = History.of(later)
    found = predictions_of(history.as_of(origin), asked, models, seed=seed, progress=progress)
    rows = rows_of(asked.jobs, History.of(scheduled).jobs)
    predictions = {name: seconds[rows] for name, seconds in found.items()}
    scenario = Scenario(trace=name_of(scheduled), backfill="greedy", seed=seed)
    return prediction_value(
        scheduled,
        target,
        predictions,
        scenario=scenario,
        noise=noise,
        faster=faster,
        workers=workers,
        progress=progress,
    )
