"""What predictions are worth: the truth keeps all of the gain, and noise as large as a model's errors is as large."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gputwin.core.errors import UserError
from gputwin.profiling.jobs import History
from gputwin.simulation.scenario import simulate
from gputwin.studies.reproduce.pai2020_sjf import PUBLISHED, reproduce
from gputwin.studies.worth.study import FIFO, ORACLE, as_frame, crowded, noisy, worth
from gputwin.traces.dataset import Trace, TraceMeta
from tests.profiling.workloads import tasks

CLUSTER = "homogeneous:1x8"


@pytest.fixture(scope="module")
def crowd() -> Trace:
    frame = tasks(200).with_columns(
        pl.col("submit_time") / 200, start_time=pl.lit(None, pl.Float64), end_time=pl.lit(None, pl.Float64)
    )
    return Trace.from_frames({"tasks": frame}, TraceMeta("test"))


def test_the_truth_keeps_the_whole_gain_and_its_reverse_none(crowd: Trace) -> None:
    actual = History.of(crowd).outcomes.duration
    found = worth(crowd, CLUSTER, {"truth": actual, "reverse": 1e9 / actual}, noise=False, backfill="greedy")
    assert found.of(ORACLE).mean_wait_seconds < found.of(FIFO).mean_wait_seconds
    assert found.of("truth").gain_kept == pytest.approx(1.0)
    assert found.of("reverse").gain_kept < 0.2  # type: ignore[operator]


def test_noise_is_calibrated_to_the_models_error() -> None:
    rng = np.random.default_rng(0)
    actual = np.exp(rng.normal(6, 1, 20_000))
    predicted = actual * np.exp(rng.normal(0.3, 0.7, actual.size))
    error = np.log(noisy(actual, predicted, 1) / actual)
    assert error.mean() == pytest.approx(0.3, abs=0.03)
    assert error.std() == pytest.approx(0.7, abs=0.03)


def test_the_simulator_believes_the_predictions_it_is_given(crowd: Trace) -> None:
    history = History.of(crowd)
    told = np.arange(1.0, history.size + 1)
    result = simulate(crowd, CLUSTER, order="sjf", predict=as_frame(history.jobs, told))
    believed = dict(zip(history.jobs.frame["job_id"], told, strict=True))
    assert all(believed[j] == p for j, p in result.jobs.select("job_id", "predicted_seconds").iter_rows())


def test_predictions_must_cover_every_job(crowd: Trace) -> None:
    some = as_frame(History.of(crowd).jobs, np.ones(200)).head(150)
    with pytest.raises(UserError, match="50 tasks"):
        simulate(crowd, CLUSTER, predict=some)


def test_the_published_comparison_in_small() -> None:
    found = reproduce(jobs=400, past_jobs=2000, models=("forest",))
    assert {o.rule for o in found.ours.outcomes} == {FIFO, ORACLE, "forest", "noise like forest"}
    assert [round(p.gain_kept, 3) for p in PUBLISHED] == [0.0, 1.0, 0.85, 0.957, 0.993]


def test_a_crowd_asks_for_nine_tenths_of_its_cluster(crowd: Trace) -> None:
    """Few jobs of 64 GPUs at most, days apart: eight nodes hold the largest, and the rest must come faster."""
    thin = crowd.tasks.with_columns(pl.col("submit_time") * 50, pl.lit(8, pl.Int32).alias("instances"))
    made = crowded(Trace.from_frames({"tasks": thin}, TraceMeta("test")))
    assert made is not None
    trace, cluster = made
    largest = int(thin["gpu_count"].max()) * 8  # type: ignore[arg-type]
    assert cluster.gpu_count == largest
    tasks_ = trace.tasks
    work = (tasks_["duration_seconds"] * tasks_["gpu_count"] * 8).sum()
    span = thin.select((pl.col("submit_time") + pl.col("duration_seconds")).max() - pl.col("submit_time").min()).item()
    gaps = tasks_["submit_time"].diff().drop_nulls() / thin["submit_time"].diff().drop_nulls()
    assert gaps.to_numpy() == pytest.approx(np.full(gaps.len(), work / span / (0.9 * largest)))
    assert tasks_["submit_time"].min() == thin["submit_time"].min()


def test_busy_jobs_get_the_nodes_their_work_needs() -> None:
    frame = tasks(200).with_columns(pl.lit(0.0).alias("submit_time"), pl.lit(1000.0).alias("duration_seconds"))
    frame = frame.with_columns(pl.lit(8, pl.Int32).alias("gpu_count"), start_time=None, end_time=None)
    made = crowded(Trace.from_frames({"tasks": frame}, TraceMeta("test")))
    assert made is not None
    # 200 jobs of 8 GPUs at once for 1,000 s each fill 200 nodes; at 90 % it takes 223.
    assert made[1].node_count == 223
    assert made[0].tasks["submit_time"].to_list() == [0.0] * 200


def test_without_gpus_nothing_is_simulated(crowd: Trace) -> None:
    idle = crowd.tasks.with_columns(pl.lit(0, pl.Int32).alias("gpu_count"))
    assert crowded(Trace.from_frames({"tasks": idle}, TraceMeta("test"))) is None
