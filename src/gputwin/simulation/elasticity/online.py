"""Step times learnt while a job runs: what was not seen yet is taken to cost next to nothing, so that it is tried."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.elasticity.throughput import Steps, StepTime

_LEAST, _MOST = 1e-8, 1e3
_GUESS = np.array([0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 0.1])
_PULLS = np.array([0.03, 0.1, 0.1])
"""Weights of the priors: no overlap, and no growth of synchronising with GPUs, across nodes and within one."""
_ACROSS_OVER_WITHIN = 1.1
"""Synchronising across nodes takes at least this times as long as within one, until it was seen."""


def fit_online(steps: Steps) -> StepTime:
    """Return the parameters that a few steps of one job suggest (Qiao et al., Pollux, OSDI'21, section 4.1)."""
    from gputwin.simulation.elasticity.online_fit import MOST_OVERLAP, fitted

    nodes, gpus = steps.nodes, steps.gpus
    compute = np.maximum(steps.step_seconds - steps.sync_seconds, 1e-6)
    values, free = _GUESS.copy(), np.ones(7, bool)
    if np.unique(steps.batch).size == 1:
        values[0], free[0] = compute.mean() / 2, False
    seen_across, seen_within = bool((nodes > 1).any()), bool(((nodes == 1) & (gpus > 1)).any())
    unseen = [*(() if seen_across else (2, 3)), *(() if seen_within else (4, 5)), *(() if (gpus > 2).any() else (3, 5))]
    values[unseen], free[unseen] = _LEAST, False
    seen = np.column_stack([nodes, gpus, steps.batch, np.log(compute), np.log(steps.step_seconds)])
    a, b, across, across_more, within, within_more, overlap = (
        float(value) for value in fitted(seen, values, free, _LEAST, _MOST, _PULLS)
    )
    if not seen_across:
        across = max(across, _ACROSS_OVER_WITHIN * within)
        across_more = max(across_more, _ACROSS_OVER_WITHIN * within_more)
    return StepTime(a, b, across, across_more, within, within_more, 1.0 + min(overlap, MOST_OVERLAP))
