"""Job classes: found where they are, described truly, recognised at submit, and blind to durations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import yeojohnson
from sklearn.metrics import adjusted_rand_score

from gputwin.profiling.classes.classes import find_classes, profile_rows
from gputwin.profiling.classes.clustering import Scaling, stratified
from gputwin.profiling.jobs import History
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.ingest import ingest
from tests.profiling.workloads import tasks


@pytest.fixture(scope="module")
def truth() -> tuple[pl.DataFrame, np.ndarray]:
    """Three kinds of jobs, far apart in what they ask for."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, 300)
    frame = tasks(300).with_columns(
        pl.Series("cpu_milli", (np.array([1000, 8000, 64_000])[kind] * rng.uniform(0.95, 1.05, 300)).astype(np.int64)),
        pl.Series("memory_mib", (np.array([90_000, 2000, 500])[kind] * rng.uniform(0.95, 1.05, 300)).astype(np.int64)),
        pl.Series("gpu_count", np.array([1, 2, 8])[kind].astype(np.int32)),
        pl.Series("workload", np.array(["ctr", "bert", "nmt"])[kind].tolist()),
    )
    return frame, kind


def found_in(frame: pl.DataFrame):  # type: ignore[no-untyped-def]
    return find_classes(Trace.from_frames({"tasks": frame}, TraceMeta("test")), History.of_tasks(frame).jobs)


def test_kinds_that_are_there_are_found(truth: tuple[pl.DataFrame, np.ndarray]) -> None:
    frame, kind = truth
    found = found_in(frame)
    order = dict(zip(frame["job_id"], kind, strict=True))
    expected = [order[job] for job in History.of_tasks(frame).jobs.frame["job_id"]]
    assert adjusted_rand_score(expected, found.labels) > 0.95
    assert found.accuracy > 0.95
    for entry in found.classes:
        medoid = frame.filter(pl.col("job_id") == entry.medoid_job)
        low, middle, high = entry.ranges["cpu_milli"]
        assert low <= middle <= high
        assert low * 0.9 <= medoid["cpu_milli"][0] <= high * 1.1
        assert medoid["workload"][0] in entry.name


def test_classes_that_the_request_tells_are_recognised_from_it(real_data: Path) -> None:
    """ThetaGPU measures no use, so a class is where the request lies, which is known at submit."""
    trace = ingest(sorted((real_data / "thetagpu").glob("*.gz")))
    found = find_classes(trace, History.of(trace).jobs)
    assert len(found.classes) > 10
    assert found.accuracy > 0.99


def test_durations_do_not_enter(truth: tuple[pl.DataFrame, np.ndarray]) -> None:
    frame, _ = truth
    other = frame.with_columns(
        duration_seconds=pl.Series(np.random.default_rng(1).permutation(frame["duration_seconds"]))
    )
    other = other.with_columns(end_time=pl.col("start_time") + pl.col("duration_seconds"))
    assert np.array_equal(found_in(frame).labels, found_in(other).labels)


def test_the_power_transform_is_scipys() -> None:
    rows = np.random.default_rng(2).gamma(1.0, 3.0, (400, 1)) - 2.0
    scaling = Scaling.of(rows, "yeo-johnson")
    bent = yeojohnson(rows[:, 0], scaling.exponents[0])
    assert scaling.apply(rows)[:, 0] == pytest.approx((bent - bent.mean()) / bent.std())


def test_a_sample_keeps_every_stratum() -> None:
    strata = np.array([0] * 900 + [1] * 95 + [2] * 5)
    rows = stratified(strata, 100, seed=0)
    assert rows.size == 100
    counts = np.bincount(strata[rows], minlength=3)
    assert counts[2] >= 1
    assert counts[0] == pytest.approx(90, abs=2)


def test_all_features_are_known_before_or_are_use() -> None:
    columns, _ = profile_rows(History.of_tasks(tasks(50)).jobs, None)
    assert not [c for c in columns if any(word in c for word in ("start", "end", "duration", "arrival"))]
