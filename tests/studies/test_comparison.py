"""Scenarios side by side: paired differences, intervals, and a verdict whose numbers stand in the tables."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.stats import t

from gputwin.cli.main import main
from gputwin.core.errors import UserError
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.scenario import Scenario, scenario_of
from gputwin.simulation.simulate import simulate
from gputwin.studies.comparison import ScenarioRun, compare, label_runs, rules_in_words, run_scenarios
from gputwin.studies.comparison.compare import DURATIONS, KEYS, METRICS
from gputwin.studies.comparison.tenants import tenant_changes, waits_by_tenant
from gputwin.studies.comparison.verdict import recommendation
from gputwin.traces.locate import open_trace

NAMES = [f"synthetic:philly?jobs=400&seed={seed}" for seed in range(3)]
CLUSTER = "homogeneous:4x8"
BASE = Scenario(trace=NAMES[0], cluster=CLUSTER, backfill="strict")
VARIANTS = {"FIFO": {}, "SJF": {"order": "sjf"}, "greedy": {"backfill": "greedy"}}


@pytest.fixture(scope="module")
def compared():
    with ThreadPoolExecutor(1) as executor:
        return compare(run_scenarios(BASE, VARIANTS, traces=NAMES, executor=executor))


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
    text = recommendation(compared)
    if compared.difference(best, "mean wait")["high"] < 0:
        assert text.startswith(f"Choose {best}: ")
    else:
        assert text.startswith(f"No set of rules is proven better than {compared.baseline}: ")
        assert f" under {best}, " in text
    # It is shorter, so it is never said to be longer, nor by a sign.
    assert " shorter (95 %: " in text
    assert "−" not in text


def test_saved_runs_are_named_by_what_they_differ_in(compared):
    first = [run.result for run in compared.runs if run.replicate == "0"]
    assert [run.label for run in label_runs(first)] == ["fifo, strict", "sjf, strict", "fifo, greedy"]
    assert len({run.replicate for run in label_runs(first)}) == 1


def test_quotas_are_named_in_words_and_said_per_tenant():
    free = simulate(BASE.with_(backfill="greedy"))
    top = free.jobs["tenant"].value_counts(sort=True)["tenant"][0]
    limited = simulate(BASE.with_(backfill="greedy", fairness={"policy": "quota", "tenants": {top: {"gpus": 8}}}))
    found = compare(label_runs([free, limited]))
    assert found.labels == ("no fairness rule", f"quota ({top} 8 GPUs)")
    waits = {r["tenant"]: r for r in waits_by_tenant(found).to_dicts()}
    for label, run in zip(found.labels, (free, limited), strict=True):
        own = run.jobs.filter(tenant=top)["wait_seconds"]
        assert waits[top][label] == pytest.approx(own.mean())
    (said,) = tenant_changes(found)
    assert said.startswith(f"quota ({top} 8 GPUs): ")


def test_runs_that_differ_only_in_predictions_are_two_scenarios():
    trace = open_trace(NAMES[0])
    tasks = trace.tasks.select("job_id", "role", pl.col("duration_seconds").fill_null(1.0).alias("predicted_seconds"))
    worse = tasks.with_columns(pl.col("predicted_seconds").reverse())
    runs = [
        simulate(trace, CLUSTER, order="sjf", predict=predict, prediction=name)
        for predict, name in (("oracle", "oracle"), (tasks, "models/a"), (worse, "models/b"))
    ]
    assert [run.label for run in label_runs(runs)] == ["oracle", "models/a", "models/b"]
    assert compare(label_runs(runs)).labels == ("oracle", "models/a", "models/b")
    # The same name for other predictions, as after training again.
    again = simulate(trace, CLUSTER, order="sjf", predict=worse, prediction="models/a")
    labels = [run.label for run in label_runs([runs[1], again])]
    assert len(set(labels)) == 2
    assert all(label.startswith("predictions ") for label in labels)


def test_the_same_run_twice_is_refused(compared):
    run = compared.runs[0].result
    with pytest.raises(UserError, match="run twice"):
        compare(label_runs([run, run]))


def test_a_run_of_another_trace_is_refused(tmp_path, capsys):
    trace = open_trace(NAMES[0])
    simulate(trace, CLUSTER).save(tmp_path / "own")
    simulate(NAMES[1], CLUSTER).save(tmp_path / "foreign")
    trace.save(tmp_path / "trace")
    made = ["report", str(tmp_path / "trace"), "-o", str(tmp_path / "report.html"), "--run", str(tmp_path / "own")]
    assert main(made) == 0
    (tmp_path / "report.html").unlink()
    capsys.readouterr()
    assert main([*made, "--run", str(tmp_path / "foreign")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "foreign: a run of another trace" in said
    assert not (tmp_path / "report.html").exists()


def test_runs_that_cannot_be_paired_are_refused(compared):
    with pytest.raises(UserError, match="'SJF' was not run with the trace and seed 0 of 'FIFO'"):
        compare([run for run in compared.runs if (run.label, run.replicate) != ("SJF", "1")])


@pytest.mark.parametrize("field", ["order", "placement", "faults", "checkpoints", "load_scale", "slice", "cluster"])
def test_two_runs_that_differ_in_any_field_are_told_apart_by_it(field):
    changed = {
        "order": "sjf",
        "placement": "best-fit",
        "faults": {"mtbf_seconds": 3e5},
        "checkpoints": {"restart_seconds": 5},
        "load_scale": 1.25,
        "slice": {"end_time": 1e6},
        "cluster": {"groups": [{"count": 4, "gpus": 8, "cpu_milli": 96_000}]},
    }
    runs = [simulate(BASE), simulate(BASE.with_(**{field: changed[field]}))]
    labels = [run.label for run in label_runs(runs)]
    assert len(set(labels)) == 2
    assert compare(label_runs(runs)).labels == tuple(labels)
    # The words name the field, or are its value where that speaks for itself.
    assert field in labels[1] or str(changed[field]) in labels[1]


def test_runs_on_other_nodes_of_one_name_are_told_apart(tmp_path):
    spec = tmp_path / "site.yaml"
    runs = []
    for count in (4, 5):
        spec.write_text(f"groups: [{{count: {count}, gpus: 8}}]")
        runs.append(simulate(BASE.with_(cluster=str(spec))))
    assert [run.label for run in label_runs(runs)] == ["nodes 4 with 32 GPUs", "nodes 5 with 40 GPUs"]


def test_a_run_of_a_comparison_has_the_scenario_that_reproduces_it(compared, tmp_path):
    for run in compared.runs[3:6]:
        folder = run.result.save(tmp_path / run.label)
        assert (
            main(["simulate", str(folder / "scenario.yaml"), "-o", str(tmp_path / "again"), "--quiet", "--json"]) == 0
        )
        again = SimulationResult.open(tmp_path / "again")
        assert again.manifest == run.result.manifest
        for name in ("jobs", "segments", "placements", "series"):
            assert (tmp_path / "again" / f"{name}.parquet").read_bytes() == (folder / f"{name}.parquet").read_bytes()


def test_results_do_not_depend_on_the_executor(compared):
    for options in ({"workers": 1}, {"workers": 2}):
        for one, other in zip(run_scenarios(BASE, VARIANTS, traces=NAMES, **options), compared.runs, strict=True):
            assert (one.label, one.replicate) == (other.label, other.replicate)
            assert one.result.jobs.equals(other.result.jobs)
            assert one.result.series.equals(other.result.series)
            assert one.result.placements.equals(other.result.placements)
            assert (one.result.summary, one.result.manifest) == (other.result.summary, other.result.manifest)


def test_a_recommendation_tells_of_stops_as_a_price():
    base = Scenario(trace=NAMES[0], cluster=CLUSTER, backfill="greedy")
    with ThreadPoolExecutor(1) as executor:
        found = compare(run_scenarios(base, {"FIFO": {}, "SRTF": {"order": "srtf"}}, executor=executor))
    stops = found.means().filter(scenario="SRTF")["stops"].item()
    assert stops > 0
    assert recommendation(found).startswith("Choose SRTF")
    assert f"jobs are stopped {stops:,.0f} times, against 0" in recommendation(found)


def scenarios_with(**figures: tuple[float, float, float]) -> SimpleNamespace:
    """Return what a verdict asks of a comparison: mean wait, p99 wait and stops by label, all differences sure."""
    rows = [
        {
            "scenario": n,
            "mean wait": w,
            "p99 wait": p,
            "stops": s,
            "makespan": 1.0,
            "fairness": 1.0,
            "cost": 1.0,
            "energy": 1.0,
        }
        for n, (w, p, s) in figures.items()
    ]
    base = rows[0]["mean wait"]

    def difference(label: str, metric: str) -> dict[str, float]:
        gap = next(r for r in rows if r["scenario"] == label)[metric] - base
        return {"scenario": label, "baseline": base, "difference": gap, "low": gap - 1e-6, "high": gap + 1e-6}

    names = tuple(figures)
    return SimpleNamespace(
        means=lambda: pl.DataFrame(rows),
        difference=difference,
        labels=names,
        baseline=names[0],
        not_run=dict.fromkeys(names, 0),
    )


def test_of_rules_that_do_about_as_well_the_one_without_stops_is_chosen():
    found = scenarios_with(FIFO=(900.0, 8000.0, 0), backfill=(5.3, 3.0, 0), SJF=(4.5, 0.0, 0), LAS=(2.4, 0.0, 200))
    text = recommendation(found)
    assert text.startswith("Choose backfill: the mean wait is 5.3 s, against 15 min 00 s under FIFO")
    assert "LAS has the shortest mean wait, 2.4 s, but stops jobs 200 times." in text


def test_a_gain_too_small_to_change_anything_for_is_not_advised():
    found = scenarios_with(FIFO=(100.0, 100.0, 0), SJF=(99.0, 100.0, 0))
    assert recommendation(found) == (
        "Stay with FIFO: its mean wait, 1 min 40 s, is within 2 % of the shortest, 1 min 39 s under SJF."
    )


def test_waits_are_compared_over_the_jobs_that_run_under_all_scenarios():
    """On nodes of one GPU the jobs that ask for more never run, so the others wait less, which is no reason to buy them."""
    variants = {"eights": {}, "ones": {"cluster": "homogeneous:32x1"}, "sjf": {"order": "sjf"}}
    base = BASE.with_(backfill="greedy")
    with ThreadPoolExecutor(1) as executor:
        found = compare(run_scenarios(base, variants, executor=executor))
    ones = next(run for run in found.runs if run.label == "ones")
    never = ones.result.summary["outcomes"]["never_fits"]
    assert found.not_run == {"eights": 0, "ones": never, "sjf": 0}
    assert never > 0
    ran = ones.result.jobs.filter(pl.col("outcome") == "finished")
    for run in found.runs:
        waits = run.result.jobs.join(ran, on="job_id", how="semi")["wait_seconds"]
        assert found.means().filter(scenario=run.label)["mean wait"].item() == pytest.approx(waits.mean())
    for label, metric in ((label, metric) for label in ("ones", "sjf") for metric in ("mean wait", "mean JCT")):
        gap = found.difference(label, metric)
        assert gap["low"] <= gap["difference"] <= gap["high"]
    summed = dict(found.causes().group_by("scenario").agg(pl.col("seconds").sum()).iter_rows())
    assert summed["eights"] == pytest.approx(found.means()["mean wait"][0])
    assert waits_by_tenant(found)["jobs"].sum() == ran.height
    assert "Choose ones" not in recommendation(found)
    assert f"Jobs that never run: {never:,} under ones." in recommendation(found)
    alone = compare([run for run in found.runs if run.label != "sjf"])
    assert recommendation(alone).startswith("Stay with eights: under no other scenario as many jobs run. ")
    other_way = compare([run for label in ("ones", "eights") for run in found.runs if run.label == label])
    assert recommendation(other_way).startswith("Choose eights: more jobs run than under ones. ")


def test_runs_of_different_parts_of_a_trace_or_seeds_are_not_compared():
    whole = simulate(BASE)
    half = {"end_time": float(whole.jobs["submit_time"].median())}
    runs = [whole, simulate(BASE.with_(slice=half)), simulate(BASE.with_(order="sjf", seed=3))]
    with pytest.raises(UserError, match="different parts of the trace"):
        label_runs(runs[:2])
    with pytest.raises(UserError, match="'fifo' was not run with the trace and seed 3 of 'sjf'"):
        compare(label_runs([runs[0], runs[2]]))


def test_jobs_that_start_sooner_and_end_later_are_a_price():
    """As in time slices: nobody waits, everybody is slowed."""
    found = scenarios_with(whole=(900.0, 8000.0, 0), slices=(0.0, 0.0, 0))
    means = found.means().with_columns(pl.Series("mean JCT", [3600.0, 5400.0]))
    found.means = lambda: means
    assert "The price: the mean completion time rises from 1 h 00 min to 1 h 30 min." in recommendation(found)


def test_a_long_tail_is_not_about_as_good():
    found = scenarios_with(FIFO=(900.0, 8000.0, 0), backfill=(5.3, 900.0, 0), LAS=(2.4, 0.0, 200))
    assert recommendation(found).startswith("Choose LAS: ")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, ""),
        ({"fairness": {"policy": "quota", "tenants": {"llm": {"gpus": 24}}}}, ", quota (llm 24 GPUs)"),
        ({"fairness": "drf"}, ", drf"),
        ({"preemption": "benefit", "checkpoints": {"save_seconds": 20}}, ", benefit, checkpoints (save 20 s)"),
        ({"load_scale": 1.5}, ", load_scale 1.5"),
        ({"planner": "max-min"}, ", planner max-min"),
        ({"planner": {"policy": "max-min", "round_seconds": 60}}, ", planner max-min (round 1 min)"),
        ({"faults": {"mtbf_seconds": 2_592_000}}, ", faults (mtbf 30 d)"),
        ({"speed": {"by_model": {"T4": 0.4}}}, ", speed (by model T4 0.4)"),
        ({"power": {"node_watts": 3000}}, ", power (node 3000 W)"),
    ],
)
def test_rules_in_words_name_all_that_a_scenario_sets(more: dict[str, object], said: str) -> None:
    scenario = scenario_of({"trace": "t", "cluster": "homogeneous:2x8", "order": "sjf", "backfill": "greedy", **more})
    assert rules_in_words(scenario) == f"order sjf, backfill greedy, placement first-fit{said}"


def test_a_run_without_a_planner_is_called_so():
    """Its fields, which the run does not have, are not."""
    planned = [simulate(BASE.with_(planner={"policy": "max-min", "round_seconds": s})) for s in (360, 600)]
    labels = [run.label for run in label_runs([simulate(BASE), *planned])]
    assert labels == ["no planner", "planner max-min", "planner max-min (round 10 min)"]
    assert [run.label for run in label_runs(planned)] == ["planner (round 6 min)", "planner (round 10 min)"]
    failing = simulate(BASE.with_(faults={"mtbf_seconds": 2_592_000}))
    labels = [run.label for run in label_runs([simulate(BASE), failing, planned[0]])]
    assert labels == ["no planner or faults", "faults (mtbf 30 d)", "planner max-min"]


def test_labels_name_two_tenants_and_count_the_others_unless_runs_differ_in_those() -> None:
    free = simulate(BASE.with_(backfill="greedy"))
    users = free.jobs["tenant"].unique().sort().to_list()[:4]

    def limited(*gpus: float) -> SimulationResult:
        terms = {user: {"gpus": g} for user, g in zip(users, gpus, strict=True)}
        return simulate(BASE.with_(backfill="greedy", fairness={"policy": "quota", "tenants": terms}))

    one, other = limited(8, 8, 8, 8), limited(8, 8, 8, 6)
    named = f"quota ({users[0]} 8 GPUs, {users[1]} 8 GPUs, 2 more)"
    assert [run.label for run in label_runs([free, one])] == ["no fairness rule", named]
    assert len({run.label for run in label_runs([free, one, other])}) == 3


def test_keys_in_json_are_snake_case_with_units() -> None:
    for name in METRICS:
        key = KEYS.get(name, name)
        assert key == key.lower().replace(" ", "_")
        assert key.endswith("_seconds") == (name in DURATIONS)
