"""One battery over every registered duration model."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gputwin.core.errors import UserError
from gputwin.profiling.jobs import History, Outcomes, Submitted
from gputwin.profiling.model import MODELS, fit
from tests.profiling.workloads import history

NAMES = MODELS.names()


@pytest.fixture(scope="module")
def past() -> History:
    return history(300)


@pytest.fixture(scope="module")
def future() -> Submitted:
    frame = history(60, seed=9).jobs.frame
    strangers = pl.col("job_id").str.ends_with("7")
    return Submitted(
        frame.with_columns(
            pl.col("arrival_time") + 41 * 86_400.0,
            *(
                pl.when(strangers).then(pl.lit("never seen")).otherwise(pl.col(c)).alias(c)
                for c in ("user", "group", "workload")
            ),
        )
    )


@pytest.mark.parametrize("name", NAMES)
def test_predictions_are_positive_and_quantiles_ascend(name: str, past: History, future: Submitted) -> None:
    model = fit(name, past)
    seconds, quantiles, mean = model.forecast(future, (0.05, 0.1, 0.5, 0.9, 0.95))
    assert np.all(np.isfinite(mean) & (mean >= 1.0))
    assert seconds.shape == (future.size,)
    assert np.all(np.isfinite(seconds) & (seconds >= 1.0))
    assert np.all(np.diff(quantiles, axis=1) >= 0)
    assert np.array_equal(model.predict(future), seconds)


@pytest.mark.parametrize("name", NAMES)
def test_a_job_that_runs_is_not_predicted_to_have_ended(name: str, past: History, future: Submitted) -> None:
    model = fit(name, past)
    ran = np.linspace(0.0, 2e6, future.size)
    seconds, quantiles, mean = model.forecast(future, ran=ran)
    for predicted in (seconds, mean, *quantiles.T):
        assert np.all(predicted >= ran)
    fresh = model.forecast(future, ran=np.zeros(future.size))
    assert fresh.quantiles == pytest.approx(model.forecast(future).quantiles)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_model(name: str, past: History, future: Submitted) -> None:
    assert np.array_equal(fit(name, past, seed=3).predict(future), fit(name, past, seed=3).predict(future))


@pytest.mark.parametrize("name", NAMES)
def test_distributions_sum_to_one(name: str, past: History, future: Submitted) -> None:
    mass = fit(name, past).distributions(future)
    assert np.all(mass >= 0)
    assert mass.sum(axis=1) == pytest.approx(np.ones(future.size), abs=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_reasons_are_given_for_every_job(name: str, past: History, future: Submitted) -> None:
    reasons = fit(name, past).explain(future)
    assert reasons.columns == ["row", "reason", "value", "factor"]
    assert set(reasons["row"]) == set(range(future.size))
    assert (reasons["factor"] > 0).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_a_handful_of_jobs_is_enough_to_learn_something(name: str, jobs: int, future: Submitted) -> None:
    seconds = fit(name, history(jobs)).predict(future)
    assert np.all(np.isfinite(seconds) & (seconds >= 1.0))


@pytest.mark.parametrize("name", NAMES)
def test_jobs_that_have_not_ended_when_another_comes_do_not_move_its_prediction(name: str, past: History) -> None:
    """Look-ahead: outcomes later than the arrival may be anything."""
    later = history(80, seed=5)
    shift = 41 * 86_400.0
    frame = later.jobs.frame.with_columns(pl.col("arrival_time") + shift)
    outcomes = Outcomes(later.outcomes.start + shift, later.outcomes.duration, later.outcomes.finished)
    known = History(Submitted(frame), outcomes)
    moment = float(np.median(known.jobs.arrival))
    early = known.jobs.take(known.jobs.arrival <= moment)
    ended = known.outcomes.end < moment
    other = np.where(ended, outcomes.duration, 1e6)
    lied = History(known.jobs, Outcomes(outcomes.start, other, outcomes.finished))
    model = fit(name, past)
    assert np.array_equal(model.observing(known).predict(early), model.observing(lied).predict(early))


@pytest.mark.parametrize("name", ["online", "forest", "last-two", "boosted"])
def test_models_that_learn_as_jobs_finish_do(name: str, past: History) -> None:
    row = past.jobs.frame[:1].with_columns(pl.lit("newcomer").alias(c) for c in ("user", "group"))
    after = Submitted(row.with_columns(arrival_time=pl.lit(1e8)))
    ended = History(Submitted(row), Outcomes(np.array([0.0]), np.array([7.0]), np.array([True])))
    model = fit(name, past)
    assert not np.array_equal(model.observing(ended).distributions(after), model.distributions(after))


def test_a_new_user_is_learned_from_the_first_finished_job(past: History) -> None:
    row = past.jobs.frame[:1].with_columns(pl.lit("newcomer").alias(c) for c in ("user", "group"))
    row = row.with_columns(arrival_time=pl.lit(1e8))
    ended = History(Submitted(pl.concat([row] * 8)), Outcomes(np.full(8, 9e7), np.full(8, 12_345.0), np.full(8, True)))
    assert fit("online", past).observing(ended).predict(Submitted(row))[0] == pytest.approx(12_345.0, rel=0.1)


def test_medians_by_hand() -> None:
    frame = history(6).jobs.frame.with_columns(
        pl.Series("user", ["a", "a", "a", "b", "b", "b"]), pl.Series("group", [None] * 6, dtype=pl.String)
    )
    duration = np.array([10.0, 20.0, 400.0, 1000.0, 3000.0, 9000.0])
    past = History(Submitted(frame), Outcomes(np.zeros(6), duration, np.full(6, True)))
    asked = Submitted.of_rows([{"user": "a"}, {"user": "b"}, {"user": "stranger"}])
    assert fit("user-median", past).predict(asked) == pytest.approx([20.0, 3000.0, 400.0], rel=0.01)
    assert fit("median", past).predict(asked) == pytest.approx([400.0] * 3, rel=0.01)


def test_last_two_by_hand() -> None:
    frame = history(3).jobs.frame.with_columns(user=pl.lit("a"), arrival_time=pl.Series([0.0, 10.0, 20.0]))
    past = History(
        Submitted(frame), Outcomes(np.array([0.0, 10.0, 20.0]), np.array([100.0, 200.0, 900.0]), np.full(3, True))
    )
    asked = Submitted.of_rows(
        [
            {"user": "a", "arrival_time": 150.0},
            {"user": "a", "arrival_time": 500.0},
            {"user": "a", "arrival_time": 5000.0},
            {"user": "a", "arrival_time": 5000.0, "requested_seconds": 300.0},
            {"user": "b", "arrival_time": 5000.0, "requested_seconds": 60.0},
        ]
    )
    # At 150 s only the first had ended, at 500 s two, at 5,000 s all; a limit caps; strangers are believed.
    assert fit("last-two", past).predict(asked) == pytest.approx([100.0, 150.0, 550.0, 300.0, 60.0])


def test_a_trace_without_a_finished_job_teaches_nothing(past: History) -> None:
    running = History(past.jobs, Outcomes(past.outcomes.start, past.outcomes.duration, np.full(past.size, False)))
    with pytest.raises(UserError, match="finished"):
        fit("forest", running)


@pytest.mark.parametrize("name", ["median", "user-median", "signature-median", "forest"])
def test_censored_long_jobs_lengthen_what_is_expected(name: str) -> None:
    past = history(400)
    cut = float(np.quantile(past.outcomes.duration, 0.6))
    finished = past.outcomes.duration <= cut
    censored = Outcomes(past.outcomes.start, np.minimum(past.outcomes.duration, cut), finished)
    some = np.random.default_rng(0).random(past.size) < 0.5
    mixed = Outcomes(
        past.outcomes.start,
        np.where(some, past.outcomes.duration, censored.duration),
        np.where(some, True, censored.finished),
    )
    dropped = History(past.jobs, mixed).take(mixed.finished)
    aware = fit(name, History(past.jobs, mixed)).predict_quantiles(past.jobs, (0.9,)).mean()
    assert aware > fit(name, dropped).predict_quantiles(past.jobs, (0.9,)).mean()
