"""Bandits find the best configuration with a fifth of the simulations; the A/B test keeps its promise; studies resume."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from gputwin.core.errors import InputError, UserError
from gputwin.optimization.tuning.ab import interval, paired_test
from gputwin.optimization.tuning.bandits import ALGORITHMS, Exp3, History, chosen, pareto, regret, search
from gputwin.optimization.tuning.runs import Study
from gputwin.optimization.tuning.study import tune
from gputwin.optimization.tuning.study_file import read_study
from gputwin.simulation.scenario import Scenario

ARMS, WINDOWS = 30, 10


def losses(seed: int) -> np.ndarray:
    """Return losses of 30 configurations on ten windows: few good ones, windows with levels of their own, noise."""
    rng = np.random.default_rng(1000 + seed)
    arm = 0.6 + 0.5 * rng.beta(2, 2, ARMS)
    return arm[:, None] + 0.2 * rng.random(WINDOWS) + rng.normal(0, 0.05, (ARMS, WINDOWS))


def picks(algorithm: str, budget: int) -> int:
    """Return in how many of ten seeds the choice is that of the full sweep, or within 2 % of it."""
    good = 0
    for seed in range(10):
        table = losses(seed)
        order = np.random.default_rng(seed).permutation(WINDOWS)
        history, pulled = search(
            lambda a, k, table=table, order=order: float(table[a, order[k]]),
            ARMS,
            WINDOWS,
            budget,
            algorithm=algorithm,
            seed=seed,
        )
        assert len(pulled) == history.pulls == budget
        means = table.mean(axis=1)
        good += means[chosen(history)] <= means.min() * 1.02
    return good


@pytest.mark.parametrize("algorithm", ["thompson", "ucb"])
def test_a_bandit_finds_the_best_with_a_fifth_of_the_simulations(algorithm: str) -> None:
    assert picks(algorithm, ARMS * WINDOWS // 5) >= 8


def test_bandits_beat_random_search() -> None:
    budget = ARMS * WINDOWS // 5
    assert picks("thompson", budget) > picks("random", budget)
    assert picks("halving", budget) >= picks("random", budget)


def test_exp3_follows_a_change_that_a_mean_would_miss() -> None:
    rng = np.random.default_rng(0)
    learner = Exp3(3)
    for t in range(4000):
        arm = learner.choose(rng)
        best = 0 if t < 1500 else 2
        learner.update(arm, 0.2 if arm == best else 1.6)
    assert int(np.argmax(learner.probabilities())) == 2


def test_exp3_goes_through_windows_in_time_and_chooses_by_the_late_ones() -> None:
    """Configuration 0 is best on the mean of all windows, configuration 2 since the change at half time."""
    arms, windows, budget = 4, 20, 80
    table = np.ones((arms, windows))
    table[0, :10], table[0, 10:] = 0.3, 1.1
    table[2, :10], table[2, 10:] = 1.4, 0.6
    assert int(np.argmin(table.mean(axis=1))) == 0
    right = 0
    for seed in range(10):
        asked: list[int] = []

        def pull(arm: int, k: int, asked: list[int] = asked) -> float:
            asked.append(k)
            return float(table[arm, k])

        history, pulled = search(pull, arms, windows, budget, algorithm="exp3", seed=seed)
        assert len(pulled) == budget
        assert asked == sorted(asked)
        assert set(asked) == set(range(windows))
        assert all(
            table[a, k] == score
            for a in range(arms)
            for k, score in zip(history.seen[a], history.scores[a], strict=True)
        )
        right += chosen(history) == 2
    assert right >= 9


def test_regret_grows_only_by_what_worse_arms_cost() -> None:
    assert regret([0, 1, 1, 2], np.array([0.5, 0.2, 0.3])).tolist() == pytest.approx([0.3, 0.3, 0.3, 0.4])


def test_the_pareto_front_is_what_nobody_beats() -> None:
    points = np.array([[1.0, 3.0], [2.0, 2.0], [3.0, 1.0], [2.5, 2.5], [1.0, 4.0]])
    assert pareto(points).tolist() == [True, True, True, False, False]


def test_windows_with_levels_of_their_own_do_not_mislead() -> None:
    history = History(2, 2, [[1.0, 3.0], [1.1]])
    mean, _ = history.posterior()
    assert mean[0] < mean[1] + 0.6
    assert chosen(History(2, 3, [[1.0, 3.0, 2.0], [1.2, 3.2, 2.2]])) == 0


def test_the_interval_holds_the_truth_at_every_look() -> None:
    rng = np.random.default_rng(4)
    wrong = 0
    for _ in range(400):
        drawn = rng.normal(0.0, 1.0, 40).tolist()
        wrong += any(not (lambda i: i[0] <= 0 <= i[1])(interval(drawn[:n])) for n in range(4, 41))
    assert wrong / 400 <= 0.05


def test_a_clear_difference_stops_early_and_none_stays_undecided() -> None:
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.05, 60)
    better = paired_test(lambda k: (1.0, 0.6 + noise[k]), 40)
    assert better.verdict == "adopt"
    assert better.pairs < 15
    worse = paired_test(lambda k: (1.0, 1.5 + noise[k]), 40)
    assert worse.verdict == "reject"
    same = paired_test(lambda k: (1.0, 1.0 + noise[k]), 40)
    assert same.verdict == "undecided"
    assert same.pairs == 40


def test_a_wrong_algorithm_is_one_line() -> None:
    with pytest.raises(UserError, match="unknown algorithm"):
        search(lambda a, k: 0.0, 2, 2, 2, algorithm="magic")
    assert set(ALGORITHMS) == {"thompson", "ucb", "halving", "random", "exp3"}


def test_the_headline_never_claims_more_than_a_whole_loss() -> None:
    """With few windows the interval is wide; a loss of 1 can shrink by 100 % at most."""
    from gputwin.report.tuning import headline

    found = tune(read_text(STUDY), seed=1)
    assert found.test.verdict == "adopt"
    assert found.test.low >= -1.0
    text = headline(found)
    assert " less)" in text
    assert "-1" not in text.partition("(95 %")[2]


def test_an_interval_says_less_and_more_where_it_holds_both() -> None:
    """Signs beside "12 % less loss" leave open whether a minus is good."""
    from gputwin.report.tuning import interval_text

    assert interval_text(-0.846, 0.601) == "84.6 % less to 60.1 % more"
    assert interval_text(-0.5, -0.1) == "10.0 % to 50.0 % less"
    assert interval_text(0.1, 0.5) == "10.0 % to 50.0 % more"


def read_text(text: str) -> Study[Scenario]:
    """Return the study that a file with this text describes."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "study.yaml"
        path.write_text(text)
        return read_study(path)


