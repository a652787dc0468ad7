"""What busy GPUs draw under caps of nodes and racks: limits change when a GPU of the node or rack becomes busy or idle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from gputwin.simulation.power.caps import Budget, Floats, Ints, PowerCaps, budget_of
from gputwin.simulation.power.devices import gpu_power


def capped_load(
    held: pl.DataFrame, models: Sequence[str | None], counts: Ints, racks: Ints, caps: PowerCaps
) -> tuple[Floats, Floats, Floats]:
    """Return the draw above context, W, and from when to when, of each stretch in which a held device has one limit.

    `held`: node, start_time, end_time, fresh_start and share, one row per device and holder (`energy.py`).
    """
    budget = budget_of(caps, models, counts, racks)
    region = racks if caps.rack_watts < np.inf else np.arange(len(models))
    row, begin, end = _stretches(held, region)
    node = held["node"].to_numpy().astype(np.int64)[row]
    limit = _limits(held, budget, region, node, begin)
    share = held["share"].to_numpy()[row]
    return _draws([models[n] for n in node], limit, caps) * share, begin, end


def _busy(held: pl.DataFrame) -> pl.DataFrame:
    """Return (node, time, change): when devices become busy and idle."""
    fresh = held.filter(pl.col("fresh_start") < pl.col("end_time"))
    starts = fresh.select("node", time="fresh_start", change=pl.lit(1))
    return pl.concat([starts, fresh.select("node", time="end_time", change=pl.lit(-1))])


def _stretches(held: pl.DataFrame, region: Ints) -> tuple[Ints, Floats, Floats]:
    """Return the row of `held`, begin and end of each stretch between two changes in its node's region."""
    events = _busy(held)
    at, where = events["time"].to_numpy(), region[events["node"].to_numpy().astype(np.int64)]
    own = region[held["node"].to_numpy().astype(np.int64)]
    start, stop = held["start_time"].to_numpy(), held["end_time"].to_numpy()
    rows, begins, ends = [], [], []
    for r in np.unique(own).tolist():
        times = np.unique(at[where == r])
        members = np.flatnonzero(own == r)
        first = np.searchsorted(times, start[members], "right")
        count = np.maximum(np.searchsorted(times, stop[members], "left") - first, 0)
        row = np.repeat(members, count + 1)
        nth = np.arange(row.size) - np.repeat(np.cumsum(count + 1) - (count + 1), count + 1)
        k = np.repeat(first, count + 1) + nth
        padded = np.append(times, np.inf)
        rows.append(row)
        begins.append(np.where(nth == 0, start[row], padded[np.maximum(k - 1, 0)]))
        ends.append(np.where(nth == np.repeat(count, count + 1), stop[row], padded[np.minimum(k, times.size)]))
    if not rows:
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    return np.concatenate(rows), np.concatenate(begins), np.concatenate(ends)


def _limits(held: pl.DataFrame, budget: Budget, region: Ints, node: Ints, time: Floats) -> Floats:
    """Return the power limit of a busy GPU on these nodes from these times on, W."""
    events = _busy(held)
    of_node = _count(events, np.arange(region.size), node, time)
    of_region = _count(events, region, region[node], time)
    return budget.limit(node, np.maximum(of_node, 1), np.maximum(of_region, 1))


def _count(events: pl.DataFrame, region: Ints, asked: Ints, time: Floats) -> Floats:
    """Return the busy GPUs of each asked region right after each time."""
    where = region[events["node"].to_numpy().astype(np.int64)]
    at, change = events["time"].to_numpy(), events["change"].to_numpy()
    busy = np.zeros(asked.size)
    for r in np.unique(asked).tolist():
        mine = np.flatnonzero(where == r)
        order = mine[np.argsort(at[mine], kind="stable")]
        total = np.concatenate([[0], np.cumsum(change[order])])
        wanted = asked == r
        busy[wanted] = total[np.searchsorted(at[order], time[wanted], "right")]
    return busy


def _draws(models: list[str | None], limit: Floats, caps: PowerCaps) -> Floats:
    """Return the draw of busy GPUs above that of a loaded context, W."""
    names: npt.NDArray[np.object_] = np.array([m or "" for m in models], object)
    found = np.zeros(limit.size)
    for name in set(names.tolist()):
        mine, gpu = names == name, gpu_power(name)
        own = np.clip(limit[mine], gpu.least_limit, min(caps.limits.get(name, np.inf), gpu.limit_watts))
        values, inverse = np.unique(own, return_inverse=True)
        found[mine] = np.array([gpu.draw(value) for value in values])[inverse] - gpu.context_watts
    return found
