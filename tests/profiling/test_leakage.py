"""Leaks: each check passes on the code as it is, and is shown to fail once a leak is planted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from gputwin.profiling import features as features_module
from gputwin.profiling.evaluation import evaluate as evaluate_module
from gputwin.profiling.evaluation.evaluate import evaluate_in_time, evaluate_shuffled
from gputwin.profiling.evaluation.splits import Split, grouped_folds, rolling_origin
from gputwin.profiling.features import Encoding, learn_features, training_rows
from gputwin.profiling.jobs import History, Outcomes, Submitted
from gputwin.profiling.memory import Memory
from tests.profiling.workloads import history, tasks

leaks = pytest.mark.parametrize("planted", [False, True], ids=["as it is", "leak planted"])


def verify(check: Callable[[], None], planted: bool) -> None:
    if planted:
        with pytest.raises(AssertionError):
            check()
    else:
        check()


@leaks
def test_a_jobs_features_do_not_know_its_own_duration(planted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave-one-out and in-sample target encodings both carry the label; encoding from other parts does not."""
    if planted:

        def in_sample(codes, size, values, weights, part, mean):  # type: ignore[no-untyped-def]
            return Encoding.of(codes, size, values, weights).columns(codes, mean)

        monkeypatch.setattr(features_module, "_out_of_part", in_sample)

    def check() -> None:
        past = history(200)
        weights = np.ones(past.size)
        before = learn_features(past, weights)
        rows = training_rows(before, past, weights, 0)
        row = 120
        longer = past.outcomes.duration.copy()
        longer[row] *= 50
        changed = History(past.jobs, Outcomes(past.outcomes.start, longer, past.outcomes.finished))
        after = learn_features(changed, weights)
        changed_rows = training_rows(after, changed, weights, 0)
        # The overall mean moves, and with it all shrunk means, by as much for everyone: compare within that.
        drift = abs(after.mean - before.mean)
        assert np.all(np.abs(changed_rows[row] - rows[row]) <= drift * 1.001)

    verify(check, planted)


@leaks
def test_features_do_not_know_what_ends_after_the_arrival(planted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if planted:
        monkeypatch.setattr(Memory, "by_key", property(lambda self: self.settled))

    def check() -> None:
        past = history(200)
        learned = learn_features(past, np.ones(past.size))
        moment = float(np.median(past.jobs.arrival))
        early = past.jobs.take(past.jobs.arrival <= moment)
        later = learned.memory.history.with_columns(
            pl.when(pl.col("known_from") > moment).then(99.0).otherwise("log_duration").alias("log_duration")
        )
        lied = features_module.replace(learned, memory=Memory(learned.memory.tables, later))
        assert np.array_equal(learned.matrix(early), lied.matrix(early))

    verify(check, planted)


@leaks
@pytest.mark.parametrize("protocol", ["in time", "shuffled"])
def test_no_job_is_learned_from_and_tested_on(protocol: str, planted: bool) -> None:
    """Jobs of two tasks: a split by rows would put one on each side."""
    both = tasks(100).vstack(tasks(100).with_columns(role=pl.lit("ps"), start_time=pl.col("start_time") + 1))
    past = History.of_tasks(both)

    def splits() -> list[Split]:
        if planted:
            half = np.arange(past.size) % 2 == 0
            return [Split(past.take(half), np.flatnonzero(~half), None)]
        return list(rolling_origin(past) if protocol == "in time" else grouped_folds(past))

    def check() -> None:
        for split in splits():
            tested = past.jobs.take(split.test).frame
            assert tested.join(split.past.jobs.frame, on="job_id", how="semi").is_empty()

    verify(check, planted)


@leaks
def test_in_time_order_nothing_is_learned_from_what_had_not_ended(planted: bool) -> None:
    past = history(300)

    def check() -> None:
        for split in rolling_origin(past):
            origin = past.jobs.arrival[split.test[0]]
            learned = past if planted else split.past
            assert np.all(learned.outcomes.end[learned.outcomes.finished] <= origin + 1.0)

    verify(check, planted)


@leaks
@pytest.mark.parametrize("name", ["forest", "boosted", "stack", "signature-median", "cluster"])
def test_shuffled_durations_cannot_be_predicted(name: str, planted: bool) -> None:
    """With durations dealt out at random no model may rank them; a column that knows them is found out."""
    past = history(400)
    dealt = np.random.default_rng(4).permutation(past.outcomes.duration)
    outcomes = Outcomes(past.outcomes.start, dealt, past.outcomes.finished)
    jobs = past.jobs
    if planted:
        # A label encoding made from the durations, as careless preprocessing makes it.
        decile = pl.Series(np.digitize(dealt, np.quantile(dealt, np.linspace(0.1, 0.9, 9))))
        jobs = Submitted(
            jobs.frame.with_columns(
                decile.cast(pl.Int32).alias("priority"),
                decile.cast(pl.String).alias("user"),
                decile.cast(pl.Int64).alias("memory_mib"),
            )
        )

    def check() -> None:
        found = evaluate_shuffled(History(jobs, outcomes), [name])[0].scores
        chance = evaluate_shuffled(History(jobs, outcomes), ["median"])[0].scores
        assert abs(found.rank_correlation) < 0.15
        assert found.within_2x < chance.within_2x + 0.08

    verify(check, planted)


@leaks
def test_evaluation_hands_models_nothing_of_the_test_jobs(planted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test durations may be anything: predictions stay the same."""
    past = history(200)
    if planted:
        fit = evaluate_module.fit
        monkeypatch.setattr(evaluate_module, "fit", lambda name, known, seed: fit(name, current[0], seed=seed))
    current = [past]

    def check() -> None:
        true = evaluate_in_time(past, ["signature-median"])[0].predictions
        last = true["row"].max()
        changed = past.outcomes.duration.copy()
        changed[last] = 7e5
        current[0] = History(past.jobs, Outcomes(past.outcomes.start, changed, past.outcomes.finished))
        lied = evaluate_in_time(current[0], ["signature-median"])[0].predictions
        assert true["predicted"].equals(lied["predicted"])

    verify(check, planted)
