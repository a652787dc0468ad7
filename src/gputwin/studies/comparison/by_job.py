"""Scenarios compared job by job: who waits shorter, who longer, and the mean difference with an interval.

Each job is compared with itself under the baseline, on the same replicate. The interval is a circular block bootstrap
over arrival time within each replicate, since jobs that arrive together wait together: it says what other times of the
same traces would give. An interval over replicates (`compare`) says what other traces would give.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from gputwin.analysis.bootstrap import block_weights
from gputwin.studies.comparison.compare import LEVEL, Comparison

_BINS, _RESAMPLES = 100, 1000
_SAME_SECONDS = 1.0
"""A wait that differs by no more than this is the same."""
SCHEMA = {"scenario": pl.String, "jobs": pl.Int64} | dict.fromkeys(
    ("shorter", "longer", "difference", "low", "high"), pl.Float64
)


def by_job(compared: Comparison, *, seed: int = 0) -> pl.DataFrame:
    """Return for each scenario but the baseline: jobs, shares that wait shorter and longer, mean difference (s)."""
    replicates = list(dict.fromkeys(run.replicate for run in compared.runs))
    base = {run.replicate: _waits(run.jobs) for run in compared.runs if run.label == compared.baseline}
    weights = [block_weights(_BINS, _RESAMPLES, seed + k) for k in range(len(replicates))]
    rows = []
    for label in compared.labels[1:]:
        own = {run.replicate: run.jobs for run in compared.runs if run.label == label}
        rows.append((label, *_paired([(base[k], _waits(own[k])) for k in replicates], weights)))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _waits(jobs: pl.DataFrame) -> pl.DataFrame:
    return jobs.select("job_id", "submit_time", "wait_seconds").drop_nulls()


def _paired(
    pairs: Sequence[tuple[pl.DataFrame, pl.DataFrame]], weights: Sequence[np.ndarray]
) -> tuple[int, float | None, float | None, float | None, float | None, float | None]:
    count, shorter, longer, total = 0, 0, 0, 0.0
    drawn, of = np.zeros(_RESAMPLES), np.zeros(_RESAMPLES)
    for (base, other), weight in zip(pairs, weights, strict=True):
        both = base.join(other.select("job_id", pl.col("wait_seconds").alias("other")), on="job_id")
        gap = (both["other"] - both["wait_seconds"]).to_numpy()
        count += gap.size
        shorter += int((gap < -_SAME_SECONDS).sum())
        longer += int((gap > _SAME_SECONDS).sum())
        total += float(gap.sum())
        at = _bins(both["submit_time"].to_numpy())
        drawn += weight @ np.bincount(at, gap, _BINS)
        of += weight @ np.bincount(at, minlength=_BINS)
    if not count:
        return 0, None, None, None, None, None
    low, high = np.quantile(drawn[of > 0] / of[of > 0], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return count, shorter / count, longer / count, total / count, float(low), float(high)


def _bins(times: np.ndarray) -> np.ndarray:
    """Return the bin of each time of arrival, of equal bins."""
    if not times.size or times.max() == times.min():
        return np.zeros(times.size, np.int64)
    share = (times - times.min()) / (times.max() - times.min())
    return np.asarray(np.minimum(share * _BINS, _BINS - 1), np.int64)
