"""From runs to a comparison: figures per scenario, paired differences to a baseline with intervals, and a verdict.

Scenarios are compared on the same jobs (common random numbers), so a difference is taken per replicate and its interval
over replicates (paired t). With a single replicate there is nothing to take an interval over but time: the difference
of each job is averaged over arrival-time bins and those are resampled in blocks, as neighbours wait together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gputwin.analysis.bootstrap import block_weights
from gputwin.core.display import Shown
from gputwin.core.errors import UserError
from gputwin.core.units import format_duration
from gputwin.simulation.result import SimulationResult
from gputwin.studies.comparison.scenario_run import ScenarioRun, over_the_same_jobs
from gputwin.traces.dataset import Trace

LEVEL = 0.95
METRICS = {
    "mean wait": ("wait_seconds", "mean"),
    "p95 wait": ("wait_seconds", "p95"),
    "p99 wait": ("wait_seconds", "p99"),
    "mean JCT": ("jct_seconds", "mean"),
    "mean slowdown": ("bounded_slowdown", "mean"),
    "GPU allocation": ("allocation", "gpu"),
    "fragmentation": ("fragmentation",),
    "fairness": ("jain_fairness",),
    "makespan": ("makespan_seconds",),
    "stops": ("stops",),
    "cost": ("cost",),
    "energy": ("power", "energy_kwh"),
}
"""Shown name → where it stands in a run's summary."""
KEYS = {
    "mean wait": "mean_wait_seconds",
    "p95 wait": "p95_wait_seconds",
    "p99 wait": "p99_wait_seconds",
    "mean JCT": "mean_jct_seconds",
    "mean slowdown": "mean_slowdown",
    "GPU allocation": "gpu_allocation",
    "makespan": "makespan_seconds",
    "energy": "energy_kwh",
}
"""Shown name → its key in JSON, with the unit; the others are their own."""
PER_JOB = {"mean wait": "wait_seconds", "mean JCT": "jct_seconds", "mean slowdown": "bounded_slowdown"}
"""Figures that are means over jobs."""
DURATIONS = ("mean wait", "p95 wait", "p99 wait", "mean JCT", "makespan")
LOWER_IS_BETTER = (*DURATIONS, "mean slowdown", "fragmentation", "stops", "cost", "energy")
_BINS, _REPLICATES = 100, 1000
_NEGLIGIBLE_SECONDS = 1.0


