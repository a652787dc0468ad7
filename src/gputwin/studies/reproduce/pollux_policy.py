"""Pollux's rule: sizes and batches that raise the harmonic mean of all jobs' speedups, learnt while jobs run.

Qiao et al., OSDI'21, section 4. The authors search placements with a genetic algorithm. Here sizes are the exact optimum of
the same objective over whole nodes and parts of one node, and placements follow: jobs that keep their size stay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gputwin.simulation.elasticity.allocation import best_sizes
from gputwin.simulation.elasticity.goodput import BatchLimits, Goodput
from gputwin.simulation.elasticity.online import fit_online
from gputwin.simulation.elasticity.throughput import Floats, Steps, StepTime
from gputwin.studies.reproduce.pollux_jobs import RESTART_SECONDS, Application, Job

NODES, GPUS_PER_NODE = 16, 4
GPUS = NODES * GPUS_PER_NODE
SIZES = np.array([1, 2, 3, *range(GPUS_PER_NODE, GPUS + 1, GPUS_PER_NODE)])
FIXED_BATCH = {"ncf": 32768}
"""Applications that keep one batch size, and one GPU."""
_SMALL = 1e-3
"""Added to a speedup before its inverse is taken, as the authors do."""


class AdaptiveJob(Job):
    """A job whose batch follows its goodput, and that learns its step times as it runs."""

    def __init__(self, name: str, application: Application, submit: int, gpus: int, batch: int) -> None:
        super().__init__(name, application, submit, gpus, batch)
        self.seen: dict[tuple[int, int, int], tuple[float, float]] = {}
        self.model: StepTime | None = None
        self.noise = 1.0
        self.restarts: int | None = None
        self.chosen = (0, 0)
        self.limits = BatchLimits(
            application.initial_batch, application.most_batch, application.least_local, application.most_local
        )

    @property
    def most_gpus(self) -> int:
        """Return the most GPUs it may get: twice what it has run on."""
        if self.application.name in FIXED_BATCH:
            return 1
        tried = max((key[1] for key in self.seen), default=0)
        return min(max(2 * tried, 1), GPUS, self.limits.most // self.limits.least_local)

    def goodputs(self, nodes: Floats, gpus: Floats) -> Floats:
        """Return the goodput it believes in for each of these; without any step seen, the number of GPUs."""
        if self.model is None:
            return np.asarray(gpus, float)
        return Goodput(self.model, self.limits, self.noise).best(nodes, gpus)[0]

    def place(self, allocation: list[int]) -> None:
        """Give the job these GPUs; it restarts."""
        super().place(allocation)
        if self.placement:
            self._choose_batch()
            self.restarts = 0 if self.restarts is None else self.restarts + 1

    def split(self, gpus: int) -> tuple[int, int]:
        """Return the batch on a GPU at a time, and how many are added up besides the last, as chosen."""
        return self.chosen

    def observe(self, gpus: int, local: int, step: float, sync: float) -> None:
        """Learn from a step."""
        batch = gpus * local * (self.chosen[1] + 1)
        self.noise = self.application.noise(batch, self.epoch)
        key = (len(self.placement), gpus, local)
        if key not in self.seen:
            self.seen[key] = (step, sync)
            columns = np.array([(*k, *v) for k, v in self.seen.items()], float).T
            self.model = fit_online(Steps(*columns))

    def advanced(self) -> None:
        """Choose the batch anew after an epoch or an interval."""
        self._choose_batch()

    def _choose_batch(self) -> None:
        app, nodes, gpus = self.application, len(self.placement), sum(self.placement)
        fixed = FIXED_BATCH.get(app.name)
        if fixed is None and self.model is None:
            fixed = max(app.initial_batch, app.least_local * gpus)
        if fixed is not None:
            self.chosen = app.split(fixed, gpus)
            return
        assert self.model is not None
        found = Goodput(self.model, self.limits, self.noise).best(np.array([nodes]), np.array([gpus]))
        local, added = int(found[1][0]), int(found[2][0])
        self.chosen = (min(local, app.most_batch // (gpus * (added + 1))), added)


class Pollux:
    """Sizes with the largest harmonic mean of speedups over an equal share; who is resized pays for its restart."""

    def __call__(self, now: int, jobs: Sequence[Job], held: dict[str, list[int]]) -> dict[str, list[int]]:
        """Return who holds which GPUs for the next interval."""
        adaptive = [job for job in jobs if isinstance(job, AdaptiveJob)]
        values = [self._values(now, job, held.get(job.name, []), len(jobs)) for job in adaptive]
        sizes = best_sizes(values, GPUS)
        size = {job.name: n for job, n in zip(adaptive, sizes, strict=True)}
        kept = {name: nodes for name, nodes in held.items() if size.get(name) == len(nodes) > 0}
        return _packed(kept, {name: n for name, n in size.items() if n and name not in kept})

    def _values(self, now: int, job: AdaptiveJob, nodes: list[int], jobs: int) -> Floats:
        """Return minus the inverse speedup of the job on 0 to 64 GPUs; −inf for sizes it cannot have."""
        fair, current = math.ceil(GPUS / jobs), len(nodes)
        sizes = SIZES[job.most_gpus >= SIZES]
        asked_gpus = np.concatenate([sizes, [fair, max(current, 1)]])
        asked_nodes = np.concatenate([np.ceil(sizes / GPUS_PER_NODE), [1, max(len(set(nodes)), 1)]])
        good = job.goodputs(asked_nodes, asked_gpus)
        equal = good[-2] or 1e-9
        age = now - job.submit
        left = max(age - RESTART_SECONDS * (job.restarts or 0), 0) / (age + RESTART_SECONDS)
        values = np.full(GPUS + 1, -np.inf)
        values[0] = -1.0 / _SMALL
        values[sizes] = -1.0 / (good[:-2] / equal / GPUS_PER_NODE * left + _SMALL)
        if 0 < current <= job.most_gpus:
            values[current] = -1.0 / (good[-1] / equal / GPUS_PER_NODE + _SMALL)
        return values


def _packed(kept: dict[str, list[int]], wanted: dict[str, int]) -> dict[str, list[int]]:
    """Return allocations: large jobs on whole nodes, small ones on the fullest node they fit; smaller where they do not."""
    free = np.full(NODES, GPUS_PER_NODE)
    for nodes in kept.values():
        np.subtract.at(free, nodes, 1)
    found = dict(kept)
    for name, asked in sorted(wanted.items(), key=lambda item: -item[1]):
        whole = np.flatnonzero(free == GPUS_PER_NODE)[: asked // GPUS_PER_NODE]
        if whole.size:
            found[name] = [int(node) for node in np.repeat(whole, GPUS_PER_NODE)]
            free[whole] = 0
            continue
        for gpus in range(min(asked, GPUS_PER_NODE - 1), 0, -1):
            fitting = np.flatnonzero(free >= gpus)
            if fitting.size:
                node = int(fitting[free[fitting].argmin()])
                found[name] = [node] * gpus
                free[node] -= gpus
                break
    return found
