"""CPU time of one plan by number of active jobs, ours beside HiGHS: `python -m benchmarks.planning`."""

from __future__ import annotations

import time

import numpy as np

from gputwin.simulation.planning.elimination import SharingProgram
from gputwin.simulation.planning.interior import solve
from gputwin.simulation.planning.max_min import worth_of
from gputwin.simulation.planning.programs import vertex
from gputwin.simulation.planning.snapshot import Snapshot, snapshot_of

REPEATS = 5


def crowd(jobs: int, seed: int) -> Snapshot:
    rng = np.random.default_rng(seed)
    return snapshot_of(
        ("k80", "p100", "v100"),
        np.array([36.0, 36.0, 36.0]),
        np.sort(rng.lognormal(0.0, 1.0, (jobs, 3)), axis=1),
        gpus=rng.choice([1.0, 2.0, 4.0, 8.0], jobs, p=[0.7, 0.1, 0.15, 0.05]),
    )


def milliseconds(work: object, *arguments: object) -> float:
    begin = time.process_time()
    work(*arguments)  # type: ignore[operator]
    return 1000.0 * (time.process_time() - begin)


def main() -> None:
    print("jobs  ours ms  HiGHS ms  (max-min fairness, 3 GPU models, CPU, worst of five)")
    for jobs in (100, 500, 2000):
        ours, theirs = [], []
        for seed in range(REPEATS):
            s = crowd(jobs, seed)
            nothing = np.zeros(jobs)
            program = SharingProgram(
                s.throughputs, worth_of(s), nothing, s.gpus, s.capacity, np.zeros_like(s.throughputs), 1.0
            )
            ours.append(milliseconds(solve, program))
            theirs.append(milliseconds(vertex, program))
        print(f"{jobs:4d}  {max(ours):7.1f}  {max(theirs):8.1f}")


if __name__ == "__main__":
    main()
