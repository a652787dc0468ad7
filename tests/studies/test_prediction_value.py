"""The value of predictions: the truth keeps all of the gain, and noise as large as a model's errors is as large."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gputwin.core.errors import UserError
from gputwin.profiling.jobs import History
from gputwin.simulation.load import check_load
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.simulate import simulate
from gputwin.studies.prediction_value.crowd import crowd_of
from gputwin.studies.prediction_value.study import (
    FIFO,
    ORACLE,
    PredictionValue,
    RuleOutcome,
    as_frame,
    noisy,
    prediction_value,
    prediction_value_in_time,
)
from gputwin.studies.prediction_value.verdict import verdict
from gputwin.studies.reproduce.pai2020_sjf import PUBLISHED, reproduce
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.locate import open_trace
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
    found = prediction_value(
        crowd,
        CLUSTER,
        {"truth": actual, "reverse": 1e9 / actual},
        noise=False,
        scenario=Scenario(trace="crowd", backfill="greedy"),
    )
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


@pytest.mark.parametrize("name", ["pai2020", "dlrm2025", "philly"])
def test_a_crowd_queues_but_does_not_overload_its_cluster(name: str) -> None:
    """Long jobs that outlast the arrivals once made the load several times what was aimed at."""
    found = crowd_of(open_trace(f"synthetic:{name}?jobs=3000"))
    assert found is not None
    check = check_load(found.trace, found.cluster)
    assert max(load.mean for load in check.loads) == pytest.approx(0.9, abs=0.02)
    assert max(load.time_above_capacity for load in check.loads) > 0.02
    assert check.never_fit.is_empty()


def test_few_wide_jobs_come_faster_than_they_did(crowd: Trace) -> None:
    """Jobs of up to 64 GPUs, days apart: eight nodes hold the widest, and the rest must come faster."""
    thin = crowd.tasks.with_columns(pl.col("submit_time") * 50, pl.lit(8, pl.Int32).alias("instances"))
    found = crowd_of(Trace.from_frames({"tasks": thin}, TraceMeta("test")))
    assert found is not None
    assert found.cluster.gpu_count == int(thin["gpu_count"].max()) * 8  # type: ignore[arg-type]
    assert found.faster > 2
    gaps = thin["submit_time"].diff().drop_nulls() / found.trace.tasks["submit_time"].diff().drop_nulls()
    assert gaps.to_numpy() == pytest.approx(np.full(gaps.len(), found.faster), rel=1e-3)
    assert found.trace.tasks["duration_seconds"].equals(thin["duration_seconds"])
    assert found.trace.tasks["submit_time"].min() == thin["submit_time"].min()


def test_jobs_that_have_not_ended_are_not_scheduled(crowd: Trace) -> None:
    frame = crowd.tasks.with_columns(pl.lit(1, pl.Int32).alias("gpu_count"))
    running = frame.with_columns(
        (pl.int_range(pl.len()) < 20).alias("is_running"),
        pl.when(pl.int_range(pl.len()) >= 20).then("duration_seconds").alias("duration_seconds"),
    )
    found = crowd_of(Trace.from_frames({"tasks": running}, TraceMeta("test")))
    assert found is not None
    assert found.trace.tasks.height == 180


def test_where_no_queue_can_form_nothing_is_simulated(crowd: Trace) -> None:
    idle = crowd.tasks.with_columns(pl.lit(0, pl.Int32).alias("gpu_count"))
    assert crowd_of(Trace.from_frames({"tasks": idle}, TraceMeta("test"))) is None
    one_wide = crowd.tasks.head(30).with_columns(
        pl.lit(1, pl.Int32).alias("gpu_count"),
        pl.when(pl.int_range(pl.len()) == 0).then(4000).otherwise(1).cast(pl.Int32).alias("instances"),
        pl.lit(100.0).alias("duration_seconds"),
        (pl.col("submit_time").rank("ordinal") * 1e5).alias("submit_time"),
    )
    found = crowd_of(Trace.from_frames({"tasks": one_wide}, TraceMeta("test")))
    assert found is None or found.load == pytest.approx(0.9, abs=0.02)


def test_on_a_crowd_knowing_durations_helps_and_the_sentence_says_so(real_data: Path) -> None:
    found = prediction_value_in_time(open_trace(str(real_data / "thetagpu")), None, ["median"])
    assert found is not None
    oracle, fifo = found.of(ORACLE), found.of(FIFO)
    assert oracle.mean_wait_seconds < fifo.mean_wait_seconds
    assert oracle.is_shorter
    assert oracle.difference_seconds == pytest.approx(oracle.mean_wait_seconds - fifo.mean_wait_seconds)
    assert oracle.difference_low_seconds < oracle.difference_seconds < oracle.difference_high_seconds  # type: ignore[operator]
    assert "shortens the mean wait" in verdict(found)


@pytest.mark.parametrize(
    ("interval", "words", "gain"),
    [
        ((-60.0, -20.0), "shortens", True),
        ((20.0, 60.0), "lengthens", False),
        ((-60.0, 20.0), "may be chance", False),
        ((None, None), "too few", False),
    ],
)
def test_sentences_follow_from_the_intervals_they_quote(
    interval: tuple[float | None, float | None], words: str, gain: bool
) -> None:
    fifo = RuleOutcome(FIFO, 100.0, 200.0, 500.0, 500.0, 0.0, 0.0, 0.0, None, None, None)
    oracle = RuleOutcome(ORACLE, 70.0, 170.0, 500.0, 500.0, -30.0, *interval, 1.0 if gain else None, 1.0, 1.0)
    model = replace(oracle, rule="forest", gain_kept=0.5 if gain else None)
    said = verdict(PredictionValue("cluster", 100, 0.9, 1.0, (fifo, oracle, model)))
    first, second = said.split(" By forest")
    assert words in first
    assert words in second
    assert ("Better predictions would help: predictions of the forest model bring only 50 % of what" in first) == gain
    assert first.startswith("Better predictions of durations would not help: ") != gain
    assert "no difference" not in said


def test_where_a_model_brings_nearly_all_of_the_gain_better_ones_help_little() -> None:
    fifo = RuleOutcome(FIFO, 100.0, 200.0, 500.0, 500.0, 0.0, 0.0, 0.0, None, None, None)
    oracle = RuleOutcome(ORACLE, 70.0, 170.0, 500.0, 500.0, -30.0, -40.0, -20.0, 1.0, 1.0, 1.0)
    model = replace(oracle, rule="forest", gain_kept=0.95)
    said = verdict(PredictionValue("cluster", 100, 0.9, 1.0, (fifo, oracle, model)))
    assert said.startswith(
        "Better predictions would help little: predictions of the forest model already bring 95 % of "
    )


def test_an_overloaded_cluster_is_said_to_be_one() -> None:
    fifo = RuleOutcome(FIFO, 100.0, 200.0, 500.0, 500.0, 0.0, 0.0, 0.0, None, None, None)
    oracle = replace(
        fifo, rule=ORACLE, mean_wait_seconds=50.0, difference_low_seconds=-60.0, difference_high_seconds=-40.0
    )
    assert "2.86 times" in verdict(PredictionValue("cluster", 100, 2.86, 1.0, (fifo, oracle)))
    assert "times what" not in verdict(PredictionValue("cluster", 100, 0.9, 1.0, (fifo, oracle)))


def test_without_waits_no_order_is_praised() -> None:
    fifo = RuleOutcome(FIFO, 0.0, 200.0, 0.0, 0.0, 0.0, 0.0, 0.0, None, None, None)
    said = verdict(PredictionValue("cluster", 100, 0.1, 1.0, (fifo, replace(fifo, rule=ORACLE))))
    assert "hardly wait" in said
