"""Kaplan–Meier against SciPy's, by hand, and where nothing is censored against the plain mean."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from gputwin.analysis.survival import kaplan_meier, survival_table
from gputwin.analysis.tasks import prepare, task_facts
from tests.report.samples import trace_of


def counts(time: np.ndarray, is_over: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    frame = pl.DataFrame({"t": time, "e": is_over}).group_by("t").agg(pl.col("e").sum(), pl.len().alias("n"))
    return frame["t"].to_numpy(), frame["e"].to_numpy(), (frame["n"] - frame["e"]).to_numpy()


@pytest.mark.parametrize("seed", range(5))
def test_as_scipy_estimates_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    life = rng.lognormal(3, 2, 400).round(seed % 3)
    watched = rng.uniform(0, np.quantile(life, 0.9), 400).round(seed % 3)
    time, is_over = np.minimum(life, watched), life <= watched
    ours = kaplan_meier(*counts(time, is_over))
    theirs = stats.ecdf(stats.CensoredData(uncensored=time[is_over], right=time[~is_over])).sf
    at = theirs.quantiles[np.isin(theirs.quantiles, ours.time)]
    assert ours.time == pytest.approx(at)
    assert ours.share == pytest.approx(theirs.evaluate(at))
    # SciPy's interval is Greenwood's at the same level.
    low = theirs.confidence_interval(0.95).low.evaluate(at)
    inside = (ours.share > 0) & (low > 0)
    assert (ours.share - 1.959964 * ours.error)[inside] == pytest.approx(low[inside], abs=1e-6)


def test_by_hand() -> None:
    # Four tasks: over after 1 and 3, left alive after 2 and 4.
    survival = kaplan_meier(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1, 0, 1, 0]), np.array([0, 1, 0, 1]))
    assert survival.share == pytest.approx([3 / 4, 3 / 4 * 1 / 2])
    assert survival.mean() == pytest.approx(1 + 2 * 3 / 4 + 1 * 3 / 8)
    assert survival.median() == 3.0
    # Klein and Moeschberger's formula: areas after each end, squared, times d / (n (n - d)).
    variance = (2 * 3 / 4 + 3 / 8) ** 2 * 1 / (4 * 3) + (3 / 8) ** 2 * 1 / (2 * 1)
    assert survival.mean_error() == pytest.approx(variance**0.5)


def test_without_censoring_it_is_the_plain_mean() -> None:
    tasks = [{"job_id": str(i), "submit_time": 0.0, "start_time": 1.0, "end_time": 2.0 + i**2} for i in range(30)]
    scan = trace_of({"tasks": tasks}).scan("tasks")
    (row,) = survival_table(prepare(scan, task_facts(scan))).to_dicts()
    assert row["censored"] == 0
    assert row["km_mean"] == pytest.approx(row["mean"])


def test_the_estimate_finds_the_true_mean_that_the_plain_mean_misses() -> None:
    rng = np.random.default_rng(1)
    start = rng.uniform(0, 5000, 20_000)
    end = start + rng.exponential(1000, 20_000)
    tasks = [
        {"job_id": str(i), "start_time": s, "end_time": e if e < 5000 else None, "is_running": bool(e >= 5000)}
        for i, (s, e) in enumerate(zip(start, end, strict=True))
    ]
    scan = trace_of({"tasks": tasks}).scan("tasks")
    (row,) = survival_table(prepare(scan, task_facts(scan))).to_dicts()
    assert row["mean"] < 850
    assert row["km_mean"] == pytest.approx(1000, rel=0.05)
    assert row["km_mean_low"] < row["km_mean"] < row["km_mean_high"]


def test_a_pod_deleted_while_it_ran_is_over() -> None:
    tasks = [{"job_id": "a", "status": "running", "start_time": 0.0, "end_time": 5.0}]
    scan = trace_of({"tasks": tasks}).scan("tasks")
    assert survival_table(prepare(scan, task_facts(scan)))["censored"].to_list() == [0]
