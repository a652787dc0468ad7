"""Small histories whose truth is known."""

from __future__ import annotations

import numpy as np
import polars as pl

from gputwin.profiling.jobs import History, Outcomes
from gputwin.traces.schema import TASKS, conform


def tasks(jobs: int = 400, seed: int = 0, *, noise: float = 0.2) -> pl.DataFrame:
    """Return jobs of 8 users and 40 groups; a group's jobs take about as long, its GPUs tell half of the rest."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 40, jobs)
    typical = np.exp(rng.normal(6.0, 1.2, 40))
    gpus = rng.integers(1, 9, 40)
    duration = np.maximum(typical[group] * gpus[group] ** 0.5 * np.exp(noise * rng.standard_normal(jobs)), 1.0)
    submit = np.sort(rng.uniform(0, 40 * 86_400.0, jobs))
    start = submit + rng.exponential(60.0, jobs)
    frame = pl.DataFrame(
        {
            "job_id": [f"j{i:05d}" for i in range(jobs)],
            "role": ["worker"] * jobs,
            "group": [f"g{g}" for g in group],
            "user": [f"u{g % 8}" for g in group],
            "workload": [f"w{g % 3}" for g in group],
            "submit_time": submit,
            "start_time": start,
            "end_time": start + duration,
            "duration_seconds": duration,
            "instances": [1] * jobs,
            "gpu_count": gpus[group],
            "gpu_milli": [1000] * jobs,
            "cpu_milli": gpus[group] * 4000,
        }
    )
    return conform(TASKS, frame.lazy()).collect()


def history(jobs: int = 400, seed: int = 0, *, noise: float = 0.2) -> History:
    return History.of_tasks(tasks(jobs, seed, noise=noise))


def lasting(duration: np.ndarray) -> History:
    """Return jobs that ran this long."""
    jobs = history(duration.size)
    return History(jobs.jobs, Outcomes(jobs.outcomes.start, duration, jobs.outcomes.finished))
