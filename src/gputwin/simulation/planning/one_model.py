"""Plans that give each job one GPU model for all of its time: first come first served, shortest first, AlloX."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gputwin.simulation.planning.snapshot import PLANNERS, Floats, Ints, Plan, PlannerPolicy, Snapshot


def fastest_free(snapshot: Snapshot, order: Ints) -> Plan:
    """Return a plan that gives each job in turn its fastest model with enough free GPUs, until one does not fit."""
    free = snapshot.capacity.copy()
    shares = np.zeros_like(snapshot.throughputs)
    for job in order:
        fits = free >= snapshot.gpus[job]
        if not fits.any():
            break
        speeds = np.where(fits, snapshot.throughputs[job], -1.0)
        model = int(speeds.argmax())
        if speeds[model] > 0:
            shares[job, model] = 1.0
            free[model] -= snapshot.gpus[job]
    return Plan.of(shares)


def fifo(snapshot: Snapshot) -> Plan:
    """Return first come first served, each job on the fastest model that is free for it."""
    return fastest_free(snapshot, np.argsort(snapshot.ids, kind="stable"))


def shortest_first(snapshot: Snapshot) -> Plan:
    """Return shortest remaining time on its fastest model first."""
    with np.errstate(divide="ignore"):
        seconds = snapshot.steps_left / snapshot.throughputs.max(axis=1)
    return fastest_free(snapshot, np.lexsort((snapshot.ids, seconds)))


class FifoInPlace:
    """First come first served without knowledge of speeds: a job keeps its model, a new one takes the first free."""

    def __init__(self) -> None:
        self.model: dict[int, int] = {}

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return each running job where it is, and waiting jobs in turn until one does not fit."""
        rows = {int(job): row for row, job in enumerate(snapshot.ids)}
        self.model = {job: model for job, model in self.model.items() if job in rows}
        free = snapshot.capacity.copy()
        for job, model in self.model.items():
            free[model] -= snapshot.gpus[rows[job]]
        for job, row in sorted(rows.items()):
            if job in self.model or not snapshot.can_run[row]:
                continue
            fits = np.flatnonzero((free >= snapshot.gpus[row]) & (snapshot.throughputs[row] > 0))
            if not fits.size:
                break
            self.model[job] = int(fits[0])
            free[fits[0]] -= snapshot.gpus[row]
        shares = np.zeros_like(snapshot.throughputs)
        for job, model in self.model.items():
            shares[rows[job], model] = 1.0
        return Plan.of(shares)


Match = Callable[[Floats], tuple[Ints, Ints]]
"""Returns rows and their columns of a matching with the least sum of cost; of several, each method returns another."""


def _matched(cost: Floats) -> tuple[Ints, Ints]:
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(cost)
    return rows, columns


class AlloX:
    """Least mean completion time by matching waiting jobs to places in the queues of single GPUs; jobs never move."""

    def __init__(self, match: Match = _matched) -> None:
        self.model: dict[int, int] = {}
        self.match = match

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return running jobs where they are and the first job of each free GPU's matched queue."""
        rows = {int(job): row for row, job in enumerate(snapshot.ids)}
        self.model = {job: model for job, model in self.model.items() if job in rows}
        free = snapshot.capacity - np.bincount(list(self.model.values()), minlength=len(snapshot.models))
        # One column per free GPU and place from the end of its queue: the k-th last job delays k jobs, itself included.
        gpu_model = np.repeat(np.arange(free.size), np.maximum(free, 0).astype(int))
        waiting = [row for job, row in sorted(rows.items()) if job not in self.model and snapshot.can_run[row]]
        if waiting and gpu_model.size:
            speed = np.maximum(snapshot.throughputs[waiting][:, gpu_model], 1e-10)
            seconds = snapshot.steps_left[waiting][:, None] / speed
            matched, column = self.match(_by_place(seconds, len(waiting)))
            last: dict[int, tuple[int, int]] = {}
            for which, at in zip(matched, column, strict=True):
                place, gpu = divmod(int(at), gpu_model.size)
                last[gpu] = max(last.get(gpu, (-1, -1)), (place, waiting[which]))
            for gpu, (_, row) in last.items():
                self.model[int(snapshot.ids[row])] = int(gpu_model[gpu])
        shares = np.zeros_like(snapshot.throughputs)
        for job, model in self.model.items():
            shares[rows[job], model] = 1.0
        return Plan.of(shares)


def _by_place(seconds: Floats, places: int) -> Floats:
    return np.concatenate([(k + 1) * seconds for k in range(places)], axis=1)


_GAVEL = "Narayanan et al., OSDI'20, section 4.2"
for _policy in (
    PlannerPolicy(
        "fifo-in-place", "first come first served, jobs keep their GPU model", _GAVEL, FifoInPlace, False, True
    ),
    PlannerPolicy("fifo-speed", "first come first served on the fastest free model", _GAVEL, lambda: fifo, True, True),
    PlannerPolicy(
        "sjf-speed",
        "shortest remaining time on the fastest free model first",
        _GAVEL,
        lambda: shortest_first,
        True,
        True,
    ),
    PlannerPolicy(
        "allox", "least mean completion time of single-GPU jobs by matching", "Le et al., AlloX, EuroSys'20", AlloX
    ),
):
    PLANNERS.add(_policy)
