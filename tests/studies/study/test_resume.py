"""A study that is killed goes on where it was, on any executor: the same table, no run done twice.

The full size is `python -m benchmarks.study_resume --runs 500`; here 40 runs.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.study_resume import ended, killed, on_dask, write_study

from gputwin.cli.main import main

RUNS = 40


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    return write_study(tmp_path_factory.mktemp("study"), RUNS)


@pytest.fixture(scope="module")
def whole(study):
    folder = study.parent / "whole"
    assert main(["study", str(study), "-o", str(folder), "--workers", "1", "--quiet", "--json"]) == 0
    return ended(folder, study)


def test_a_study_killed_three_times_gives_the_same_table_and_does_no_run_twice(study, whole):
    found = killed(study, study.parent / "killed", [4, 15, 30], ["--workers", "1"])
    assert found.kills == 3
    assert found.runs == found.finished == RUNS
    # One run at a time: what was under way when it was killed is all that is begun again.
    assert RUNS <= found.begun <= RUNS + found.kills
    assert found.table == whole.table


def test_dask_gives_the_same_table_though_a_worker_dies(study, whole):
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    found = on_dask(study, study.parent / "on-dask", RUNS // 2)
    assert found.kills == 1
    assert found.runs == found.finished == RUNS
    assert RUNS <= found.begun <= RUNS + 1
    assert found.table == whole.table
    for run in sorted((study.parent / "whole" / "runs").iterdir()):
        for file in run.iterdir():
            other = study.parent / "on-dask" / "runs" / run.name / file.name
            assert other.read_bytes() == file.read_bytes(), file.name
