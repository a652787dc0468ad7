"""How fairly tenants shared over time: what each held and wanted, Jain's index, and the share error.

Pure functions of a run's jobs and segments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.units import WHOLE_GPU_MILLI

Table = NDArray[np.float64]


class TenantSeries(NamedTuple):
    """GPUs over time: a row per time (s), a column per tenant."""

    times: Table
    tenants: tuple[str, ...]
    held: Table
    wanted: Table
    """Held and waited for: the GPUs of all its jobs in the system."""

    def frame(self) -> pl.DataFrame:
        """Return the series in long form: time, tenant, GPUs held and wanted."""
        return pl.DataFrame(
            {
                "time": np.repeat(self.times, len(self.tenants)),
                "tenant": list(self.tenants) * self.times.size,
                "gpus_held": self.held.ravel(),
                "gpus_wanted": self.wanted.ravel(),
            }
        )


def tenant_series(jobs: pl.DataFrame, segments: pl.DataFrame, times: Table) -> TenantSeries:
    """Return what each tenant held and wanted at `times`; a job that starts or ends then counts as it is afterwards."""
    names = tuple(jobs["tenant"].unique().sort().to_list())
    number = {name: t for t, name in enumerate(names)}
    of_job = np.array([number[name] for name in jobs["tenant"]], dtype=np.int64)
    gpus = jobs["gpu_milli"].to_numpy() / WHOLE_GPU_MILLI
    row = segments["job"].to_numpy()
    start, end = segments["start_time"].to_numpy(), segments["end_time"].to_numpy()
    left = jobs["end_time"].fill_null(np.inf).fill_nan(np.inf).to_numpy()
    in_system = jobs["submit_time"].to_numpy()
    possible = (jobs["outcome"] != "never_fits").to_numpy() & (jobs["outcome"] != "lost").to_numpy()
    held, wanted = (np.zeros((times.size, len(names))) for _ in range(2))
    for t in range(len(names)):
        mine = of_job[row] == t
        held[:, t] = _in_force(start[mine], end[mine], gpus[row[mine]], times)
        ours = (of_job == t) & possible
        wanted[:, t] = _in_force(in_system[ours], left[ours], gpus[ours], times)
    return TenantSeries(times, names, held, wanted)


def _in_force(begin: Table, end: Table, amount: Table, times: Table) -> Table:
    """Return the sum of amounts in force at each time, of intervals [begin, end)."""
    total = np.zeros(times.size)
    for when, sign in ((begin, 1.0), (end, -1.0)):
        order = np.argsort(when)
        summed = np.concatenate([[0.0], np.cumsum(amount[order])])
        total += sign * summed[np.searchsorted(when[order], times, "right")]
    return np.round(total, 9)


def jain(values: Table) -> float:
    """Return Jain's index (Σx)²/(n·Σx²): 1 for equal values, 1/n if one has all (Jain, Chiu and Hawe, 1984)."""
    square = float((values**2).sum())
    return float(values.sum() ** 2 / (values.size * square)) if values.size and square > 0 else 1.0


def jain_over_time(series: TenantSeries, weights: Mapping[str, float] | None = None) -> Table:
    """Return Jain's index of GPUs held per GPU due, at each time, over the tenants that want any.

    Due is the weighted max-min share of what all hold together, so that who wants little does not count as wronged.
    """
    due = fair_shares(series, weights)
    index = np.ones(series.times.size)
    for i in range(series.times.size):
        wants = due[i] > 0
        index[i] = jain(series.held[i, wants] / due[i, wants])
    return index


def share_error(series: TenantSeries, weights: Mapping[str, float] | None = None) -> Table:
    """Return the part of the GPUs held that is in the wrong hands at each time: ½·Σ|held − due| / Σ held, from 0 to 1."""
    total = series.held.sum(axis=1)
    wrong = np.abs(series.held - fair_shares(series, weights)).sum(axis=1) / 2
    return np.divide(wrong, total, out=np.zeros(total.size), where=total > 0)


def fair_shares(series: TenantSeries, weights: Mapping[str, float] | None = None) -> Table:
    """Return the GPUs due to each tenant at each time: what all hold, divided max-min by weight, none above its want."""
    weight = np.array([(weights or {}).get(name, 1.0) for name in series.tenants])
    due = np.zeros(series.held.shape)
    for i in range(series.times.size):
        due[i] = max_min(float(series.held[i].sum()), series.wanted[i], weight)
    return due


def max_min(total: float, wanted: Table, weight: Table) -> Table:
    """Return the weighted max-min division of `total` among tenants none of which gets more than it wants."""
    given = np.zeros(wanted.size)
    left, open_weight = total, float(weight[wanted > 0].sum())
    for t in np.argsort(wanted / weight, kind="stable"):
        if wanted[t] > 0 and open_weight > 0:
            given[t] = min(wanted[t], left * weight[t] / open_weight)
            left -= given[t]
            open_weight -= float(weight[t])
    return given
