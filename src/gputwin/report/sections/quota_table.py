"""Quotas over time as a table: what each may hold, holds, borrows and lends, summed up for groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gputwin.core.units import percent
from gputwin.report.page import Kind, TablePart, number

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_DEEPER = "· "


@dataclass(frozen=True)
class Quota:
    """One tenant's: GPUs it may count on, means over the run of what it held, borrowed and lent, and the most it held."""

    nominal: float
    used: float
    borrowed: float
    lent: float
    most: float


def tree_table(
    groups: Mapping[str, tuple[str, ...]], quotas: Mapping[str, Quota], held: Held, who: str, all_: str, note: str
) -> TablePart:
    """Return one row per leaf of the tree below the groups it is in (`groups`, the outermost first), which are sums."""
    rows: list[tuple[str, ...]] = []
    paths = _paths(groups)
    # Where all are in one group, its sum is that of all.
    top = 1 if len(paths) > 1 and len({group[:1] for group in groups.values()}) == 1 else 0
    for path in paths[top:]:
        below = [n for n, group in groups.items() if group[: len(path)] == path]
        rows.append(
            _row(path[-1] if path else all_, len(path) - top, sum_of([quotas[n] for n in below], held.most(below)))
        )
        own = sorted(n for n, group in groups.items() if group == path)
        rows += [_row(name, len(path) + 1 - top, quotas[name]) for name in own]
    kinds = {who: Kind.CODE} | dict.fromkeys(
        ("nominal", "used", "of nominal", "borrowed", "lent", "used at most"), Kind.NUMBER
    )
    return TablePart("Quotas and cohorts", kinds, tuple(rows), note)


def _paths(groups: Mapping[str, tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return every group and the groups above it, each before those below it."""
    return sorted({group[:depth] for group in groups.values() for depth in range(len(group) + 1)})


def sum_of(quotas: Sequence[Quota], most: float) -> Quota:
    """Return several quotas as one; the most held is not a sum, for each was held most at another time."""
    used, borrowed, lent = sum(q.used for q in quotas), sum(q.borrowed for q in quotas), sum(q.lent for q in quotas)
    return Quota(sum(q.nominal for q in quotas), used, borrowed, lent, most)


def _row(name: str, depth: int, quota: Quota) -> tuple[str, ...]:
    of = percent(quota.used / quota.nominal) if quota.nominal else "–"
    means = [f"{value:,.1f}" for value in (quota.used, quota.borrowed, quota.lent)]
    return (_DEEPER * depth + name, number(quota.nominal), means[0], of, *means[1:], number(quota.most))


@dataclass(frozen=True)
class Held:
    """GPUs that tenants held from each of these times to the next: a row per time, a column per tenant."""

    names: Sequence[str]
    times: Floats
    gpus: Floats

    @classmethod
    def of(cls, names: Sequence[str], columns: Ints, begins: Floats, ends: Floats, gpus: Floats) -> Held:
        """Return what is held where each of `columns` held so many GPUs from its begin to its end, s."""
        edges, where = np.unique(np.concatenate([begins, ends]), return_inverse=True)
        level = np.zeros((len(edges), len(names)))
        np.add.at(level, (where[: len(gpus)], columns), gpus)
        np.add.at(level, (where[len(gpus) :], columns), -gpus)
        return cls(names, edges, np.cumsum(level, axis=0))

    def most(self, names: Sequence[str]) -> float:
        """Return the most GPUs that these tenants held together."""
        columns = [self.names.index(name) for name in names]
        return float(self.gpus[:, columns].sum(axis=1).max(initial=0.0))


def quotas_of(
    held: Held, nominal: Mapping[str, float], span: tuple[float, float], limits: Mapping[str, float] | None = None
) -> dict[str, Quota]:
    """Return what each tenant held of its nominal GPUs over the run, borrowed and lent, at most its limit."""
    first, last = span
    names = list(nominal)
    used = held.gpus[:, [held.names.index(name) for name in names]]
    quota = np.array([nominal[name] for name in names], dtype=float)
    most_lent = np.array([(limits or {}).get(name, np.inf) for name in names], dtype=float)
    borrowed = np.maximum(used - quota, 0.0)
    unused = np.minimum(np.maximum(quota - used, 0.0), most_lent)
    total = unused.sum(axis=1)
    part = np.minimum(borrowed.sum(axis=1) / np.where(total > 0, total, 1.0), 1.0)
    lent = unused * part[:, None]
    seconds = np.diff(held.times, append=last) if len(held.times) else np.zeros(0)
    share = np.maximum(seconds, 0.0) / max(last - first, 1e-12)
    mean_used, mean_borrowed, mean_lent = share @ used, share @ borrowed, share @ lent
    return {
        name: Quota(
            float(quota[k]), float(mean_used[k]), float(mean_borrowed[k]), float(mean_lent[k]), held.most([name])
        )
        for k, name in enumerate(names)
    }
