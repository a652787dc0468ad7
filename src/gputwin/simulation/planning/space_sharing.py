"""Max-min fairness in which two jobs may share a GPU, at the speeds measured for the pair."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.planning.max_min import SOURCE, worth_of
from gputwin.simulation.planning.snapshot import PLANNERS, Plan, PlannerPolicy, Snapshot


def max_min_sharing(snapshot: Snapshot) -> Plan:
    """Return shares of time of jobs and of pairs that maximise the least normalised throughput.

    A pair's time counts for both jobs; only jobs that take the same number of GPUs are paired.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    pairs = snapshot.pairs
    jobs, models = snapshot.throughputs.shape
    alike = snapshot.gpus[pairs.jobs[:, 0]] == snapshot.gpus[pairs.jobs[:, 1]]
    usable = np.flatnonzero(alike)
    worth = worth_of(snapshot)
    counts = snapshot.can_run
    first, second = pairs.jobs[usable].T if usable.size else (np.zeros(0, np.int64),) * 2
    job, other = (
        np.repeat(np.concatenate([a, b]), models) for a, b in ((np.arange(jobs), first), (np.full(jobs, -1), second))
    )
    model = np.tile(np.arange(models), jobs + usable.size)
    rate = np.concatenate([snapshot.throughputs.ravel(), pairs.throughputs[usable][:, :, 0].ravel()])
    rate_other = np.concatenate([np.zeros(jobs * models), pairs.throughputs[usable][:, :, 1].ravel()])
    column = np.arange(job.size)
    is_pair = other >= 0
    shape = (jobs, job.size)
    row, at = np.concatenate([job, other[is_pair]]), np.concatenate([column, column[is_pair]])
    got = sparse.csr_array((np.concatenate([rate, rate_other[is_pair]]), (row, at)), shape=shape)
    time = sparse.csr_array((np.ones(row.size), (row, at)), shape=shape)
    held = sparse.csr_array((snapshot.gpus[job], (model, column)), shape=(models, job.size))
    level = sparse.csr_array(np.where(counts, worth, 0.0)[:, None])
    matrix = sparse.hstack(
        [sparse.vstack([-got, time, held]), sparse.vstack([level, sparse.csr_array((jobs + models, 1))])]
    )
    found = linprog(
        np.append(np.zeros(job.size), -1.0),
        A_ub=matrix.tocsr(),
        b_ub=np.concatenate([np.zeros(jobs), np.ones(jobs), snapshot.capacity]),
        bounds=[(0, None)] * job.size + [(None, None)],
        method="highs-ipm",
    )
    if found.x is None:
        raise RuntimeError(f"no plan: {found.message}")
    shares = np.clip(found.x[:-1].reshape(-1, models), 0.0, 1.0)
    paired = np.zeros((len(pairs.jobs), models))
    paired[usable] = shares[jobs:]
    return Plan(shares[:jobs], paired)


PLANNERS.add(
    PlannerPolicy(
        "max-min-sharing",
        "max-min fairness in which two jobs may share a GPU",
        SOURCE + " and 3.1 (space sharing)",
        lambda: max_min_sharing,
        shares_devices=True,
    )
)
