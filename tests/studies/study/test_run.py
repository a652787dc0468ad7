"""Running a study: only what is missing is run, targets are met or not, and the conclusion follows the figures."""

from __future__ import annotations

import json

import polars as pl
import pytest
import yaml

from gputwin.cli.main import main
from gputwin.core.errors import UserError
from gputwin.simulation.result import SimulationResult
from gputwin.studies.comparison.by_job import by_job
from gputwin.studies.store import RunStore
from gputwin.studies.study import run_study, study_of
from gputwin.studies.study.executors import open_executor
from gputwin.studies.study.tasks import StoreReference, execute
from gputwin.studies.study.verdict import front_of, verdict_of

GROUPS = [{"name": "a", "count": 4, "gpus": 8, "price_per_hour": 10.0}]
DATA = {
    "name": "orders",
    "trace": "synthetic:pai2020?jobs=150",
    "cluster": {"name": "small", "groups": GROUPS},
    "scenario": {"backfill": "greedy"},
    "grid": {"order": ["fifo", "sjf"], "cluster.groups.0.count": [4, 8]},
    "seeds": 2,
}


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> RunStore:
    return RunStore(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def outcome(store):
    return run_study(study_of(DATA), store, workers=1)


def test_each_scenario_runs_on_each_seed_and_the_same_jobs(outcome, store):
    assert outcome.made == len(outcome.planned.keys) == 8
    assert outcome.compared.baseline == "fifo / cluster.groups.0.count 4"
    assert outcome.compared.replicates == 2
    fingerprints = {task.trace.fingerprint for task in outcome.planned.tasks.values()}
    assert len(fingerprints) == 2
    figures = outcome.compared.figures
    # Seeds are other jobs, so figures differ between them.
    assert figures.group_by("scenario").agg(pl.col("mean JCT").n_unique())["mean JCT"].to_list() == [2] * 4
    for run in store.list():
        scenario = run.scenario
        assert scenario.trace == f"synthetic:pai2020?jobs=150&seed={scenario.seed}"


def test_a_study_that_is_run_again_or_grows_runs_only_what_is_missing(outcome, store):
    assert run_study(study_of(DATA), store, workers=1).made == 0
    grown = {**DATA, "name": "more", "grid": {**DATA["grid"], "order": ["fifo", "sjf", "ljf"]}}
    with pytest.raises(UserError, match="unknown order 'ljf'"):
        run_study(study_of(grown), store, workers=1)
    grown["grid"]["order"][2] = "gpu-time"
    told = []
    again = run_study(study_of(grown), store, workers=1, watch=lambda state: told.append((state.done, state.total)))
    assert again.made == 4
    assert told[-1] == (12, 12)
    assert len(store.of_study("orders")) == 8
    assert len(store.of_study("more")) == 12


def test_the_cost_is_the_price_of_all_nodes_until_the_last_job_ends(outcome):
    for row in outcome.compared.figures.to_dicts():
        nodes = int(row["scenario"].split()[-1])
        assert row["cost"] == pytest.approx(nodes * 10.0 * row["makespan"] / 3600)


def test_the_pareto_front_has_what_nothing_beats_in_every_objective(outcome):
    front, objectives = front_of(outcome.compared)
    assert {"mean wait", "cost"} <= set(objectives)
    rows = {row["scenario"]: row for row in outcome.compared.means().to_dicts()}

    def beats(a, b):
        signed = [[r[m] if m != "fairness" else -r[m] for m in objectives] for r in (rows[a], rows[b])]
        pairs = list(zip(*signed, strict=True))
        return all(x <= y for x, y in pairs) and any(x < y for x, y in pairs)

    for label in rows:
        assert (label in front) == (not any(beats(other, label) for other in rows))


def test_a_target_is_met_by_the_cheapest_scenario_that_meets_it(outcome):
    means = {row["scenario"]: row for row in outcome.compared.means().to_dicts()}
    limit = max(means[label]["mean wait"] for label in means if label.endswith("8"))
    assert all(means[label]["mean wait"] > limit for label in means if label.endswith("4"))
    verdict = verdict_of(outcome.compared, {"mean wait": limit})
    assert set(verdict.meets) == {label for label in means if label.endswith("8")}
    assert means[verdict.choice]["cost"] == min(means[label]["cost"] for label in verdict.meets)
    assert verdict.text.startswith(f"Choose {verdict.choice}: its mean wait is ")
    none = verdict_of(outcome.compared, {"mean wait": 0.0, "fairness": 0.9})
    assert none.choice is None
    assert none.text.startswith("No scenario meets the target: mean wait at most 0 s and fairness at least 0.9.")


def test_jobs_are_compared_with_themselves(outcome):
    found = by_job(outcome.compared)
    assert found["scenario"].to_list() == list(outcome.compared.labels[1:])
    for row in found.to_dicts():
        gaps = []
        for seed in ("seed 0", "seed 1"):
            runs = {r.label: r.result.jobs for r in outcome.compared.runs if r.replicate == seed}
            both = runs[outcome.compared.baseline].join(runs[row["scenario"]], on="job_id", suffix="_other")
            gaps.append((both["wait_seconds_other"] - both["wait_seconds"]).drop_nulls())
        gap = pl.concat(gaps)
        assert row["jobs"] == gap.len()
        assert row["difference"] == pytest.approx(gap.mean())
        assert row["shorter"] == pytest.approx((gap < -1).mean())
        assert row["low"] <= row["difference"] <= row["high"]


def test_a_worker_that_does_not_see_the_store_gives_the_result_back(outcome, store, tmp_path):
    from dataclasses import replace

    task = next(iter(outcome.planned.tasks.values()))
    elsewhere = [StoreReference(str(tmp_path / "none"), "x"), StoreReference(task.store.folder, "another")]
    for reference in elsewhere:
        done = execute(replace(task, store=reference))
        assert isinstance(done.result, SimulationResult)
        assert done.result.summary == store.open(task.key).summary
    assert execute(task).result is None
    with pytest.raises(UserError, match="another version of gputwin"):
        execute(replace(task, engine="older"))
    with pytest.raises(UserError, match="give all the same trace"):
        execute(replace(task, store=elsewhere[0], trace=replace(task.trace, fingerprint="0" * 64)))


@pytest.mark.parametrize("name", ["threads", "dask://", "dask://host", "dask://ho st:1", "tcp://a:1"])
def test_an_unknown_executor_is_one_line(name):
    with pytest.raises(UserError, match="unknown executor"), open_executor(name):
        pass


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(UserError, match=r"gputwin\[cluster\]"), open_executor("dask://127.0.0.1:1"):
        pass


def test_the_command_writes_a_report_with_the_answer_first_and_the_tables_as_data(tmp_path, store, outcome, capsys):
    file = tmp_path / "orders.yaml"
    file.write_text(
        yaml.safe_dump({**DATA, "targets": {"mean_wait": "10h"}, "analyses": ["workload"], "forecast": {"bin": "1d"}})
    )
    assert main(["study", str(file), "-o", str(store.folder), "--workers", "1", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["made"] == 0
    assert len(data["scenarios"]) == 4
    assert len(data["differences"]) > 3 * 8
    assert {row["key"] for row in data["runs"]} == set(outcome.planned.keys)
    page = (store.folder / "studies" / "orders" / "report.html").read_text(encoding="utf-8")
    answer = page.index(data["recommendation"][:30])
    assert answer < page.index("Job by job against") < page.rindex("Manifest")
    for text in ("meets targets", "Pareto front", "No forecast: ", "Workload"):
        assert text in page
    stored = json.loads((store.folder / "studies" / "orders" / "comparison.json").read_text())
    assert stored["scenarios"] == data["scenarios"]
    assert main(["runs", "compare", "--study", "orders", "--runs", str(store.folder), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert [row["mean_wait_seconds"] for row in again["scenarios"]] == [
        row["mean_wait_seconds"] for row in data["scenarios"]
    ]


def test_the_command_tells_mistakes_in_one_line(tmp_path, capsys):
    file = tmp_path / "bad.yaml"
    file.write_text("trace: synthetic:pai2020\ngrid: {ordr: [fifo]}\n")
    assert main(["study", str(file), "-o", str(tmp_path / "runs")]) == 2
    err = capsys.readouterr().err
    assert f"{file}, field 'grid.ordr': a scenario has no such field" in err
    assert err.count("\n") == 1
    assert main(["study"]) == 2
    assert main(["study", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["grid"]
