"""The victims that the engine's search finds, for cases in the form of the plain functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numba
import numpy as np

from gputwin.core.machine_code import config
from gputwin.simulation.engine.compiled import compiled_as
from gputwin.simulation.engine.interpreted import wrapped
from gputwin.simulation.engine.quotas.classical import classical_victims
from gputwin.simulation.engine.quotas.fair import fair_victims
from gputwin.simulation.engine.quotas.usage import share
from gputwin.simulation.engine.state.records import JOB
from gputwin.simulation.quotas.balance import take
from gputwin.simulation.quotas.cohorts import make_cohorts
from gputwin.simulation.quotas.fair import FINAL_SHARE, INITIAL_SHARE
from gputwin.simulation.quotas.tree import Amounts, QuotaTree
from gputwin.simulation.quotas.workloads import FAIR_SHARING, RECLAIM, RECLAIM_BORROWING, WITHIN_QUEUE, Victim, Workload

RULES = (WITHIN_QUEUE, RECLAIM, RECLAIM_BORROWING, FAIR_SHARING)


def found_by_engine(
    tree: QuotaTree,
    admitted: Iterable[Workload],
    incoming: Workload,
    *,
    fair: bool,
    strategies: Sequence[str] = (FINAL_SHARE, INITIAL_SHARE),
) -> list[Victim]:
    """Return whom the engine would preempt; usage must be as before."""
    running = sorted(admitted, key=lambda w: w.name)
    every = [*running, incoming]
    jobs, amounts = np.zeros(len(every), JOB), np.zeros((len(every), len(tree.resources)))
    queues = [tree.queue(w.queue) for w in every]
    cohorts = make_cohorts(tree, np.array(queues, np.int64), amounts, len(every), strategies)
    local = sorted({w.local_queue for w in every})
    for j, w in enumerate(every):
        jobs[j]["priority"], jobs[j]["start"], jobs[j]["submit"] = w.priority, w.admitted_at, w.created_at
        jobs[j]["shape"] = jobs[j]["tenant"] = j
        cohorts.evicted[j], cohorts.local_queue[j] = w.evicted, local.index(w.local_queue)
        cohorts.local_usage[j] = np.nan if w.local_usage is None else w.local_usage
        for fr, amount in w.amounts.items():
            amounts[j, tree.resources.index(fr)] += amount
    for j, w in enumerate(running):
        cohorts.before[j], cohorts.latest[queues[j]] = cohorts.latest[queues[j]], j
        for fr, amount in w.amounts.items():
            take(tree.parent, tree.guaranteed, cohorts.usage, queues[j], tree.resources.index(fr), amount)
    usage = cohorts.usage.copy()
    number = len(running)
    count = _search(fair)(cohorts, jobs, number, queues[number], number)
    np.testing.assert_allclose(cohorts.usage, usage, atol=1e-6)
    return [Victim(running[v], RULES[rule]) for v, rule in cohorts.victims[:count].tolist()]


def share_by_engine(tree: QuotaTree, usage: Amounts, n: int) -> tuple[int, float, bool]:
    """Return the dominant share of node n as the engine has it: whether it is infinite, its value, whether it borrows."""
    cohorts = make_cohorts(tree, np.zeros(1, np.int64), np.zeros((1, len(tree.resources))), 1)
    cohorts.usage[:] = usage
    if config.DISABLE_JIT:
        return share(cohorts, n)
    return tuple(_share(numba.typeof(cohorts))(cohorts, n))


@cache
def _share(kind: Any) -> Callable[..., Any]:
    returned = numba.types.Tuple((numba.int64, numba.float64, numba.boolean))
    return compiled_as(_asked_share, returned(kind, numba.int64))


def _asked_share(cohorts: Any, n: int) -> Any:
    return share(cohorts, n)


@cache
def _search(fair: bool) -> Callable[..., int]:
    function: Any = fair_victims if fair else classical_victims
    if config.DISABLE_JIT:
        return lambda cohorts, jobs, *numbers: int(function(cohorts, wrapped(jobs), *numbers))
    compiled: dict[Any, Any] = {}

    def call(cohorts: Any, jobs: Any, *numbers: int) -> int:
        kinds = (numba.typeof(cohorts), numba.typeof(jobs), *[numba.int64] * 3)
        if kinds not in compiled:
            compiled[kinds] = compiled_as(function, numba.int64(*kinds))
        return int(compiled[kinds](cohorts, jobs, *numbers))

    return call
