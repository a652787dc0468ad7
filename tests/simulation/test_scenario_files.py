"""The files a scenario names stand beside it: it runs from any folder, and moves with them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

import gputwin
from gputwin.cli.main import main
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.scenario import read_scenario, scenario_of
from gputwin.simulation.scenario_files import files_of
from gputwin.traces.locate import open_trace


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working directory: a folder with a trace, a cluster, and a log of failures."""
    folder = tmp_path / "project"
    folder.mkdir()
    open_trace("synthetic:philly?jobs=60").save(folder / "jobs")
    (folder / "small.yaml").write_text("name: small\ngroups:\n- {name: a, count: 2, gpus: 8}\n")
    (folder / "failures.csv").write_text("node,down_time,up_time\n0,100,200\n")
    monkeypatch.chdir(folder)
    return folder


def run_of(*arguments: str) -> int:
    return main(["simulate", *arguments, "--quiet", "--json"])


def test_a_saved_run_is_made_again_to_the_byte_from_another_folder(project, monkeypatch):
    assert run_of("jobs", "--cluster", "small.yaml", "-o", "run") == 0
    elsewhere = project.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert run_of("../project/run/scenario.yaml", "-o", "../project/again") == 0
    for file in sorted((project / "run").iterdir()):
        assert file.read_bytes() == (project / "again" / file.name).read_bytes(), file.name


def test_a_run_moves_with_the_folder_that_holds_its_trace(project, monkeypatch):
    assert run_of("jobs", "--cluster", "small.yaml", "-o", "runs/first") == 0
    monkeypatch.chdir(project.parent)
    shutil.move(project, project.parent / "moved")
    assert run_of("moved/runs/first/scenario.yaml", "-o", "again") == 0
    opened = SimulationResult.open(Path("again"))
    assert opened.scenario.trace == "moved/jobs"
    assert opened.jobs.equals(SimulationResult.open(Path("moved/runs/first")).jobs)


def test_every_file_a_scenario_names_is_found_beside_it(project, monkeypatch):
    names = {"trace": "jobs", "cluster": "small.yaml", "policies": ["own.py"], "prediction": "model"}
    parts = {
        "faults": {"log": "failures.csv"},
        "interference": "pairs.json",
        "power": {"carbon": "grid.csv"},
        "fairness": {"policy": "kueue-fair", "queues": "queues.yaml"},
    }
    for name in ("own.py", "model", "pairs.json", "grid.csv", "queues.yaml"):
        (project / name).touch()
    (project / "scenario.yaml").write_text(yaml.safe_dump({**names, **parts}))
    monkeypatch.chdir(project.parent)
    found = read_scenario(Path("project/scenario.yaml"))
    assert (found.trace, found.cluster) == ("project/jobs", "project/small.yaml")
    assert files_of(found) == {
        "policies": ("project/own.py",),
        "prediction": ("project/model",),
        "faults.log": ("project/failures.csv",),
        "interference.table": ("project/pairs.json",),
        "power.carbon": ("project/grid.csv",),
        "fairness.queues": ("project/queues.yaml",),
    }


def test_names_of_built_ins_and_numbers_stay_also_where_files_are_called_so(project, monkeypatch):
    for name in ("pai2020", "oracle", "built-in", "400"):
        (project / name).mkdir()
    (project / "scenario.yaml").write_text(
        "trace: synthetic:philly?jobs=60\ncluster: pai2020\ninterference: built-in\npower: {carbon: '400'}\n"
    )
    monkeypatch.chdir(project.parent)
    found = read_scenario(Path("project/scenario.yaml"))
    assert (found.cluster, found.prediction, found.trace) == ("pai2020", "oracle", "synthetic:philly?jobs=60")
    assert files_of(found) == {}


def test_what_is_not_beside_a_scenario_is_looked_for_where_the_command_runs(project):
    (project / "rules").mkdir()
    (project / "rules" / "scenario.yaml").write_text("trace: jobs\ncluster: small.yaml\n")
    assert read_scenario(Path("rules/scenario.yaml")).trace == "jobs"
    assert run_of("rules/scenario.yaml", "-o", "run") == 0


def test_a_run_made_in_python_names_the_trace_it_was_given(project):
    gputwin.simulate("jobs", "small.yaml").save(project / "run")
    assert yaml.safe_load((project / "run" / "scenario.yaml").read_text())["trace"] == "../jobs"
    assert run_of("run/scenario.yaml", "-o", "again") == 0


def test_runs_saved_at_different_depths_name_one_trace_alike(project):
    assert run_of("jobs", "--cluster", "small.yaml", "-o", "one") == 0
    assert run_of("jobs", "--cluster", "small.yaml", "-o", "a/b/two") == 0
    first, second = (SimulationResult.open(project / name) for name in ("one", "a/b/two"))
    assert first.scenario == second.scenario


def test_a_study_finds_its_files_from_any_folder(project, monkeypatch, capsys):
    (project / "study.yaml").write_text(
        "trace: jobs\ncluster: small.yaml\nscenario: {faults: {log: failures.csv}}\ngrid: {order: [fifo, sjf]}\n"
    )
    monkeypatch.chdir(project.parent)
    assert main(["study", "project/study.yaml", "-o", "runs", "--workers", "1", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_a_tuning_study_finds_its_files_from_any_folder(project, monkeypatch, capsys):
    (project / "tune.yaml").write_text(
        "trace: jobs\ncluster: small.yaml\nwindows: 2\nheld_out: 2\nconfigurations: {order: [fifo, sjf]}\n"
    )
    monkeypatch.chdir(project.parent)
    assert main(["tune", "project/tune.yaml", "--quiet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_a_scenario_without_files_is_as_written():
    assert files_of(scenario_of({"trace": "jobs"})) == {}
