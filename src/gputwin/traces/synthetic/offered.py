"""Run times for which the work offered to a cluster is what it should be.

Marginals do not say how much work a trace offers: that depends on how long the few jobs run that ask for the most GPUs.
Their run times are drawn from the published distribution, and then shifted along it by one number for all of them until
the work of the whole trace is the work wanted.
"""

from __future__ import annotations

import math

import numpy as np

from gputwin.traces.synthetic.distributions import Floats, Quantiles

_LARGE_JOB_GPUS = 4.0
_LARGEST_JOB = 0.05  # of all work: a longer job is cut, which happens in traces of a few thousand jobs only
_FARTHEST = 3.0  # on the normal scale
_TOLERANCE = 0.005
_LOG_RUNTIME_PER_RANK = 2.0  # about how much the logarithm of run times grows along the normal scale


def runtimes_for_work(distribution: Quantiles, rank: Floats, gpus: Floats, work: float) -> Floats:
    """Return the run time in s of each job, by its rank on the normal scale, so that they add up to `work` GPU-seconds.

    Jobs of few GPUs keep the run time of their rank. Where even the largest shift does not reach the work, as in a trace
    of a handful of jobs, it is approached as far as that.
    """
    runtime = np.maximum(distribution.at(rank), 1.0)
    large = np.flatnonzero(gpus >= _LARGE_JOB_GPUS)
    if not len(large):
        return runtime
    ranks, amount = rank[large], gpus[large]
    others = float(gpus @ runtime) - float(amount @ runtime[large])
    longest = np.maximum(_LARGEST_JOB * work / amount, 1.0)
    low, shift, high = -_FARTHEST, 0.0, _FARTHEST
    while True:
        shifted = np.clip(distribution.at(ranks + shift), 1.0, longest)
        error = math.log((others + float(amount @ shifted)) / work)
        if abs(error) < _TOLERANCE or high - low < _TOLERANCE / 10:
            break
        low, high = (low, shift) if error > 0 else (shift, high)
        guess = shift - error / _LOG_RUNTIME_PER_RANK
        shift = guess if low < guess < high else (low + high) / 2
    runtime[large] = shifted
    return runtime
