"""Step times learnt while a job runs: what was not seen yet is taken to cost next to nothing, so that it is tried."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.elasticity.throughput import Floats, Steps, StepTime

_LEAST = 1e-8
_GUESS = np.array([0.1, 0.01, 0.1, 0.01, 0.1, 0.01, 0.1])
_PRIORS = (0.03, 0.1, 0.1)
_ACROSS_OVER_WITHIN = 1.1
"""Synchronising across nodes takes at least this times as long as within one, until it was seen."""


def fit_online(steps: Steps) -> StepTime:
    """Return the parameters that a few steps of one job suggest (Qiao et al., Pollux, OSDI'21, section 4.1)."""
    from scipy.optimize import least_squares

    nodes, gpus = steps.nodes, steps.gpus
    compute = np.maximum(steps.step_seconds - steps.sync_seconds, 1e-6)
    values, free = _GUESS.copy(), np.ones(7, bool)
    if np.unique(steps.batch).size == 1:
        values[0], free[0] = compute.mean() / 2, False
    seen_across, seen_within = bool((nodes > 1).any()), bool(((nodes == 1) & (gpus > 1)).any())
    unseen = [*(() if seen_across else (2, 3)), *(() if seen_within else (4, 5)), *(() if (gpus > 2).any() else (3, 5))]
    values[unseen], free[unseen] = _LEAST, False
    weight = 1.0 / np.sqrt(gpus.size)

    def model(logs: Floats) -> StepTime:
        now = values.copy()
        now[free] = np.exp(logs)
        a, b, c, d, e, f, overlap = (float(v) for v in now)
        return StepTime(a, b, c, d, e, f, 1.0 + min(overlap, 9.0))

    def errors(logs: Floats) -> Floats:
        m = model(logs)
        of_compute = np.log(m.compute_seconds(steps.batch) / compute)
        of_step = np.log(m.step_seconds(nodes, gpus, steps.batch) / steps.step_seconds)
        pulls = (m.gamma - 1.0, m.across_per_gpu / m.across, m.within_per_gpu / m.within)
        prior = [p * x for p, x in zip(_PRIORS, pulls, strict=True)]
        return np.concatenate([weight * of_compute, weight * of_step, prior])

    bounds = (np.log(_LEAST), np.log(1e3))
    found = model(least_squares(errors, np.log(values[free]), bounds=bounds, max_nfev=60).x)
    if seen_across:
        return found
    across = max(found.across, _ACROSS_OVER_WITHIN * found.within)
    growth = max(found.across_per_gpu, _ACROSS_OVER_WITHIN * found.within_per_gpu)
    return StepTime(
        found.compute, found.compute_per_sample, across, growth, found.within, found.within_per_gpu, found.gamma
    )
