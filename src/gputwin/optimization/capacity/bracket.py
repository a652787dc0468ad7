"""A first guess of the capacity a target needs, from theory alone."""

from __future__ import annotations

import numpy as np

from gputwin.optimization.capacity.target import Floats, Target
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.workload import Workload

_RESOURCES = {"cpu": "cpu_milli", "memory": "memory_mib"}
_FOR_MEAN = 0.8
"""Share of jobs that may find the cluster full where a mean is asked for: a mean says little about how many wait."""


def offered_share(workload: Workload, cluster: Cluster, target: Target) -> float:
    """Return the capacity theory asks for, as a multiple of the cluster's.

    The infinite-server approximation (Jennings, Mandelbaum, Massey and Whitt, "Server Staffing to Meet Time-Varying
    Demand", 1996): a job waits where the demand of those before it exceeds capacity, so the capacity wanted is the
    demand that no more jobs than may wait find on arrival. Demand is what jobs would hold if each started at once; the
    most demanding of GPUs, CPU and memory counts.
    """
    jobs = workload.jobs
    share = _FOR_MEAN if target.share is None else target.share
    demands = {"gpu": (jobs["gpu_milli"], cluster.gpu_count * 1000.0)}
    per_job = _totals(workload)
    nodes = cluster.nodes()
    for name, column in _RESOURCES.items():
        if not nodes[column].null_count():
            demands[name] = (per_job[name], float(nodes[column].sum()))
    patience = target.seconds if target.of == "wait" else 0.0
    return max(
        (
            float(np.quantile(_found(jobs["submit"], jobs["duration"], amount, patience), share)) / capacity
            for amount, capacity in demands.values()
            if capacity > 0 and amount.any()
        ),
        default=1.0,
    )


def _totals(workload: Workload) -> dict[str, Floats]:
    """Return the CPU and memory each job takes in all."""
    groups, requests = workload.groups, workload.requests
    totals = {}
    for name in _RESOURCES:
        of_group = requests[name][groups["request"]] * groups["size"]
        of_shape = np.add.reduceat(of_group, workload.shapes["first_group"])
        totals[name] = of_shape[workload.jobs["shape"]].astype(np.float64)
    return totals


def _found(submit: Floats, run: Floats, amount: Floats, patience: float) -> Floats:
    """Return what each arrival finds in demand that is still there when its patience ends, itself included."""
    order = np.argsort(submit + run, kind="stable")
    ended = np.concatenate([[0.0], np.cumsum(amount[order])])
    gone = ended[np.searchsorted((submit + run)[order], submit + patience, side="right")]
    came = np.cumsum(amount)
    return np.asarray(np.maximum(came - np.minimum(gone, came), amount))