STUDY = """
trace: synthetic:pai2020?jobs=2400
cluster: homogeneous:12x8
windows: 4
held_out: 3
present: {order: fifo, backfill: strict, placement: first-fit}
configurations:
  order: [fifo, sjf]
  backfill: [strict, greedy]
  placement: [first-fit, best-fit]
objectives: {mean_wait: 1, p95_wait: 0.5}
"""


def test_a_study_is_read_tuned_resumed_and_tested_on_windows_it_never_saw(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    study = read_study(path)
    assert len(study.configurations) == 8
    store = tmp_path / "simulations.jsonl"
    first = tune(study, store=store, seed=1)
    assert first.simulations <= study.pulls + study.windows
    lines = store.read_text().splitlines()
    windows = {json.loads(line)["window"] for line in lines}
    assert windows & set(range(4))
    assert windows & {4, 5, 6}
    chosen, present = first.mean_loss(first.chosen), first.mean_loss(study.names.index(study.name_of(study.present)))
    assert chosen is not None
    assert chosen < 1.0
    # What is said of the present configuration is its loss against itself, not what it is drawn towards.
    assert present in (1.0, None)
    with store.open("a") as file:
        file.write('{"half a line')
    again = tune(study, store=store, seed=1)
    assert again.to_json() == first.to_json()
    assert store.read_text().splitlines()[: len(lines)] == lines
    assert len(store.read_text().splitlines()) == len(lines) + 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("trace: 3", "needs a trace"),
        ("trace: x\nbudgets: 3", "unknown field"),
        ("trace: x\nconfigurations: {colour: [red]}", "no configurations"),
        ("trace: x\nconfigurations: {order: [fifo]}\nobjectives: {joy: 1}", "unknown objective"),
        ("trace: x\nconfigurations: {order: [fifo]}\nwindows: none", "no whole number"),
        ("trace: x\nconfigurations: {order: [fifo]}\nalgorithm: magic", "unknown algorithm"),
        ("- [", "not YAML"),
    ],
)
def test_a_broken_study_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_study(path)


def test_a_study_needs_enough_tasks(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="too few for 16 windows"):
        tune(Study(Scenario(trace="synthetic:pai2020?jobs=20", cluster="homogeneous:4x8"), ()))


def test_priorities_and_reserved_shares_can_be_tuned(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(
        "trace: synthetic:pai2020?jobs=100\ncluster: homogeneous:8x8\n"
        "configurations:\n  order: ['priority:aging=0.1', 'priority:aging=1']\n"
        "  fairness: ['quota:share=0.25', 'quota:share=0.5']\n"
    )
    study = read_study(path)
    assert {c.order.parameters["aging"] for c in study.configurations} == {0.1, 1.0}
    assert {c.fairness.policy.parameters["share"] for c in study.configurations if c.fairness} == {0.25, 0.5}
    assert len(set(study.names)) == 4
