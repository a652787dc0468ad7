"""A run's jobs in Kueue's queues: which queue each tenant's jobs wait in, and what they ask of which flavor."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from gputwin.core.errors import InputError, UserError
from gputwin.simulation.engine.state.cohorts import Cohorts
from gputwin.simulation.engine.state.records import WHOLE, Flags, Floats, Ints
from gputwin.simulation.engine.state.tenants import CPU, GPU, MEMORY
from gputwin.simulation.policy import FAIRNESS
from gputwin.simulation.policy_parameters import settle
from gputwin.simulation.quotas.balance import potential
from gputwin.simulation.quotas.cohorts import in_whole_units, make_cohorts
from gputwin.simulation.quotas.fair import FINAL_SHARE, INITIAL_SHARE
from gputwin.simulation.quotas.kueue_yaml import LocalQueue, read_local_queues, read_quotas
from gputwin.simulation.quotas.tree import QuotaTree
from gputwin.simulation.tenants import Fairness
from gputwin.simulation.workload import Workload

MIB = 1 << 20
PODS = "pods"


def cohorts_of(workload: Workload, demands: Floats, fairness: Fairness) -> Cohorts:
    """Return the tree of the file that the rule names, with each tenant's queue and what jobs of each class ask for.

    `demands` has a row per class and a column per resource of `engine/state/tenants.py`.
    """
    path = Path(fairness.queues or "")
    tree = read_quotas(path)
    queue_of = queues_of_tenants(workload.tenants, tree, read_local_queues(path), path, fairness.default_queue)
    given = settle(FAIRNESS.get(fairness.name), fairness.parameters)
    used = [s for s, k in ((FINAL_SHARE, "final_share"), (INITIAL_SHARE, "initial_share")) if given.get(k, 1)]
    if not used:
        raise UserError(f"fairness '{fairness.name}': both strategies are off; leave one on")
    queue_of_class = np.zeros(workload.shapes.size, np.int64)
    queue_of_class[workload.jobs["shape"]] = queue_of[workload.jobs["tenant"]]
    asked = Asked(demands, workload.shapes["instances"], _allowed(workload), workload.models)
    cohorts = make_cohorts(tree, queue_of, amounts_of(asked, tree, queue_of_class), workload.size, used)
    return in_whole_units(cohorts, [WHOLE if resource.endswith("gpu") else 1 for _, resource in tree.resources])


def queues_of_tenants(
    tenants: tuple[str, ...], tree: QuotaTree, local: list[LocalQueue], path: Path, default: str | None
) -> Ints:
    """Return the node of each tenant's queue; a tenant without one is a user error, unless there is a default queue.

    A tenant is the LocalQueue "namespace/name", else the namespace of LocalQueues that all lead to one ClusterQueue, else
    the name of such LocalQueues, else the ClusterQueue of its name.
    """
    known = {node.name: n for n, node in enumerate(tree.nodes) if node.is_queue}
    leads: dict[str, set[str]] = {}
    for queue in local:
        if queue.cluster_queue not in known:
            name = f"{queue.namespace}/{queue.name}"
            problem = f"LocalQueue {name} leads to ClusterQueue '{queue.cluster_queue}', which is not there"
            raise InputError(problem, file=path, field="spec.clusterQueue")
        for name in (f"{queue.namespace}/{queue.name}", queue.namespace, queue.name):
            leads.setdefault(name, set()).add(queue.cluster_queue)
    if default is not None and default not in known:
        raise UserError(f"fairness.default_queue: no ClusterQueue '{default}' in {path}; there are: {', '.join(known)}")
    nodes = np.zeros(len(tenants), np.int64)
    for t, tenant in enumerate(tenants):
        found = leads.get(tenant, set())
        if len(found) > 1:
            raise UserError(
                f"fairness.queues: tenant '{tenant}' has LocalQueues that lead to {', '.join(sorted(found))} in {path}; "
                "name the tenant namespace/name"
            )
        leads_to = next(iter(found), tenant if tenant in known else default)
        if leads_to is None:
            raise UserError(
                f"fairness.queues: tenant '{tenant}' has no LocalQueue or ClusterQueue in {path}; add one, or give "
                f"fairness.default_queue (--default-queue), one of: {', '.join(known)}"
            )
        nodes[t] = known[leads_to]
    return nodes


def beyond_quota(workload: Workload, cohorts: Cohorts) -> Flags:
    """Return the classes one job of which exceeds what its queue could ever have."""
    queue_of_class = np.zeros(workload.shapes.size, np.int64)
    queue_of_class[workload.jobs["shape"]] = cohorts.queue_of[workload.jobs["tenant"]]
    most = np.array(
        [
            [
                potential(cohorts.parent, cohorts.subtree, cohorts.guaranteed, cohorts.borrowing, n, r)
                for r in range(cohorts.subtree.shape[1])
            ]
            for n in range(cohorts.parent.size)
        ]
    )
    return np.asarray((cohorts.amounts > most[queue_of_class]).any(axis=1))


class Asked(NamedTuple):
    """What one job of each class asks for."""

    demands: Floats
    """A column per resource of `engine/state/tenants.py`."""
    instances: Ints
    allowed: Flags
    """[class, model]"""
    models: tuple[str, ...]


def _allowed(workload: Workload) -> Flags:
    """Return on which GPU models all instances of a job of each class may run."""
    allowed = np.ones((workload.shapes.size, len(workload.models)), np.bool_)
    of_shape = np.repeat(np.arange(workload.shapes.size), workload.shapes["groups"])
    np.logical_and.at(allowed, of_shape, workload.allowed[workload.groups["request"]])
    return allowed


def amounts_of(asked: Asked, tree: QuotaTree, queue_of_class: Ints) -> Floats:
    """Return what one job of each class asks of each resource of a flavor.

    It asks for the first flavor of its queue that it may use: one named after a GPU model serves jobs that may run on it,
    any other serves all. Resources that the queue has no quota of are not counted.
    """
    amounts = np.zeros((asked.demands.shape[0], len(tree.resources)))
    for n in np.unique(queue_of_class).tolist():
        classes = np.flatnonzero(queue_of_class == n)
        by_resource: dict[str, list[str]] = {}
        for flavor, resource in tree.nodes[n].quotas:
            by_resource.setdefault(resource, []).append(flavor)
        for resource, flavors in by_resource.items():
            wanted = _wanted(resource, asked)
            if wanted is None:
                continue
            left = classes
            for flavor in flavors:
                models = [m for m, model in enumerate(asked.models) if model and model.lower() in flavor.lower()]
                serves = asked.allowed[left][:, models].any(axis=1) if models else np.ones(left.size, np.bool_)
                amounts[left[serves], tree.resources.index((flavor, resource))] = wanted[left[serves]]
                left = left[~serves]
    return amounts


def _wanted(resource: str, asked: Asked) -> Floats | None:
    """Return what one job of each class asks of a resource by its Kubernetes name; None where traces do not say."""
    if resource == "cpu":
        return asked.demands[:, CPU]
    if resource == "memory":
        return asked.demands[:, MEMORY] * MIB
    if resource == PODS:
        return asked.instances.astype(np.float64)
    return asked.demands[:, GPU] / WHOLE if resource.endswith("gpu") else None
