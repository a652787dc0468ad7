"""The tree of tenants with quotas: what each may hold, holds, borrows and lends, summed up for groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.units import WHOLE_GPU_MILLI, percent
from gputwin.report.page import Kind, TablePart, number
from gputwin.simulation.cluster_at import span_of
from gputwin.simulation.result import SimulationResult

_NOTE = (
    "GPUs, as means over the run. Borrowed is what is held beyond the nominal quota; lent is the unused quota that others "
    "hold at that time, in proportion to what each leaves unused. Tenants without a quota are not counted."
)
_DEEPER = "· "
_ALL = "tenants with a quota"


@dataclass(frozen=True)
class Quota:
    """One tenant's: GPUs it may count on, means over the run of what it held, borrowed and lent, and the most it held."""

    nominal: float
    used: float
    borrowed: float
    lent: float
    most: float


def quota_tree(result: SimulationResult) -> TablePart | None:
    """Return tenants with a quota or guarantee below their groups; None where the run's rules have none."""
    fairness = result.scenario.fairness if "scenario" in result.manifest else None
    terms = {} if fairness is None else fairness.tenants
    nominal = {
        n: g for n, t in terms.items() if (g := t.guaranteed if t.guaranteed is not None else t.gpus) is not None
    }
    if not nominal:
        return None
    quotas = quotas_of(result, nominal)
    held = _held(result, list(nominal))
    rows: list[tuple[str, ...]] = []
    groups = {name: tuple(part for part in terms[name].group.split("/") if part) for name in nominal}
    for path in _paths(groups):
        below = [n for n, group in groups.items() if group[: len(path)] == path]
        rows.append(_row(path[-1] if path else _ALL, len(path), _sum([quotas[n] for n in below], held.most(below))))
        own = sorted(n for n, group in groups.items() if group == path)
        rows += [_row(name, len(path) + 1, quotas[name]) for name in own]
    kinds = {"tenant": Kind.CODE} | dict.fromkeys(
        ("nominal", "used", "of nominal", "borrowed", "lent", "used at most"), Kind.NUMBER
    )
    return TablePart("Quotas and cohorts", kinds, tuple(rows), _NOTE)


def _paths(groups: Mapping[str, tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return every group and the groups above it, each before those below it."""
    return sorted({group[:depth] for group in groups.values() for depth in range(len(group) + 1)})


def _sum(quotas: Sequence[Quota], most: float) -> Quota:
    """Return the quota of a group; the most it held is not a sum, for its tenants held their most at different times."""
    used, borrowed, lent = sum(q.used for q in quotas), sum(q.borrowed for q in quotas), sum(q.lent for q in quotas)
    return Quota(sum(q.nominal for q in quotas), used, borrowed, lent, most)


def _row(name: str, depth: int, quota: Quota) -> tuple[str, ...]:
    of = percent(quota.used / quota.nominal) if quota.nominal else "–"
    shown = (quota.nominal, quota.used), (quota.borrowed, quota.lent, quota.most)
    return (_DEEPER * depth + name, *map(number, shown[0]), of, *map(number, shown[1]))


@dataclass(frozen=True)
class _Held:
    """GPUs that tenants held from each of these times to the next: a row per time, a column per tenant."""

    names: Sequence[str]
    times: NDArray[np.float64]
    gpus: NDArray[np.float64]

    def most(self, names: Sequence[str]) -> float:
        """Return the most GPUs that these tenants held together."""
        columns = [self.names.index(name) for name in names]
        return float(self.gpus[:, columns].sum(axis=1).max(initial=0.0))


def _held(result: SimulationResult, names: Sequence[str]) -> _Held:
    """Return what these tenants held over time."""
    _, last = span_of(result)
    held = result.placements.group_by("segment").agg(
        ((pl.col("gpu_count").cast(pl.Int64) * pl.col("gpu_milli")).sum() / WHOLE_GPU_MILLI).alias("gpus")
    )
    rows = (
        result.segments.with_row_index("segment")
        .join(held, on="segment")
        .join(result.jobs.with_row_index("job").select("job", "tenant"), on="job")
        .filter(pl.col("tenant").is_in(names))
        .with_columns(pl.col("end_time").clip(upper_bound=last))
    )
    column = rows["tenant"].replace_strict(names, range(len(names)), return_dtype=pl.Int64).to_numpy()
    gpus = rows["gpus"].to_numpy()
    edges, where = np.unique(
        np.concatenate([rows["start_time"].to_numpy(), rows["end_time"].to_numpy()]), return_inverse=True
    )
    level = np.zeros((len(edges), len(names)))
    np.add.at(level, (where[: len(gpus)], column), gpus)
    np.add.at(level, (where[len(gpus) :], column), -gpus)
    return _Held(names, edges, np.cumsum(level, axis=0))


def quotas_of(result: SimulationResult, nominal: Mapping[str, float]) -> dict[str, Quota]:
    """Return what each tenant held of its nominal GPUs over the run, borrowed and lent."""
    first, last = span_of(result)
    names = list(nominal)
    held = _held(result, names)
    edges, used = held.times, held.gpus
    quota = np.array([nominal[name] for name in names], dtype=float)
    borrowed = np.maximum(used - quota, 0.0)
    unused = np.maximum(quota - used, 0.0)
    total = unused.sum(axis=1)
    part = np.minimum(borrowed.sum(axis=1) / np.where(total > 0, total, 1.0), 1.0)
    lent = unused * part[:, None]
    seconds = np.diff(edges, append=last) if len(edges) else np.zeros(0)
    share = np.maximum(seconds, 0.0) / max(last - first, 1e-12)
    mean_used, mean_borrowed, mean_lent = share @ used, share @ borrowed, share @ lent
    return {
        name: Quota(
            float(quota[k]), float(mean_used[k]), float(mean_borrowed[k]), float(mean_lent[k]), held.most([name])
        )
        for k, name in enumerate(names)
    }
