"""Kueue's cohorts and ClusterQueues after a run: the GPUs of each quota that were used, borrowed and lent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gputwin.report.page import TablePart
from gputwin.report.sections.quota_table import Held, Quota, quotas_of, sum_of, tree_table
from gputwin.simulation.cluster_at import span_of
from gputwin.simulation.quotas.queues_of_run import QueuesOfRun, queues_of_run
from gputwin.simulation.quotas.tree import Quota as Terms
from gputwin.simulation.quotas.tree import QuotaTree
from gputwin.simulation.result import SimulationResult

_NOTE = (
    "GPUs, as means over the run; of several flavors the sum. Borrowed is what a queue's jobs hold beyond its nominal "
    "quota; lent is the unused quota, up to the lending limit, that other queues of the cohort hold at that time, in "
    "proportion to what each leaves unused."
)


def queue_tree(result: SimulationResult) -> TablePart | None:
    """Return ClusterQueues below their cohorts; None where jobs wait in no queues of Kueue's or these have no GPUs."""
    queues = queues_of_run(result)
    if queues is None:
        return None
    tree = queues.tree
    flavors = [r for r, (_, resource) in enumerate(tree.resources) if resource.endswith("gpu")]
    leaves = [n for n in range(len(tree.nodes)) if any(_has_quota(tree, n, r) for r in flavors)]
    if not leaves:
        return None
    by_flavor: dict[str, list[Quota]] = {_leaf(tree, n): [] for n in leaves}
    for r in flavors:
        held = _held(result, queues, leaves, [r])
        for root in {_root(tree, n) for n in leaves}:
            terms = {_leaf(tree, n): _terms(tree, n, r) for n in leaves if _root(tree, n) == root}
            nominal = {name: quota.nominal for name, quota in terms.items()}
            limits = {name: quota.lending_limit for name, quota in terms.items()}
            for name, quota in quotas_of(held, nominal, span_of(result), limits).items():
                by_flavor[name].append(quota)
    held = _held(result, queues, leaves, flavors)
    quotas = {name: sum_of(found, held.most([name])) for name, found in by_flavor.items()}
    groups = {_leaf(tree, n): _groups(tree, n) for n in leaves}
    return tree_table(groups, quotas, held, "queue", "all queues", _NOTE)


def _terms(tree: QuotaTree, n: int, r: int) -> Terms:
    return tree.nodes[n].quotas.get(tree.resources[r], Terms())


def _has_quota(tree: QuotaTree, n: int, r: int) -> bool:
    """Return whether a node has a quota of its own: every queue that names the flavor, and cohorts that add to it."""
    return tree.resources[r] in tree.nodes[n].quotas


def _leaf(tree: QuotaTree, n: int) -> str:
    """Return how the quota of a node is called; that of a cohort itself belongs to none of its queues."""
    node = tree.nodes[n]
    return node.name if node.is_queue else f"{node.name}: own quota"


def _groups(tree: QuotaTree, n: int) -> tuple[str, ...]:
    """Return the cohorts a quota is in, the outermost first."""
    own = [] if tree.nodes[n].is_queue else [n]
    return tuple(tree.nodes[above].name for above in reversed([*own, *tree.path(n)]))


def _root(tree: QuotaTree, n: int) -> int:
    return [n, *tree.path(n)][-1]


def _held(result: SimulationResult, queues: QueuesOfRun, leaves: Sequence[int], flavors: Sequence[int]) -> Held:
    """Return the GPUs of these flavors that the jobs of each queue held over time."""
    _, last = span_of(result)
    column = np.full(len(queues.tree.nodes), -1, np.int64)
    column[list(leaves)] = np.arange(len(leaves))
    jobs = result.segments["job"].to_numpy()
    columns, gpus = column[queues.queue_of_job[jobs]], queues.amounts[jobs][:, list(flavors)].sum(axis=1)
    counted = (columns >= 0) & (gpus > 0)
    ends = result.segments["end_time"].fill_null(np.inf).clip(upper_bound=last).to_numpy()
    return Held.of(
        [_leaf(queues.tree, n) for n in leaves],
        columns[counted],
        result.segments["start_time"].to_numpy()[counted],
        ends[counted],
        gpus[counted],
    )
