"""Shares without optimisation: each job an equal part of the cluster, or of each GPU model in proportion to its GPUs."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.planning.snapshot import PLANNERS, Floats, Plan, PlannerPolicy, Snapshot


def proportional_shares(snapshot: Snapshot) -> Floats:
    """Return each job's share of time on each model: all of its time, models in proportion to their GPUs."""
    row = snapshot.capacity / snapshot.capacity.sum()
    return np.tile(row, (len(snapshot.ids), 1))


def isolated_shares(snapshot: Snapshot) -> Floats:
    """Return what a job gets of 1/n of the cluster as its own: of each model its GPUs / n, at most all of its time."""
    jobs = max(len(snapshot.ids), 1)
    shares = snapshot.capacity / jobs / snapshot.gpus[:, None]
    of_time: Floats = shares / np.maximum(shares.sum(axis=1), 1.0)[:, None]
    return of_time


def proportional_throughputs(snapshot: Snapshot) -> Floats:
    """Return each job's steps a second under proportional shares, by which max-min fairness compares jobs."""
    mean: Floats = (snapshot.throughputs * proportional_shares(snapshot)).sum(axis=1)
    return mean


PLANNERS.add(
    PlannerPolicy(
        "isolated",
        "1/n of the cluster for each of n jobs",
        "Narayanan et al., Heterogeneity-Aware Cluster Scheduling Policies, OSDI'20, section 4.2",
        lambda: lambda s: Plan.of(isolated_shares(s)),
        knows_speed=False,
    )
)
PLANNERS.add(
    PlannerPolicy(
        "proportional",
        "each job on each GPU model in proportion to the model's GPUs",
        "Narayanan et al., OSDI'20, section 4.1 (the equal share that throughputs are normalised by)",
        lambda: lambda s: Plan.of(_fitted(s, proportional_shares(s))),
        knows_speed=False,
    )
)


def _fitted(snapshot: Snapshot, shares: Floats) -> Floats:
    """Return the shares scaled down until they fit the GPUs."""
    asked = (shares * snapshot.gpus[:, None]).sum(axis=0)
    most = float((asked / np.maximum(snapshot.capacity, 1e-300)).max(initial=1.0))
    return shares / most
