"""Who gets how many GPUs: greedy marginal gain (Optimus), AFS, goodput (Pollux's objective), and the best sizes of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gputwin.core.errors import UserError
from gputwin.simulation.elasticity.efficiency import Speed
from gputwin.simulation.elasticity.throughput import Floats


@dataclass(frozen=True)
class ElasticJob:
    """A job that may run on `least` to `most` GPUs: its speed on n of them and the work it has left."""

    speed: Speed
    work_left: float
    least: int = 1
    most: int = 64

    def seconds_left(self, gpus: int) -> float:
        """Return the time it needs on n GPUs, s."""
        return self.work_left / self.speed(gpus) if gpus and self.speed(gpus) > 0 else float("inf")


def optimus(jobs: Sequence[ElasticJob], gpus: int) -> list[int]:
    """Return GPUs per job: the least for each in turn, then each further one where it saves most time.

    Peng et al., Optimus, EuroSys'18, section 4.1: the gain is the reduction of the remaining time.
    """

    def gain(job: ElasticJob, size: int) -> float:
        return job.seconds_left(size) - job.seconds_left(size + 1)

    return _greedy(jobs, gpus, gain)


def goodput(jobs: Sequence[ElasticJob], gpus: int, power: float = -1.0) -> list[int]:
    """Return GPUs per job that raise the power mean of their speedups over an equal share, one at a time.

    Qiao et al., Pollux, OSDI'21, section 4.2: power 1 is the mean, −1 (harmonic) weighs the slow ones more. Speeds are
    goodputs there. Pollux searches placements by a genetic algorithm; this is the greedy rule on sizes.
    """
    fair = max(gpus // max(len(jobs), 1), 1)

    def gain(job: ElasticJob, size: int) -> float:
        base = job.speed(min(max(fair, job.least), job.most))
        now, then = job.speed(size) / base, job.speed(size + 1) / base
        sign = 1.0 if power > 0 else -1.0
        return float(sign * (then**power - now**power))

    return _greedy(jobs, gpus, gain)


def afs(jobs: Sequence[ElasticJob], gpus: int) -> list[int]:
    """Return GPUs per job by AFS-L: short jobs first, unless a longer one makes more of the next GPU.

    Hwang et al., Elastic Resource Sharing for Distributed Deep Learning, NSDI'21, section 4.2: of a shorter job a and a
    longer b, b gets the GPU if (P_b(n+1) − P_b(n)) / P_b(n+1) > (P_a(n+1) − P_a(n)) / P_a(n).
    """
    sizes = [0] * len(jobs)
    for _ in range(gpus):
        best = -1
        for j, job in enumerate(jobs):
            if sizes[j] >= job.most:
                continue
            if best < 0 or _prefers(jobs, sizes, j, best):
                best = j
        if best < 0:
            break
        sizes[best] += 1
    return [size if size >= job.least else 0 for size, job in zip(sizes, jobs, strict=True)]


def _prefers(jobs: Sequence[ElasticJob], sizes: list[int], j: int, other: int) -> bool:
    """Return whether AFS gives the next GPU to job j rather than to the other."""
    if not sizes[j] or not sizes[other]:
        # Jobs without a GPU come first, the shorter on one GPU of two.
        if bool(sizes[j]) != bool(sizes[other]):
            return not sizes[j]
        return jobs[j].seconds_left(1) < jobs[other].seconds_left(1)
    left_j, left_other = (jobs[k].seconds_left(sizes[k]) for k in (j, other))
    short, long = (j, other) if left_j < left_other else (other, j)
    now, then = jobs[short].speed(sizes[short]), jobs[short].speed(sizes[short] + 1)
    now_long, then_long = jobs[long].speed(sizes[long]), jobs[long].speed(sizes[long] + 1)
    winner = long if (then_long - now_long) / then_long > (then - now) / now else short
    return winner == j


def best_sizes(values: Sequence[Floats], gpus: int) -> list[int]:
    """Return the sizes with the largest sum of values, where `values[j][n]` is what job j on n GPUs is worth.

    A knapsack with one choice per job, solved exactly; −inf is not allowed.
    """
    best = np.full(gpus + 1, -np.inf)
    best[0] = 0.0
    choices = []
    for value in values:
        tried = np.full((gpus + 1, gpus + 1), -np.inf)
        for n in np.flatnonzero(np.isfinite(value[: gpus + 1])):
            tried[n, n:] = best[: gpus + 1 - n] + value[n]
        choices.append(tried.argmax(axis=0))
        best = tried.max(axis=0)
    left = int(best.argmax())
    sizes = []
    for choice in reversed(choices):
        sizes.append(int(choice[left]))
        left -= sizes[-1]
    return sizes[::-1]


def _greedy(jobs: Sequence[ElasticJob], gpus: int, gain: Callable[[ElasticJob, int], float]) -> list[int]:
    """Return sizes: the least for each in turn while it fits, then one GPU at a time to the largest positive gain."""
    if gpus < 0:
        raise UserError(f"GPUs to share are {gpus}; give 0 or more")
    sizes = [0] * len(jobs)
    for j, job in enumerate(jobs):
        if job.least <= gpus:
            sizes[j] = job.least
            gpus -= job.least
    gains = [gain(job, size) if 0 < size < job.most else 0.0 for job, size in zip(jobs, sizes, strict=True)]
    while gpus > 0 and gains:
        best = max(range(len(jobs)), key=gains.__getitem__)
        if gains[best] <= 0:
            break
        sizes[best] += 1
        gpus -= 1
        gains[best] = gain(jobs[best], sizes[best]) if sizes[best] < jobs[best].most else 0.0
    return sizes
