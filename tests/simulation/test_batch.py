"""One runner for many tasks: any executor gives the same, a lost worker is replaced, Ctrl-C ends it at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gputwin.core.errors import GputwinError, InputError
from gputwin.simulation.batch import Batch
from tests.simulation import batch_tasks as tasks


@pytest.fixture(scope="module")
def processes():
    with Batch(workers=2) as batch:
        yield batch


def test_results_come_in_the_order_of_the_calls(processes):
    # The first takes longest.
    calls = [(k, 0.4 if k == 0 else 0.0) for k in range(8)]
    told: list[tuple[int, int]] = []
    assert processes.map(tasks.after_a_while, calls, lambda done, of: told.append((done, of))) == list(range(8))
    assert told == [(k, 8) for k in range(1, 9)]


def test_what_is_shared_is_read_once_by_each_process_and_may_be_written_to(processes):
    value = {"numbers": np.arange(100_000), "none": np.zeros(0), "records": np.zeros(3, tasks.RECORD)}
    shared = processes.share(value)
    seen = processes.map(tasks.look_at, [(shared, k) for k in range(12)])
    assert {total for _, _, total in seen} == {int(np.arange(100_000).sum())}
    # One object per process, whatever the number of tasks; what a process writes stays its own.
    assert len({process for process, _, _ in seen}) == len({(process, where) for process, where, _ in seen})
    assert os.getpid() not in {process for process, _, _ in seen}
    assert value["numbers"][0] == 0


def test_an_error_of_a_task_arrives_as_it_is(processes):
    with pytest.raises(InputError, match=r"^bad\.csv, row 3, field 'gpu': no number"):
        processes.map(tasks.refuse, [(k,) for k in range(4)])
    # The batch can be used again.
    assert processes.map(tasks.after_a_while, [(1, 0.0), (2, 0.0)]) == [1, 2]


def test_a_worker_that_is_killed_is_replaced_and_its_task_run_again(tmp_path):
    with Batch(workers=2) as batch:
        assert batch.map(tasks.killed_once, [(str(tmp_path), k) for k in range(6)]) == list(range(6))
    assert len(list(tmp_path.iterdir())) == 2


def test_a_task_that_kills_every_worker_is_an_error():
    with Batch(workers=2) as batch, pytest.raises(GputwinError, match="ended 3 times"):
        batch.map(tasks.always_killed, [(0,), (1,)])


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with Batch(ThreadPoolExecutor(1)) as batch:
        shared = batch.share(np.zeros(10))
        assert batch.map(tasks.size_of, [(shared,), (shared,)]) == [10, 10]
        # Threads need no file.
        assert not list(tmp_path.iterdir())
    with Batch(workers=2) as batch:
        assert batch.map(tasks.size_of, [(batch.share(np.zeros(10)),), (batch.share(np.zeros(9)),)]) == [10, 9]
    assert not list(tmp_path.glob("gputwin-*"))


def test_ctrl_c_ends_all_processes_within_a_second(tmp_path):
    script = tmp_path / "long.py"
    script.write_text(
        "from gputwin.simulation.batch import Batch\n"
        "from tests.simulation import batch_tasks as tasks\n"
        "if __name__ == '__main__':\n"
        "    with Batch(workers=2) as batch:\n"
        f"        batch.map(tasks.announce_and_stay, [({str(tmp_path)!r}, k) for k in range(4)])\n"
    )
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
    run = subprocess.Popen(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.PIPE, process_group=0
    )
    until = time.monotonic() + 180
    while len(found := list(tmp_path.glob("*.pid"))) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(found) == 2
    begin = time.monotonic()
    os.killpg(run.pid, signal.SIGINT)
    run.communicate(timeout=30)
    assert time.monotonic() - begin < 1.0
    assert run.returncode != 0
    for file in found:
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.stem), 0)
