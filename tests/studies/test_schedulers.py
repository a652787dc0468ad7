"""Schedulers side by side: figures that follow from runs, and sentences that follow from figures."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from gputwin.cli.main import main
from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.scenario import Scenario
from gputwin.studies.schedulers.contenders import CONTENDERS, FAMILIES, Contender
from gputwin.studies.schedulers.directions import DIRECTIONS, FAILS, HOLDS, NO_DIFFERENCE, Direction, judge
from gputwin.studies.schedulers.measure import FIGURES, Measured
from gputwin.studies.schedulers.settings import Setting, gpu_load, sized_for, synthetic_setting
from gputwin.studies.schedulers.study import compare_schedulers, contenders_named, tables_markdown
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.locate import open_trace
from gputwin.traces.schema import TASKS, conform


def a_trace(*jobs: tuple[float, float, int]) -> Trace:
    """Return jobs of (submit, duration, GPUs)."""
    made = pl.DataFrame(
        {
            "job_id": [f"j{i}" for i in range(len(jobs))],
            "submit_time": [j[0] for j in jobs],
            "duration_seconds": [j[1] for j in jobs],
            "gpu_count": [j[2] for j in jobs],
            "instances": [1] * len(jobs),
            "tenant": [f"t{i % 2}" for i in range(len(jobs))],
        }
    )
    tasks = conform(TASKS, made.lazy()).collect()
    return Trace.from_frames({"tasks": tasks}, TraceMeta("test", "test"))


def a_run(name: str, **figures: float) -> Measured:
    none = np.zeros(1)
    figures = dict.fromkeys(FIGURES, 1.0) | figures
    return Measured(Contender(name, "order"), figures, {}, none, none, none, none, none, np.array(["t"]), 0)


def test_there_are_over_twenty_contenders_of_every_family_and_each_can_run():
    assert len(CONTENDERS) >= 20
    assert {c.family for c in CONTENDERS} == set(FAMILIES)
    assert len({c.name for c in CONTENDERS}) == len(CONTENDERS)
    for contender in CONTENDERS:
        Scenario.model_validate({"trace": "x", **contender.fields}).check()


def test_directions_speak_of_contenders_and_figures_that_exist():
    names = {c.name for c in CONTENDERS}
    for direction in DIRECTIONS:
        assert {direction.one, direction.other} <= names
        assert direction.figure in FIGURES
        assert direction.family in FAMILIES


@pytest.mark.parametrize(
    ("one", "other", "lower", "outcome"),
    [(1.0, 2.0, True, HOLDS), (2.0, 1.0, True, FAILS), (2.0, 1.0, False, HOLDS), (1.0, 1.005, True, NO_DIFFERENCE)],
)
def test_a_direction_is_judged_by_the_figures(one, other, lower, outcome):
    claim = Direction("order", "sjf", "fifo", "mean_wait_hours", lower, "somebody")
    found = judge(claim, {"sjf": a_run("sjf", mean_wait_hours=one), "fifo": a_run("fifo", mean_wait_hours=other)})
    assert found is not None
    assert found.outcome == outcome
    assert outcome in found.sentence
    assert judge(claim, {"fifo": a_run("fifo")}) is None


def test_a_table_worked_by_hand():
    """All jobs need both GPUs: FIFO runs 50, 100, 10 s; under SJF the last overtakes the second."""
    trace = a_trace((0.0, 50.0, 2), (1.0, 100.0, 2), (2.0, 10.0, 2))
    setting = Setting("by hand", trace, Cluster("c", (NodeGroup("n", 1, gpus=2),)), 1.0, ())
    found = compare_schedulers([setting], contenders_named(["fifo", "sjf"]), workers=1)[0]
    fifo, sjf = (run.figures for run in found.runs)
    assert fifo["mean_completion_hours"] * 3600 == pytest.approx((50 + 149 + 158) / 3)
    assert sjf["mean_completion_hours"] * 3600 == pytest.approx((50 + 159 + 58) / 3)
    assert fifo["mean_wait_hours"] * 3600 == pytest.approx((49 + 148) / 3)
    assert fifo["makespan_hours"] * 3600 == sjf["makespan_hours"] * 3600 == pytest.approx(160)
    assert fifo["preemptions"] == fifo["wasted_gpu_hours"] == 0
    by_claim = {(j.direction.one, j.direction.figure): j.outcome for j in found.judgements}
    assert by_claim["sjf", "mean_completion_hours"] == HOLDS
    page = tables_markdown([found])
    assert "| sjf | order |" in page
    assert "**Order.** sjf should have a lower mean completion time than fifo" in page


def test_preemption_shows_its_cost():
    """A long job is stopped once for a short one: 30 s to save and 60 s to load again, on two GPUs."""
    trace = a_trace((0.0, 1000.0, 2), (1.0, 10.0, 2))
    setting = Setting("by hand", trace, Cluster("c", (NodeGroup("n", 1, gpus=2),)), 1.0, ())
    srtf = compare_schedulers([setting], contenders_named(["srtf"]), workers=1)[0].runs[0].figures
    assert srtf["preemptions"] == 1
    assert srtf["wasted_gpu_hours"] == pytest.approx(2 * 90 / 3600)


def test_clusters_are_sized_by_offered_load():
    setting = synthetic_setting("pai2020", 300, seed=0, load=0.8)
    assert setting.load == pytest.approx(0.8, abs=0.02)
    assert "priorities are drawn" in setting.notes[0]
    assert set(setting.trace.tasks["priority"].unique()) == {0, 1, 2}
    assert synthetic_setting("pai2020", 300, seed=0, load=0.8).trace.tasks.equals(setting.trace.tasks)
    trace = open_trace("synthetic:philly?jobs=300")
    double = sized_for(trace, Cluster("c", (NodeGroup("n", 50, gpus=8),)), 0.5)
    assert gpu_load(trace, double) == pytest.approx(0.5, abs=0.03)
    assert replace(setting, notes=()).cluster == setting.cluster


def test_from_the_command_line(capsys, tmp_path):
    page = tmp_path / "page.md"
    asked = ["reproduce", "schedulers", "--jobs", "200", "--policy", "fifo", "--policy", "best-fit", "--workers", "1"]
    assert main([*asked, "--json", "-o", str(page)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [s["setting"] for s in data["settings"]] == ["pai2020", "philly"]
    row = data["settings"][0]["policies"][1]
    assert row["policy"] == "best-fit"
    assert set(FIGURES) <= set(row)
    assert "| best-fit | placement |" in page.read_text()
    assert main(["reproduce", "schedulers", "--policy", "none"]) == 2
    assert "unknown scheduler 'none'; known: fifo" in capsys.readouterr().err


def test_an_unknown_contender_is_named():
    with pytest.raises(UserError, match="unknown scheduler 'x'"):
        contenders_named(["x"])


def test_the_sentence_about_fairness_names_who_loses_and_what_jobs_it_has():
    """Tenant s has one short job that waits 90 s under drf; l has two long ones that gain. Served: 10 / 100 against 1."""
    tenants, duration = np.array(["s", "l", "l"]), np.array([10.0, 100.0, 100.0])

    def run(name: str, jain: float, *completion: float) -> Measured:
        figures = dict.fromkeys(FIGURES, 1.0) | {"jain_fairness": jain}
        times, rule = (np.zeros(3), np.zeros(3), np.array(completion)), Contender(name, "fairness")
        return Measured(rule, figures, {}, *times, duration, duration, tenants, 0)

    claim = Direction("fairness", "drf", "fifo", "jain_fairness", False, "somebody")
    found = judge(claim, {"drf": run("drf", 0.6, 100, 100, 100), "fifo": run("fifo", 0.9, 10, 200, 200)})
    assert found is not None
    assert found.outcome == FAILS
    assert (
        "Of 2 tenants 1 are served for a larger part of their time in the system under drf, 1 for a smaller one"
        in found.sentence
    )
    assert (
        "over its jobs s loses most (100 % to 10 %), which has 33 % of the jobs, with 0.1 times the median"
        in found.sentence
    )
    assert "Waiting is 30 % under drf and 49 % under fifo of the time in the system" in found.sentence


def test_a_convoy_worked_by_hand():
    """Two GPUs. The gang of two, submitted at 1, is the head until 10; jobs of 2 and 4 wait behind it for 8 and 6 s.
    Then they wait for room until 15, the second behind the first."""
    trace = a_trace((0.0, 10.0, 1), (1.0, 5.0, 2), (2.0, 1.0, 1), (4.0, 1.0, 1))
    setting = Setting("by hand", trace, Cluster("c", (NodeGroup("n", 1, gpus=2),)), 1.0, ())
    [found] = compare_schedulers([setting], contenders_named(["fifo", "strict"]))
    seen = found.convoys
    assert seen is not None
    # The gang: 8 + 6 s behind it. Then the job of 2 s is the head from 10 to 15, the other waits behind it for 5 s.
    assert seen.behind_hours * 3600 == pytest.approx(8 + 6 + 5)
    assert seen.head_hours * 3600 == pytest.approx(9 + 5)
    assert (seen.longest, seen.longest_gpus, seen.longest_hours * 3600) == (2, 2.0, pytest.approx(9.0))
    assert seen.behind_share == pytest.approx((5 / 19, 14 / 19, 0.0))
    assert {name: hours * 3600 for name, hours in seen.small_wait_hours.items()} == pytest.approx(
        {"strict": (0 + 13 + 11) / 3, "fifo": 0.0}
    )
    assert "74 %" in seen.sentence()


def test_waiting_of_heads_and_behind_them_is_all_waiting():
    setting = synthetic_setting("philly", 400, 1)
    [found] = compare_schedulers([setting], contenders_named(["strict"]))
    assert found.convoys is not None
    waits = float(np.nansum(found.runs[0].start - found.runs[0].submit)) / 3600
    assert waits > 0
    assert found.convoys.behind_hours + found.convoys.head_hours == pytest.approx(waits)


def runs_of(claim: Direction, one: tuple[float, ...], other: tuple[float, ...], **figures: tuple[float, float]) -> str:
    """Return the sentence about two runs of three jobs of 0 s on 1, 1 and 8 GPUs that complete after so many hours."""
    made = {}
    for k, (name, hours) in enumerate(((claim.one, one), (claim.other, other))):
        of_run = dict.fromkeys(FIGURES, 1.0) | {figure: pair[k] for figure, pair in figures.items()}
        times = np.zeros(3), np.zeros(3), 3600.0 * np.array(hours), np.zeros(3), np.array([1.0, 1.0, 8.0])
        made[name] = Measured(Contender(name, claim.family), of_run, {}, *times, np.array(["t"] * 3), 0)
    found = judge(claim, made)
    assert found is not None
    return found.sentence


def test_the_sentence_about_a_tail_says_how_many_wait_long_and_the_longest_wait():
    claim = Direction("order", "sjf", "fifo", "p99_wait_hours", False, "somebody")
    said = runs_of(claim, (0, 0.5, 30), (2, 3, 20), p99_wait_hours=(10, 20))
    assert "33.3 % of the jobs wait more than an hour under sjf and 100.0 % under fifo" in said
    assert "the longest wait is 30.0 h and 20.0 h" in said


def test_the_sentence_about_a_placement_says_what_small_and_large_jobs_wait():
    claim = Direction("placement", "best-fit", "worst-fit", "mean_wait_hours", True, "somebody")
    said = runs_of(claim, (4, 6, 1), (1, 1, 9), mean_wait_hours=(4, 2))
    assert "Jobs of at most one GPU, 67 % of all, wait 5.00 h under best-fit and 1.00 h under worst-fit" in said
    assert "larger ones 1.00 h and 9.00 h" in said


def test_the_sentence_about_lost_gpu_time_says_what_one_preemption_costs():
    claim = Direction("preemption", "round-robin", "las", "wasted_gpu_hours", False, "somebody")
    said = runs_of(claim, (1, 1, 1), (1, 1, 1), wasted_gpu_hours=(50, 80), preemptions=(100, 40))
    assert "100 preemptions, 0.50 GPU-hours each under round-robin and 40 preemptions, 2.00 GPU-hours each" in said


def test_where_there_is_no_difference_the_sentence_says_for_how_many_jobs_there_is_one():
    claim = Direction("order", "gpu-time", "sjf", "mean_completion_hours", True, "somebody")
    said = runs_of(claim, (1, 2, 3), (1, 2.5, 2.5), mean_completion_hours=(2.0, 2.01))
    assert "no difference, 2.00 against 2.01 (-0.5 %). 1 of 3 jobs end earlier under gpu-time and 1 later" in said
    assert "67 % ask for at most one GPU" in said
