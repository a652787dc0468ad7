"""Two divisions the DRF paper compares itself with: asset fairness and competitive equilibrium from equal incomes."""

from __future__ import annotations

import numpy as np

from gputwin.simulation.fairness.drf import Table


def asset_fairness(demands: Table, capacity: Table) -> Table:
    """Return each tenant's tasks when all hold the same sum of parts of each resource (DRF paper, section 5.1)."""
    value = (demands / capacity).sum(axis=1)
    tasks = 1.0 / value
    return np.asarray(tasks / (tasks @ demands / capacity).max())


def equal_incomes(demands: Table, capacity: Table) -> Table:
    """Return each tenant's tasks in a market with equal incomes: the product of utilities is greatest (section 5.2).

    Solved by its dual: prices p ≥ 0 minimise p·capacity − Σ log(p·demand), and a tenant buys 1/(p·demand) tasks.
    """
    from scipy.optimize import minimize

    parts = demands / capacity

    def dual(prices: Table) -> tuple[float, Table]:
        cost = parts @ prices
        return float(prices.sum() - np.log(cost).sum()), 1.0 - (parts / cost[:, None]).sum(axis=0)

    start = np.full(capacity.size, demands.shape[0] / capacity.size)
    bounds = [(1e-12, None)] * capacity.size
    found = minimize(dual, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10})
    return np.asarray(1.0 / (parts @ found.x))
