"""A scenario describes a run: it is refused in one line with the exact path, and a saved run's own reproduces it."""

from __future__ import annotations

import json

import pytest
import yaml

from gputwin.cli.main import main
from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.policy import ORDERINGS
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.scenario import Scenario, fields_apart, read_scenario, scenario_of, scenario_schema
from gputwin.simulation.simulate import simulate

TRACE = {"trace": "synthetic:philly?jobs=60", "cluster": "homogeneous:2x8"}


@pytest.mark.parametrize(
    ("fields", "path", "words"),
    [
        ({"colour": "red"}, "colour", "not permitted"),
        ({"faults": {"mtbf_seconds": 0}}, "faults.mtbf_seconds", "give more than 0"),
        ({"faults": {"maintenance": [{"node": -1, "down_time": 3}]}}, "faults.maintenance.0.node", "give 0 or more"),
        ({"elasticity": {"least_share": 0.5}}, "elasticity.scaling_exponent", "it is needed"),
        ({"checkpoints": {"interval": 5}}, "checkpoints.interval", "not permitted"),
        ({"order": "priority:aging=x"}, "order", "write parameters as"),
        ({"sharing": "some"}, "sharing", "fraction"),
        ({"resolution_seconds": float("nan")}, "resolution_seconds", "give"),
        ({"seed": 1.5}, "seed", "integer"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(fields, path, words):
    with pytest.raises(UserError) as caught:
        scenario_of({**TRACE, **fields})
    assert path in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "path", "words"),
    [
        ("colour: red", "field 'colour'", "known: trace, "),
        ("faults: {mtbf_seconds: 0}", "field 'faults.mtbf_seconds'", "give more than 0"),
        ("faults: {mtbf: 5}", "field 'faults.mtbf'", "not permitted"),
        ("elasticity: {least_share: 0.5}", "field 'elasticity.scaling_exponent'", "it is needed"),
        ("elasticity: {scaling_exponent: 0.8}", "field 'elasticity'", "none can be resized"),
        ("{trace: 'synthetic:philly?jobs=30', elasticity: afs}", "field 'elasticity.curves'", "no scaling curve"),
        (
            "{order: srtf, backfill: greedy, checkpoints: {on_preemption: false}}",
            "field 'checkpoints'",
            "keep their work",
        ),
        ("order: 'las:queues=2.5'", "las:queues=2.5", "give a whole number"),
        ("order: sjff", "unknown order 'sjff'", "did you mean"),
        ("speed: {policy: 'spread:nodes=0'}", "spread:nodes=0", "or more"),
        ("cluster: {groups: [{cout: 3}]}", "field 'cluster'", "groups.0.cout: unknown field"),
        ("cluster: {groups: [{count: 0}]}", "field 'cluster'", "count must be between"),
        ("load_scale: 0", "field 'load_scale'", "give more than 0"),
        ("slice: {start: 3}", "field 'slice.start'", "not permitted"),
        ("policies: [nowhere.py]", "nowhere.py", "no such file"),
        ("trace_fingerprint: 0123456789abcdef", "0123456789ab", "the trace has changed"),
    ],
)
def test_the_command_refuses_in_one_line_with_the_path_and_exit_code_2(fields, path, words, tmp_path, capsys):
    data = {"trace": "synthetic:openb2023?jobs=30", "cluster": "homogeneous:4x8", **yaml.safe_load(fields)}
    file = tmp_path / "scenario.yaml"
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    assert main(["simulate", str(file), "--json", "--quiet"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert path in said.err
    assert words in said.err
    if path.startswith("field") and "none can be resized" not in words and "no scaling curve" not in words:
        assert f"{file}, {path}" in said.err


def test_a_change_of_a_field_is_checked_and_leaves_the_scenario_as_it_is():
    base = Scenario(**TRACE)
    changed = base.with_(order="las:first=60", faults={"mtbf_seconds": 5})
    assert (str(changed.order), changed.faults.mtbf_seconds, base.faults) == ("las:first=60", 5, None)
    assert changed.with_(order="fifo", faults=None) == base
    with pytest.raises(UserError, match=r"faults\.mtbf_seconds"):
        base.with_(faults={"mtbf_seconds": 0})
    with pytest.raises(UserError, match="colour"):
        base.with_(colour="red")


def test_numbers_are_written_so_that_they_read_back_the_same(tmp_path):
    scenario = Scenario(**TRACE, order="priority:aging=0.0012345678901")
    file = tmp_path / "scenario.yaml"
    file.write_text(scenario.to_yaml(), encoding="utf-8")
    assert read_scenario(file).order.parameters == {"aging": 0.0012345678901}


def test_scenarios_are_told_apart_by_path_and_value():
    one = Scenario(**TRACE)
    two = one.with_(speed={"by_model": {"T4": 0.5}}, order="sjf", seed=3)
    assert fields_apart([one, two], ("seed",)) == [
        {"order": "fifo", "speed.policy": "none", "speed.by_model.T4": "none"},
        {"order": "sjf", "speed.policy": "gpu-model", "speed.by_model.T4": "0.5"},
    ]


def test_a_slice_and_a_load_are_part_of_the_run():
    whole = simulate(Scenario(**TRACE)).jobs
    middle = float(whole["submit_time"][30])
    half = simulate(Scenario(**TRACE, slice={"start_time": middle}, load_scale=2.0)).jobs
    later = whole.filter(whole["submit_time"] >= middle)
    assert half["job_id"].to_list() == later["job_id"].to_list()
    assert (half["submit_time"] - middle).to_list() == pytest.approx(((later["submit_time"] - middle) / 2).to_list())


def test_a_run_with_policies_and_a_cluster_of_ones_own_reproduces_itself(tmp_path):
    own = tmp_path / "own.py"
    own.write_text(
        "from gputwin.simulation.policy import ordering\n"
        "@ordering('longest-of-mine', 'longest first')\n"
        "def key(jobs, j, now, knobs):\n"
        "    return -jobs[j].predicted\n"
    )
    nodes = Cluster("mine", (NodeGroup("big", 1, 8, cpu_milli=96_000), NodeGroup("small", 2, 4)))
    first = simulate("synthetic:philly?jobs=60", nodes, order="longest-of-mine", policies=[str(own)])
    first.save(tmp_path / "run")
    again = simulate(read_scenario(tmp_path / "run" / "scenario.yaml"))
    assert again.manifest == first.manifest
    assert again.jobs.equals(first.jobs)
    assert again.placements.equals(first.placements)
    ORDERINGS.discard("longest-of-mine")


def test_yaml_gives_back_what_was_written(tmp_path):
    scenario = scenario_of(
        {
            **TRACE,
            "order": "las:first=60,queues=2",
            "backfill": "greedy",
            "speed": {"by_model": {"V100": 1.0, "T4": 0.5}},
            "faults": {"mtbf_seconds": 86400, "maintenance": [{"node": 1, "drain_time": 5, "down_time": 9}]},
            "checkpoints": {"interval_seconds": 600, "save_seconds": 5},
            "elasticity": {"scaling_exponent": 0.8},
        }
    )
    file = tmp_path / "scenario.yaml"
    file.write_text(scenario.to_yaml(), encoding="utf-8")
    assert read_scenario(file) == scenario


def test_the_schema_names_every_field():
    assert set(json.loads(scenario_schema())["properties"]) == set(Scenario.model_fields)


def test_a_saved_run_has_the_scenario_that_reproduces_it(tmp_path):
    options = ["--order", "srtf", "--backfill", "greedy", "--mtbf", "2d", "--checkpoint", "interval=10m,restart=30s"]
    arguments = ["simulate", TRACE["trace"], "--cluster", TRACE["cluster"], *options, "-o", str(tmp_path / "run")]
    assert main([*arguments, "--quiet", "--json"]) == 0
    again = ["simulate", str(tmp_path / "run" / "scenario.yaml"), "-o", str(tmp_path / "again"), "--quiet", "--json"]
    assert main(again) == 0
    first, second = (SimulationResult.open(tmp_path / name) for name in ("run", "again"))
    for name in ("jobs", "segments", "placements", "series"):
        assert getattr(first, name).equals(getattr(second, name))
    assert first.manifest == second.manifest


def test_options_beside_a_scenario_file_are_refused(tmp_path, capsys):
    file = tmp_path / "scenario.yaml"
    file.write_text(Scenario(**TRACE).to_yaml(), encoding="utf-8")
    assert main(["simulate", str(file), "--seed", "3"]) == 2
    assert "put --seed into the file" in capsys.readouterr().err


def test_python_takes_a_scenario():
    result = simulate(scenario_of({**TRACE, "order": "srtf", "backfill": "greedy"}))
    jobs = result.jobs.filter(result.jobs["outcome"] == "finished")
    waits = [c for c in jobs.columns if c.startswith("wait_") and c != "wait_seconds"]
    parts = [c for c in jobs.columns if c.startswith(("slow_", "lost_", "overhead_"))]
    total = jobs.select(["duration_seconds", *waits, *parts]).sum_horizontal()
    assert (total - jobs["jct_seconds"]).abs().max() < 1e-6
    assert result.summary["stops"].get("preempted", 0) > 0


def test_the_checkpoint_interval_may_follow_from_a_rule():
    data = {"trace": "t", "checkpoints": {"rule": "young", "save_seconds": 20.0}, "faults": {"mtbf_seconds": 36_000.0}}
    assert scenario_of(data).changes.checkpoints.interval_seconds == pytest.approx(1200.0)
    with pytest.raises(UserError, match="the checkpoint rule 'young' needs a time to save and a mean time between"):
        _ = scenario_of({**data, "faults": None}).changes
    both = {**data, "checkpoints": {"rule": "daly", "save_seconds": 20.0, "interval_seconds": 60.0}}
    with pytest.raises(UserError, match="have an interval and the rule 'daly'; give one of them"):
        _ = scenario_of(both).changes
