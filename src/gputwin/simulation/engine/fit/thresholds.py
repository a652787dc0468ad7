"""Who is concerned when a total changes: the waiting groups whose threshold lies between its old and its new value.

Each total is compared with one amount per task group only: the room of a request with the group's size, free GPUs with the
GPUs it needs. So the groups of each total are sorted by that amount once, and a mark says how many of them the total
reaches. When the total changes, only the groups between the old and the new mark are looked at, and the mark is moved only
when the total passes the amount of a group that waits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.state.records import Ints, Records, SmallInts, wide

ENTRY = np.dtype([("amount", np.int64), ("shape", np.int32), ("waits", np.int32)], align=True)
"""The amount of one group of a shape; `waits`: 1 where somebody waits with this shape."""

MARK = np.dtype([("begin", np.int32), ("end", np.int32), ("at", np.int32)], align=True)
"""The groups of one total are entries begin..end; of those that wait, it reaches the ones before `at`."""

ENDLESS = 1 << 62
"""No total is as large."""

PER_KIND = 3
"""Totals of a kind of GPUs: instances whose GPUs fit, milli-GPU free on its models, milli-GPU free on all models.

Of requests without GPUs: CPU, memory and disk free in all."""


class Thresholds(NamedTuple):
    """Entries of all totals, and the mark of each: first those of entries, then PER_KIND of each kind."""

    entries: Records
    marks: Records
    places: (
        SmallInts  # [PER_KIND + 1, g]: where group g is among the entries of its request and of each total of its kind
    )


def make_thresholds(
    requests: Records, groups: Records, shape_of: SmallInts, account_request: Ints, kind_of: Ints, kinds: int
) -> Thresholds:
    """Return the sorted thresholds; `shape_of`: the shape of each group, `kind_of`: the kind of each request."""
    request, size = groups["request"].astype(np.int64), groups["size"].astype(np.int64)
    asked = requests[request]
    needed = size * asked["gpu_count"] * asked["gpu_milli"]
    with_gpus = asked["gpu_count"] > 0
    marks = np.zeros(account_request.size + PER_KIND * kinds, MARK)
    orders = [np.lexsort((size, request))]
    amounts = [size]
    bounds = np.searchsorted(np.sort(request), np.arange(requests.size + 1))
    marks["begin"][: account_request.size] = bounds[account_request]
    marks["end"][: account_request.size] = bounds[account_request + 1]
    kind = kind_of[request]
    bounds = np.searchsorted(np.sort(kind), np.arange(kinds + 1))
    for c, (of_gpus, other) in enumerate(((size, "cpu"), (needed, "memory"), (needed, "disk"))):
        amounts.append(np.where(with_gpus, of_gpus, size * asked[other]))
        orders.append(np.lexsort((amounts[-1], kind)))
        mine = marks[account_request.size + c :: PER_KIND]
        mine["begin"], mine["end"] = bounds[:-1] + (c + 1) * groups.size, bounds[1:] + (c + 1) * groups.size
    marks["at"] = marks["begin"]
    entries, places = np.zeros((len(orders), groups.size), ENTRY), np.zeros((len(orders), groups.size), np.int32)
    for c, (order, amount) in enumerate(zip(orders, amounts, strict=True)):
        entries[c]["amount"], entries[c]["shape"] = amount[order], shape_of[order]
        places[c, order] = np.arange(groups.size) + c * groups.size
    return Thresholds(entries.ravel(), marks, places)


@inlined
def set_waits(thresholds: Thresholds, g: int, waits: int) -> None:
    """Note that somebody waits with group g, or nobody any more."""
    for c in range(thresholds.places.shape[0]):
        thresholds.entries[thresholds.places[c, g]].waits = waits


@inlined
def below(thresholds: Thresholds, k: int, nothing: int) -> int:
    """Return the largest amount of a group that waits which the total of mark k reaches; `nothing` where there is none."""
    mark = thresholds.marks[k]
    at, begin = wide(mark.at) - 1, wide(mark.begin)
    while at >= begin and thresholds.entries[at].waits == 0:
        at -= 1
    return thresholds.entries[at].amount if at >= begin else nothing


@inlined
def above(thresholds: Thresholds, k: int) -> int:
    """Return the least amount of a group that waits which the total of mark k does not reach."""
    mark = thresholds.marks[k]
    at, end = wide(mark.at), wide(mark.end)
    while at < end and thresholds.entries[at].waits == 0:
        at += 1
    return thresholds.entries[at].amount if at < end else ENDLESS


@compiled
def set_mark(thresholds: Thresholds, k: int, total: int) -> None:
    """Put mark k where it belongs; nobody is concerned."""
    mark = thresholds.marks[k]
    low, high = mark.begin, mark.end
    while low < high:
        middle = (low + high) // 2
        if thresholds.entries[middle].amount <= total:
            low = middle + 1
        else:
            high = middle
    mark.at = low
