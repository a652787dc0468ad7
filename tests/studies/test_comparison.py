"""Scenarios side by side: paired differences, intervals, and a verdict whose numbers stand in the tables."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest
from scipy.stats import t

from gputwin.core.errors import UserError
from gputwin.studies.comparison import Scenario, ScenarioRun, compare, label_runs, run_scenarios
from gputwin.studies.comparison.verdict import recommendation

NAMES = [f"synthetic:philly?jobs=400&seed={seed}" for seed in range(3)]
CLUSTER = "homogeneous:4x8"
SCENARIOS = (Scenario("FIFO"), Scenario("SJF", order="sjf"), Scenario("greedy", backfill="greedy"))


@pytest.fixture(scope="module")
def compared():
    with ThreadPoolExecutor(1) as executor:
        return compare(run_scenarios(NAMES, CLUSTER, SCENARIOS, executor=executor))


def test_every_scenario_is_run_on_every_replicate(compared):
    assert compared.labels == ("FIFO", "SJF", "greedy")
    assert compared.replicates == 3
    assert compared.figures.height == 9
    # The same jobs for all scenarios of a replicate, others in another replicate.
    jobs = {(run.label, run.replicate): run.result.jobs["duration_seconds"].to_list() for run in compared.runs}
    assert jobs["FIFO", "0"] == jobs["SJF", "0"] == jobs["greedy", "0"] != jobs["FIFO", "1"]


def test_an_interval_is_students_of_the_paired_differences(compared):
    waits = compared.figures.pivot("scenario", index="replicate", values="mean wait")
    gaps = (waits["SJF"] - waits["FIFO"]).to_numpy()
    found = compared.difference("SJF", "mean wait")
    half = t.ppf(0.975, 2) * gaps.std(ddof=1) / np.sqrt(3)
    assert found["difference"] == pytest.approx(gaps.mean())
    assert (found["low"], found["high"]) == pytest.approx((gaps.mean() - half, gaps.mean() + half))


def test_one_replicate_is_resampled_over_time(compared):
    alone = compare([run for run in compared.runs if run.replicate == "0"])
    found = alone.difference("greedy", "mean wait")
    assert found["low"] < found["difference"] < found["high"]
    # Nothing can be said of a quantile by averaging jobs.
    assert alone.difference("greedy", "p95 wait")["low"] is None


def test_a_scenario_against_itself_differs_by_nothing(compared):
    run = compared.runs[0]
    found = compare([run, ScenarioRun("again", run.replicate, run.result)]).difference("again", "mean wait")
    assert (found["difference"], found["low"], found["high"]) == (0, 0, 0)


def test_causes_add_up_to_the_mean_wait(compared):
    summed = dict(compared.causes().group_by("scenario").agg(pl.col("seconds").sum()).iter_rows())
    for row in compared.means().to_dicts():
        assert summed[row["scenario"]] == pytest.approx(row["mean wait"])


def test_the_recommended_scenario_has_the_shortest_mean_wait(compared):
    best = compared.means().sort("mean wait")["scenario"][0]
    assert recommendation(compared).startswith(f"Choose {best}:")


def test_saved_runs_are_named_by_what_they_differ_in(compared):
    first = [run.result for run in compared.runs if run.replicate == "0"]
    assert [run.label for run in label_runs(first)] == ["fifo, strict", "sjf, strict", "fifo, greedy"]
    assert len({run.replicate for run in label_runs(first)}) == 1


def test_runs_that_cannot_be_paired_are_refused(compared):
    with pytest.raises(UserError, match="'SJF' on replicate 1 is missing"):
        compare([run for run in compared.runs if (run.label, run.replicate) != ("SJF", "1")])
