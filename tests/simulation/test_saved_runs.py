"""Folders of runs given for what they are not, and runs of other versions: one line says what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gputwin.cli.main import main
from gputwin.core.errors import InputError
from gputwin.simulation.cluster import NodeGroup
from gputwin.simulation.metrics import SUMMARY_KEYS
from gputwin.simulation.result import RUN_FILE, SimulationResult
from tests.simulation.test_power import run

ONE = (NodeGroup("n", 1, gpus=1, gpu_model="V100"),)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return run([(0, 10, 1, 1000)], ONE).save(tmp_path / "run")


def test_every_summary_has_what_readers_of_runs_rely_on(folder: Path) -> None:
    assert set(SUMMARY_KEYS) <= set(SimulationResult.open(folder).summary)


def test_a_run_whose_summary_lacks_a_figure_is_of_another_version(folder: Path) -> None:
    data = json.loads((folder / RUN_FILE).read_text())
    del data["summary"]["jobs_with_wait"]
    data["manifest"]["versions"]["gputwin"] = "0.0.1"
    (folder / RUN_FILE).write_text(json.dumps(data))
    with pytest.raises(InputError, match=r"another version of gputwin \(0.0.1\): its summary lacks jobs_with_wait"):
        SimulationResult.open(folder)


def test_a_run_is_not_a_trace(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", str(folder)]) == 2
    assert "a saved run, not a trace" in capsys.readouterr().err
