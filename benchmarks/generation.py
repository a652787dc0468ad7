"""Prints how many synthetic jobs one CPU second makes, beside a plain NumPy baseline measured in the same run.

    python benchmarks/generation.py [--jobs 1000000] [--repeats 5]

The baseline draws for as many jobs what any generator must: log-normal durations, sorted exponential arrivals and
hexadecimal ids. It has neither users nor groups, requests, gangs or a table; the ratio says what those cost.
Expected: at least 500,000 jobs per CPU second.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from gputwin.traces.synthetic import generate


def cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median CPU time of `work` in s, over all threads of this process."""
    work()
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return statistics.median(times)


def baseline(jobs: int) -> None:
    """Draw durations, arrivals and ids with NumPy alone."""
    rng = np.random.default_rng(0)
    rng.lognormal(6.2, 2.0, size=jobs)
    np.sort(rng.exponential(5.0, size=jobs).cumsum())
    identifiers = rng.bytes(12 * jobs).hex()
    [identifiers[i : i + 24] for i in range(0, len(identifiers), 24)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    ours = cpu_seconds(lambda: generate("pai2020", jobs=options.jobs, seed=1), options.repeats)
    plain = cpu_seconds(lambda: baseline(options.jobs), options.repeats)
    print(f"pai2020, tasks and nodes  {options.jobs / ours:>12,.0f} jobs per CPU second")
    print(f"NumPy baseline            {options.jobs / plain:>12,.0f} jobs per CPU second")
    print(f"ratio                     {plain / ours:>12.2f}")


if __name__ == "__main__":
    main()
