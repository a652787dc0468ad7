"""A study killed again and again, on processes and on Dask: the same table in the end, and no run done twice.

python -m benchmarks.study_resume --runs 500
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gputwin.studies.store import RunStore

GPUTWIN = (sys.executable, "-c", "from gputwin.cli.main import run; run()")
ROOT = Path(__file__).resolve().parent.parent
_PATIENCE = 600.0


@dataclass(frozen=True)
class Ended:
    """What is left after a study: its table, executions begun and finished, and how often it was killed."""

    table: bytes
    begun: int
    finished: int
    runs: int
    kills: int


def write_study(folder: Path, runs: int) -> Path:
    """Return a study file with so many small runs: 5 seeds × 4 rules × loads."""
    loads = [round(1 + k / 100, 2) for k in range(max(runs // 20, 1))]
    file = folder / "resumed.yaml"
    file.write_text(
        "trace: synthetic:pai2020?jobs=120\ncluster: homogeneous:4x8\nscenario: {backfill: greedy}\n"
        f"grid:\n  order: [fifo, sjf]\n  placement: [first-fit, best-fit]\n  load_scale: {loads}\nseeds: 5\n",
        encoding="utf-8",
    )
    return file


def environment() -> dict[str, str]:
    """Return the variables that let processes find this gputwin, with one thread each."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}


def begin(file: Path, folder: Path, options: Sequence[str]) -> subprocess.Popen[bytes]:
    """Return the running command."""
    return subprocess.Popen(
        [*GPUTWIN, "study", str(file), "-o", str(folder), "--json", "--quiet", *options],
        env=environment(),
        stdout=subprocess.DEVNULL,
    )


def finished_runs(folder: Path) -> int:
    """Return how many runs the store has."""
    return len(RunStore(folder, create=False).list()) if (folder / "index.sqlite").is_file() else 0


def wait_for(count: int, folder: Path, process: subprocess.Popen[bytes]) -> bool:
    """Return whether the study is still running when so many runs are finished."""
    until = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < until:
        if finished_runs(folder) >= count:
            return True
        time.sleep(0.02)
    return False


def killed(file: Path, folder: Path, at: Sequence[int], options: Sequence[str] = ()) -> Ended:
    """Return what is left when the study is killed once each number of runs is finished, and then left to end."""
    kills = 0
    for count in at:
        process = begin(file, folder, options)
        if wait_for(count, folder, process):
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.wait()
    assert begin(file, folder, options).wait() == 0
    return ended(folder, file, kills)


def ended(folder: Path, file: Path, kills: int = 0) -> Ended:
    """Return what the store says of a study that has ended."""
    store = RunStore(folder, create=False)
    log = store.executions()
    table = (folder / "studies" / file.stem / "comparison.json").read_bytes()
    return Ended(table, len(log), sum(e.finished is not None for e in log), len(store.list()), kills)


@contextmanager
def dask_cluster(folder: Path, workers: int = 2) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """Yield the address of a Dask scheduler and its worker processes, each a process of its own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"127.0.0.1:{port}"
    folder.mkdir(parents=True, exist_ok=True)
    quiet = {"env": environment(), "cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    started = [
        subprocess.Popen([*dask, "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"], **quiet)  # type: ignore[call-overload]
    ]
    try:
        for _ in range(workers):
            command = [sys.executable, "-m", "distributed.cli.dask_worker", f"tcp://{address}"]
            options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder)]
            started.append(subprocess.Popen([*command, *options], **quiet))  # type: ignore[call-overload]
        yield f"dask://{address}", started[1:]
    finally:
        for process in started:
            process.kill()
            process.wait()


def on_dask(file: Path, folder: Path, kill_worker_at: int) -> Ended:
    """Return what is left when the study runs on two Dask workers, one of which is killed midway."""
    with dask_cluster(folder.with_name("dask")) as (address, workers):
        process = begin(file, folder, ["--executor", address])
        kills = 0
        if wait_for(kill_worker_at, folder, process):
            workers[0].kill()
            kills = 1
        assert process.wait() == 0
    return ended(folder, file, kills)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = write_study(folder, asked.runs)
        whole = killed(file, folder / "whole", [])
        at = sorted(chance.sample(range(1, whole.runs - 10), 3))
        again = killed(file, folder / "killed", at)
        dask = on_dask(file, folder / "on-dask", whole.runs // 2)
    for label, found in (("not killed", whole), (f"SIGKILL at {at} runs", again), ("Dask, a worker killed", dask)):
        same = "the same table" if found.table == whole.table else "ANOTHER TABLE"
        print(
            f"{label}: {found.runs} runs, {found.begun} executions begun, {found.finished} finished, "
            f"{found.kills} kills, {same} ({len(json.loads(found.table)['scenarios'])} scenarios)"
        )


if __name__ == "__main__":
    main()
