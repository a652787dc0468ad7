"""Weights that let fitting learn from finished jobs without forgetting that long ones are still running.

Kaplan and Meier, JASA 1958, for the distribution of the time at which jobs are censored; weights by its inverse as in
Hothorn et al., "Survival ensembles", Biostatistics 2006, section 2.
"""

from __future__ import annotations

import numpy as np

from gputwin.profiling.jobs import Flags, Floats

LARGEST_WEIGHT = 20.0
"""Weights are cut here: a single very long job must not stand for all that were cut off."""


def kaplan_meier(time: Floats, event: Flags) -> tuple[Floats, Floats]:
    """Return the distinct times of events and the share that survives each (the product-limit estimate)."""
    times, inverse = np.unique(time[event], return_inverse=True)
    deaths = np.bincount(inverse, minlength=times.size)
    at_risk = time.size - np.searchsorted(np.sort(time), times, side="left")
    return times, np.cumprod(1.0 - deaths / at_risk).astype(np.float64)


def censoring_weights(duration: Floats, finished: Flags) -> Floats:
    """Return 1 / P(not yet censored when it ended) for finished jobs, 0 for the others; mean 1 over all."""
    if finished.all():
        return np.ones(duration.size)
    # Ends come before censorings at the same time, so a censoring counts those that ended then as gone.
    times, remain = kaplan_meier(duration, ~finished)
    before = np.searchsorted(times, duration, side="left")
    uncensored = np.concatenate([[1.0], remain])[before]
    weights = np.where(finished, 1.0 / np.maximum(uncensored, 1.0 / LARGEST_WEIGHT), 0.0)
    total = weights.sum()
    return weights * (weights.size / total) if total > 0 else weights
