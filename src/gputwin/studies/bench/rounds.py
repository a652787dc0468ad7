"""What one round of a planner costs by the number of active jobs, in CPU time, beside the most it may take."""

from __future__ import annotations

import time

import numpy as np

from gputwin.core.rng import stream
from gputwin.simulation.planning.mechanism import Mechanism, RoundSettings
from gputwin.simulation.planning.snapshot import PLANNERS, Snapshot, snapshot_of

ROUNDS = {
    "round of max-min fairness, 500 active jobs": (500, 50.0),
    "round of max-min fairness, 2,000 active jobs": (2000, 500.0),
}
"""Benchmark → active jobs, and the most milliseconds of CPU."""
_MODELS = ("k80", "p100", "v100")
_REPEATS = 5


def active_jobs(jobs: int, seed: int) -> Snapshot:
    """Return jobs of 1 to 8 GPUs with speeds of their own on 36 GPUs of each of three models."""
    rng = stream(seed, "rounds")
    return snapshot_of(
        _MODELS,
        np.full(3, 36.0),
        np.sort(rng.lognormal(0.0, 1.0, (jobs, 3)), axis=1),
        gpus=rng.choice([1.0, 2.0, 4.0, 8.0], jobs, p=[0.7, 0.1, 0.15, 0.05]),
    )


def round_milliseconds(jobs: int, seed: int) -> float:
    """Return the CPU time of a plan and of giving GPUs by it, ms: the worst of five."""
    worst = 0.0
    for repeat in range(_REPEATS):
        snapshot = active_jobs(jobs, seed + repeat)
        mechanism = Mechanism(_MODELS, PLANNERS.get("max-min-speed"), RoundSettings())
        mechanism.admit(snapshot.ids)
        begin = time.process_time()
        mechanism.plan(0.0, lambda shown=snapshot: shown)  # type: ignore[misc]
        mechanism.pick(snapshot.gpus, snapshot.throughputs > 0, snapshot.capacity)
        worst = max(worst, 1000.0 * (time.process_time() - begin))
    return worst