def with_keys(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of metrics by their keys in JSON."""
    return {KEYS.get(name, name): value for name, value in row.items()}


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Scenarios side by side. `figures`: label, replicate, one column per metric; `differences`: to the baseline."""

    labels: tuple[str, ...]
    runs: tuple[ScenarioRun, ...]
    figures: pl.DataFrame
    differences: pl.DataFrame

    def _title(self) -> str:
        return f"{len(self.labels)} scenarios, {self.replicates} replicate{'' if self.replicates == 1 else 's'} each"

    def _lines(self) -> list[str]:
        from gputwin.studies.comparison.verdict import recommendation

        waits = [f"{r['scenario']}: mean wait {format_duration(r['mean wait'])}" for r in self.means().to_dicts()]
        return [recommendation(self), *waits]

    def to_json(self) -> dict[str, Any]:
        """Return each scenario's means and their differences to the baseline as plain data."""
        return {
            "scenarios": [with_keys(row) for row in self.means().to_dicts()],
            "differences": [
                {**row, "metric": KEYS.get(row["metric"], row["metric"])} for row in self.differences.to_dicts()
            ],
        }

    @property
    def baseline(self) -> str:
        """Return the scenario all others are compared with."""
        return self.labels[0]

    @property
    def replicates(self) -> int:
        """Return how many replicates each scenario has."""
        return self.figures["replicate"].n_unique()

    def means(self) -> pl.DataFrame:
        """Return each scenario's figures, averaged over replicates, in the scenarios' order."""
        return self.figures.group_by("scenario", maintain_order=True).agg(pl.col(*METRICS).mean())

    def shown_metrics(self) -> list[str]:
        """Return the metrics that say something: known for a scenario, and stops only where there are any."""
        means = self.means()
        return [m for m in METRICS if means[m].null_count() < means.height and (m != "stops" or means[m].sum() > 0)]

    def only(self, labels: Sequence[str]) -> Comparison:
        """Return the comparison of some scenarios; the baseline must be the first of them."""
        keep = pl.col("scenario").is_in(list(labels))
        runs = tuple(run for label in labels for run in self.runs if run.label == label)
        return Comparison(tuple(labels), runs, self.figures.filter(keep), self.differences.filter(keep))

    def of(self, label: str) -> list[SimulationResult]:
        """Return the runs of one scenario."""
        return [run.result for run in self.runs if run.label == label]

    @property
    def not_run(self) -> dict[str, int]:
        """Return by scenario how many jobs never ran, in the replicate with most of them."""
        return {label: max(run.not_run for run in self.runs if run.label == label) for label in self.labels}

    def causes(self) -> pl.DataFrame:
        """Return scenario, cause and mean seconds a job waited for it, over replicates."""
        rows = []
        for label in self.labels:
            found = [run.summary for run in self.runs if run.label == label]
            names = found[0]["wait_causes_seconds"] or {}
            for cause in names:
                per_job = [r["wait_causes_seconds"][cause] / max(r["jobs_with_wait"], 1) for r in found]
                rows.append((label, cause, float(np.mean(per_job))))
        return pl.DataFrame(
            rows, schema={"scenario": pl.String, "cause": pl.String, "seconds": pl.Float64}, orient="row"
        )

    def difference(self, label: str, metric: str) -> dict[str, float | None]:
        """Return difference, low, high of a scenario's metric to the baseline's."""
        return self.differences.filter((pl.col("scenario") == label) & (pl.col("metric") == metric)).row(0, named=True)


def compare(runs: Sequence[ScenarioRun], *, seed: int = 0) -> Comparison:
    """Return the runs side by side; the first run's scenario is the baseline.

    Waits, completion times and slowdowns are over the jobs that run under all scenarios.
    """
    runs = over_the_same_jobs(runs)
    labels = tuple(dict.fromkeys(run.label for run in runs))
    replicates = list(dict.fromkeys(run.replicate for run in runs))
    cells = {(run.label, run.replicate): run for run in runs}
    missing = [(label, run) for label in labels for run in runs if (label, run.replicate) not in cells]
    if missing or len(cells) != len(runs):
        what = "a scenario was run twice on the same jobs"
        if missing:
            label, run = missing[0]
            what = f"'{label}' was not run with the trace and seed {run.result.manifest['seed']} of '{run.label}'"
        raise UserError(f"cannot compare the runs pairwise: {what}; give each scenario once per trace and seed")
    figures = pl.DataFrame(
        [{"scenario": r.label, "replicate": r.replicate, **figures_of(r.summary)} for r in runs],
        schema={"scenario": pl.String, "replicate": pl.String} | dict.fromkeys(METRICS, pl.Float64),
    )
    differences = pl.concat(
        [_differences(labels[0], label, replicates, cells, seed) for label in labels[1:]] or [_no_differences()]
    )
    return Comparison(labels, tuple(runs), figures, differences)


def check_same_trace(trace: Trace, runs: Mapping[str, SimulationResult]) -> None:
    """Refuse a run, named by its directory, whose jobs are not the trace's: by their fingerprints."""
    for name, result in runs.items():
        of = str(result.manifest["trace_fingerprint"])
        if of != trace.meta.fingerprint:
            raise UserError(
                f"{name}: a run of another trace (fingerprint {of[:12] or 'unknown'}, the trace given has "
                f"{trace.meta.fingerprint[:12]}); give the trace it was made from: gputwin simulate TRACE -o {name}"
            )


def figures_of(summary: Mapping[str, object]) -> dict[str, float | None]:
    """Return the headline figures of a run's summary; None where one is not known."""
    return {name: _dig(summary, path) for name, path in METRICS.items()}


def _dig(summary: object, path: tuple[str, ...]) -> float | None:
    for key in path:
        # Where nothing can stop a job, a run does not count stops.
        summary = summary.get(key, {} if key == "stops" else None) if isinstance(summary, Mapping) else None
    if isinstance(summary, Mapping):
        return float(sum(summary.values()))
    return None if summary is None else float(summary)  # type: ignore[arg-type]


def _no_differences() -> pl.DataFrame:
    numbers = dict.fromkeys(("baseline", "value", "difference", "low", "high"), pl.Float64)
    return pl.DataFrame(schema={"scenario": pl.String, "metric": pl.String, **numbers})


def _differences(
    baseline: str, label: str, replicates: Sequence[str], cells: dict[tuple[str, str], ScenarioRun], seed: int
) -> pl.DataFrame:
    rows = []
    pairs = [(cells[baseline, k], cells[label, k]) for k in replicates]
    for metric in METRICS:
        values = [(figures_of(a.summary)[metric], figures_of(b.summary)[metric]) for a, b in pairs]
        known = np.array([v for v in values if None not in v], float).reshape(-1, 2)
        if not len(known):
            continue
        gaps = known[:, 1] - known[:, 0]
        low = high = None
        if len(gaps) > 1:
            low, high = _paired_interval(gaps)
        elif metric in PER_JOB:
            low, high = _resampled_interval(*pairs[0], PER_JOB[metric], seed)
        rows.append((label, metric, *known.mean(axis=0), gaps.mean(), low, high))
    return pl.DataFrame(rows, schema=_no_differences().schema, orient="row")


def _paired_interval(gaps: np.ndarray) -> tuple[float, float]:
    """Return Student's interval of the mean of paired differences."""
    from scipy.stats import t

    half = t.ppf((1 + LEVEL) / 2, len(gaps) - 1) * gaps.std(ddof=1) / len(gaps) ** 0.5
    return float(gaps.mean() - half), float(gaps.mean() + half)


def _resampled_interval(
    baseline: ScenarioRun, other: ScenarioRun, column: str, seed: int
) -> tuple[float | None, float | None]:
    """Return the block bootstrap interval of the mean difference of the jobs that both runs finished."""
    both = baseline.jobs.select("job_id", "submit_time", column).join(
        other.jobs.select("job_id", pl.col(column).alias("other")), on="job_id"
    )
    both = both.drop_nulls()
    time, gap = both["submit_time"].to_numpy(), (both["other"] - both[column]).to_numpy()
    finite = np.isfinite(gap)
    time, gap = time[finite], gap[finite]
    if gap.size < 2 or time[-1] == time[0]:
        return None, None
    at = np.minimum((time - time[0]) / (time[-1] - time[0]) * _BINS, _BINS - 1).astype(int)
    sums, counts = np.bincount(at, gap, _BINS), np.bincount(at, minlength=_BINS)
    weights = block_weights(_BINS, _REPLICATES, seed)
    drawn, of = weights @ sums, weights @ counts
    low, high = np.quantile(drawn[of > 0] / of[of > 0], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
