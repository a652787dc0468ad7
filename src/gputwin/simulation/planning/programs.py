"""The linear programs of heterogeneity-aware planning, for any number of jobs, GPU models and pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gputwin.simulation.planning.elimination import SharingProgram, Solution
from gputwin.simulation.planning.interior import solve
from gputwin.simulation.planning.snapshot import Floats, Plan, Snapshot

Method = Callable[[SharingProgram], Solution]
"""Solves a program; of its many optima, each method returns another."""


def raise_levels(
    snapshot: Snapshot, worth: Floats, least: Floats | None = None, method: Method = solve
) -> tuple[Plan, float]:
    """Return the plan that maximises the least of throughput / worth, and that level.

    Jobs whose `worth` is 0 have no level, but get at least `least` steps a second if that is given, else nothing.
    """
    demand = np.zeros(len(worth)) if least is None else least
    active = snapshot.can_run & ((worth > 0) | (demand > 0))
    part = snapshot.of(active)
    program = SharingProgram(
        rate=part.throughputs,
        level=worth[active],
        least=demand[active],
        gpus=part.gpus,
        capacity=part.capacity,
        gain=np.zeros_like(part.throughputs),
        level_gain=1.0,
    )
    shares, level = solved(program, method)
    return _spread(snapshot, active, shares), level


def most_gain(snapshot: Snapshot, gain: Floats, least: Floats) -> Plan | None:
    """Return the plan with the largest Σ gain · share in which jobs get `least` steps a second; None if there is none."""
    active = snapshot.can_run
    if (least[~active] > 0).any():
        return None
    part = snapshot.of(active)
    if least.any():
        # How much of the least can be given at all: the programs below need a feasible point.
        _, level = raise_levels(snapshot, least)
        if level < 1.0 - 1e-7:
            return None
    program = SharingProgram(
        rate=part.throughputs,
        level=np.zeros(len(part.ids)),
        least=least[active] * (1.0 - 1e-9),
        gpus=part.gpus,
        capacity=part.capacity,
        gain=np.where(part.throughputs > 0, gain[active], 0.0),
        level_gain=0.0,
    )
    shares, _ = solved(program)
    return _spread(snapshot, active, shares)


def solved(program: SharingProgram, method: Method = solve) -> tuple[Floats, float]:
    """Return shares and level; where the method does not converge, HiGHS's vertex."""
    if not len(program.rate):
        return np.zeros_like(program.rate), 0.0
    found = method(program)
    if found.converged:
        return np.clip(found.shares, 0.0, 1.0), found.level
    return vertex(program)


def vertex(program: SharingProgram) -> tuple[Floats, float]:
    """Return an optimal vertex by HiGHS."""
    from scipy import sparse
    from scipy.optimize import linprog

    jobs, models = program.rate.shape
    column = np.arange(jobs * models)
    job, model = np.divmod(column, models)
    # In units of each job's highest rate, so that what HiGHS tolerates is a share of it.
    top = program.rate.max(axis=1)
    level = sparse.csr_array((program.level / top)[:, None])
    rate = sparse.csr_array((-(program.rate / top[:, None]).ravel(), (job, column)), shape=(jobs, jobs * models))
    time = sparse.csr_array((np.ones(column.size), (job, column)), shape=(jobs, jobs * models))
    held = sparse.csr_array((program.gpus[job], (model, column)), shape=(models, jobs * models))
    nothing = sparse.csr_array((jobs + models, 1))
    matrix = sparse.hstack([sparse.vstack([rate, time, held]), sparse.vstack([level, nothing])])
    found = linprog(
        -np.append(program.gain.ravel(), program.level_gain),
        A_ub=matrix.tocsr(),
        b_ub=np.concatenate([-program.least / top, np.ones(jobs), program.capacity]),
        bounds=[(0, None)] * column.size + [(None, None)],
        method="highs",
    )
    if found.x is None:
        raise RuntimeError(f"no plan: {found.message}")
    return np.clip(found.x[:-1].reshape(jobs, models), 0.0, 1.0), float(found.x[-1])


def _spread(snapshot: Snapshot, active: np.ndarray[tuple[int], np.dtype[np.bool_]], shares: Floats) -> Plan:
    """Return the plan for all jobs: those that cannot run get nothing."""
    whole = np.zeros_like(snapshot.throughputs)
    whole[active] = shares
    return Plan.of(np.where(snapshot.throughputs > 0, whole, 0.0))


def blind(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot as a planner sees it that does not know speeds: all models alike."""
    return replace(snapshot, throughputs=np.ones_like(snapshot.throughputs))
