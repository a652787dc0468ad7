"""A scenario describes a run: it is refused in one line with the exact path, and a saved run's own reproduces it."""

from __future__ import annotations

import json

import pytest

from gputwin.cli.main import main
from gputwin.core.errors import UserError
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.scenario import Scenario, read_scenario, scenario_of, scenario_schema
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
