"""How fairly tenants shared over time: what each held and wanted, Jain's index, and the share error.

Pure functions of a run's jobs and segments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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


def tenant_series(
    jobs: pl.DataFrame, segments: pl.DataFrame, times: Table, gpus_held: Table | None = None
) -> TenantSeries:
    """Return what each tenant held and wanted at `times`; a job that starts or ends then counts as it is afterwards.

    `gpus_held`: by each segment, where that may differ from what its job asks for (`simulation/held.py`). Who holds more
    than it asks for, as a whole MIG instance, wants that.
    """
    names = tuple(jobs["tenant"].unique().sort().to_list())
    number = {name: t for t, name in enumerate(names)}
    of_job = jobs["tenant"].replace_strict(number, return_dtype=pl.Int64).to_numpy()
    gpus = jobs["gpu_milli"].to_numpy() / WHOLE_GPU_MILLI
    row = segments["job"].to_numpy()
    start, end = segments["start_time"].to_numpy(), segments["end_time"].to_numpy()
    left = jobs["end_time"].fill_null(np.inf).fill_nan(np.inf).to_numpy()
    in_system = jobs["submit_time"].to_numpy()
    possible = (jobs["outcome"] != "never_fits").to_numpy() & (jobs["outcome"] != "lost").to_numpy()
    amount = gpus[row] if gpus_held is None else gpus_held
    held = _in_force(start, end, amount, of_job[row], times, len(names))
    wanted = _in_force(in_system[possible], left[possible], gpus[possible], of_job[possible], times, len(names))
    wanted += _in_force(start, end, np.maximum(amount - gpus[row], 0.0), of_job[row], times, len(names))
    return TenantSeries(times, names, held, wanted)


def _in_force(begin: Table, end: Table, amount: Table, tenant: NDArray[np.int64], times: Table, tenants: int) -> Table:
    """Return the sum of each tenant's amounts in force at each time, of intervals [begin, end); times ascend."""
    changes = np.zeros((times.size + 1) * tenants)
    for when, sign in ((begin, 1.0), (end, -1.0)):
        at = np.searchsorted(times, when) * tenants + tenant
        changes += sign * np.bincount(at, amount, changes.size)
    in_force: Table = np.cumsum(changes.reshape(-1, tenants)[:-1], axis=0)
    return np.asarray(np.round(in_force, 9), np.float64)


def jain(values: Table) -> float:
    """Return Jain's index (Σx)²/(n·Σx²): 1 for equal values, 1/n if one has all (Jain, Chiu and Hawe, 1984)."""
    square = float((values**2).sum())
    return float(values.sum() ** 2 / (values.size * square)) if values.size and square > 0 else 1.0


def jain_over_time(series: TenantSeries, weights: Mapping[str, float] | None = None) -> Table:
    """Return Jain's index of GPUs held per GPU due, at each time, over the tenants that want any.

    Due is the weighted max-min share of what all hold together, so that who wants little does not count as wronged.
    """
    return _jain_by_row(series.held, fair_shares(series, weights))


def share_error(series: TenantSeries, weights: Mapping[str, float] | None = None) -> Table:
    """Return the part of the GPUs held beyond fair shares at each time: ½·Σ|held − due| / Σ held, from 0 to 1."""
    return _wrong(series.held, fair_shares(series, weights))


def fair_shares(series: TenantSeries, weights: Mapping[str, float] | None = None) -> Table:
    """Return the GPUs due to each tenant at each time: what all hold, divided max-min by weight, none above its want."""
    weight = np.array([(weights or {}).get(name, 1.0) for name in series.tenants])
    due = np.zeros(series.held.shape)
    for i in range(series.times.size):
        due[i] = max_min(float(series.held[i].sum()), series.wanted[i], weight)
    return due


def max_min(total: float, wanted: Table, weight: Table) -> Table:
    """Return the weighted max-min division of `total` among tenants none of which gets more than it wants."""
    if total >= wanted.sum():
        return wanted.astype(float)
    # Per weight, all get the same level but for those who want less: the first level that the next one would exceed.
    order = np.argsort(wanted / weight, kind="stable")
    before = np.cumsum(wanted[order]) - wanted[order]
    open_weight = np.cumsum(weight[order][::-1])[::-1]
    levels = (total - before) / open_weight
    level = levels[np.argmax(levels <= wanted[order] / weight[order])]
    return np.asarray(np.minimum(wanted, level * weight))


class SharesOverTime(NamedTuple):
    """How tenants' GPUs compare with their fair shares at some times of a run."""

    times: Table
    share_error: Table
    jain: Table
    summary: dict[str, Any]


MOST_TIMES, MOST_CELLS = 1000, 2_000_000
"""Of a run's series at most so many times are looked at, and so many times × tenants."""


def shares_over_time(
    jobs: pl.DataFrame,
    segments: pl.DataFrame,
    times: Table,
    weights: Mapping[str, float] | None = None,
    gpus_held: Table | None = None,
) -> SharesOverTime | None:
    """Return share error and Jain's index over (some of) the times, and their means; None for fewer than two tenants.

    Times at which nobody holds a GPU do not count. `most_above` and `most_below` are the tenants farthest from their fair
    share on average, in GPUs.
    """
    tenants = jobs["tenant"].n_unique()
    if tenants < 2 or not times.size or not (jobs["gpu_milli"] > 0).any():
        return None
    at_most = max(min(MOST_TIMES, MOST_CELLS // tenants), 1)
    series = tenant_series(jobs, segments, times[:: -(-times.size // at_most)], gpus_held)
    busy = series.held.sum(axis=1) > 0
    if not busy.any():
        return None
    due = fair_shares(series, weights)
    error = np.where(busy, _wrong(series.held, due), np.nan)
    index = np.where(busy, _jain_by_row(series.held, due), np.nan)
    apart = (series.held - due)[busy].mean(axis=0)
    above, below = int(apart.argmax()), int(apart.argmin())
    summary = {
        "share_error": {"mean": float(error[busy].mean()), "max": float(error[busy].max())},
        "jain": {"mean": float(index[busy].mean()), "min": float(index[busy].min())},
        "most_above": {"tenant": series.tenants[above], "gpus": float(apart[above])},
        "most_below": {"tenant": series.tenants[below], "gpus": float(apart[below])},
    }
    return SharesOverTime(series.times, error, index, summary)


def _wrong(held: Table, due: Table) -> Table:
    total = held.sum(axis=1)
    return np.divide(np.abs(held - due).sum(axis=1) / 2, total, out=np.zeros(total.size), where=total > 0)


def _jain_by_row(held: Table, due: Table) -> Table:
    """Return Jain's index of GPUs held per GPU due in each row, over the tenants that are due any."""
    ratio = np.divide(held, due, out=np.zeros(held.shape), where=due > 0)
    square = (due > 0).sum(axis=1) * (ratio**2).sum(axis=1)
    return np.divide(ratio.sum(axis=1) ** 2, square, out=np.ones(square.size), where=square > 0)
