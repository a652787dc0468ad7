"""Kinds of GPUs asked for: how many instances of each kind have GPUs, over all nodes together.

Requests that ask for the same GPUs, of the same models, are of one kind. What a node's GPUs can take does not depend on
the models allowed: kinds that differ in nothing else share one ask, which is counted once when a node changes, and only
the kinds that may run on the node's model are looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.room import room_of_gpus
from gputwin.simulation.engine.fit.thresholds import ENDLESS, PER_KIND, Thresholds, above, below, set_mark
from gputwin.simulation.engine.state.records import FREE_MODELS, Ints, Machines, Records, SmallInts, wide

KIND = np.dtype(
    [
        ("total", np.int64),  # instances whose GPUs fit, over all nodes
        ("least_cpu", np.int64),
        ("least_memory", np.int64),  # none of its entries asks for less
        ("gpu_count", np.int64),
        ("bits", np.int64),  # models it may run on; 0: it asks for no GPUs, and runs anywhere
        ("models", np.int32),  # the same as a position in Kinds.sets
        ("ask", np.int32),
        ("first_row", np.int32),
        ("rows", np.int32),  # its entries whose total is counted
        ("more", np.int32),  # how many of those ask for more than GPUs, CPU and memory
        ("holders", np.int32),  # open entries, and waiting groups without one; 0: it is closed
    ],
    align=True,
)

ASK = np.dtype(
    [
        ("request", np.int32),  # one that asks for these GPUs
        ("holders", np.int32),  # open kinds
        ("open_at", np.int32),
    ],
    align=True,
)

LOW, HIGH = 0, 1


class Kinds(NamedTuple):
    """Kinds, what they ask for, and which of them somebody waits with."""

    records: Records  # [k] KIND
    asks: Records  # [a] ASK
    rooms: SmallInts  # [n, a] instances whose GPUs fit on a node, whatever its model (of open asks)
    had: Ints  # [a] scratch: what a node had room for before its present change
    open_asks: SmallInts
    listed: SmallInts  # [m, i] open kinds that may run on model m; in the last row all of them
    listed_at: SmallInts  # [m, k] where kind k is in that list
    counts: Ints  # [m] the lengths of these lists, then the number of open asks
    limits: Ints  # [2, PER_KIND * k + c] total c of kind k passes a threshold below the first, or from the second on
    sets: Ints  # [i] sets of GPU models that some kind may run on, as bits; the last: all models
    free: Ints  # [i] scratch: milli-GPU free on each set


def make_kinds(requests: Records, models: Ints, model_count: int, nodes: int) -> tuple[Kinds, Ints]:
    """Return the kinds of GPUs asked for, all closed, and the kind of each request; `models`: bits of each request."""
    # Requests without GPUs run anywhere.
    bits = np.where(requests["gpu_count"] > 0, models, 0)
    asked = np.stack([requests["gpu_count"], requests["gpu_milli"], requests["gpu_memory"]])
    _, one_of_ask, ask_of = np.unique(asked, axis=1, return_index=True, return_inverse=True)
    _, one, kind_of = np.unique(np.concatenate([asked, bits[None]]), axis=1, return_index=True, return_inverse=True)
    records, asks = np.zeros(one.size, KIND), np.zeros(one_of_ask.size, ASK)
    records["gpu_count"], records["bits"], records["ask"] = (
        requests["gpu_count"][one],
        bits[one],
        ask_of.reshape(-1)[one],
    )
    sets, records["models"] = np.unique(bits[one], return_inverse=True)
    asks["request"], asks["open_at"] = one_of_ask, -1
    return Kinds(
        records=records,
        asks=asks,
        rooms=np.zeros((nodes, asks.size), np.int32),
        had=np.zeros(asks.size, np.int64),
        open_asks=np.zeros(asks.size, np.int32),
        listed=np.zeros((model_count + 1, records.size), np.int32),
        listed_at=np.full((model_count + 1, records.size), -1, np.int32),
        counts=np.zeros(model_count + 2, np.int64),
        limits=np.zeros((2, PER_KIND * records.size), np.int64),
        sets=np.append(sets, -1),
        free=np.zeros(sets.size + 1, np.int64),
    ), kind_of.reshape(-1)


@inlined
def open_kinds(kinds: Kinds) -> int:
    """Return how many kinds are open: those in the last row of the lists."""
    return kinds.counts[kinds.listed.shape[0] - 1]


@inlined
def open_kind(kinds: Kinds, i: int) -> int:
    """Return the i-th open kind."""
    return wide(kinds.listed[kinds.listed.shape[0] - 1, i])


@inlined
def may_run_on(kind: Any, m: int) -> bool:
    """Return whether the kind may run on nodes of model m."""
    return kind.bits == 0 or (kind.bits >> m & 1) != 0


@compiled
def count_gpus(kinds: Kinds, machines: Machines, requests: Records, n: int) -> None:
    """Count what the GPUs of node n can take, which have changed; what they could take before is kept in `had`."""
    for i in range(kinds.counts[kinds.counts.size - 1]):
        a = wide(kinds.open_asks[i])
        kinds.had[a] = kinds.rooms[n, a]
        kinds.rooms[n, a] = room_of_gpus(machines, requests, wide(kinds.asks[a].request), n)


@compiled
def hold_kind(
    kinds: Kinds, thresholds: Thresholds, entries: int, machines: Machines, requests: Records, k: int
) -> None:
    """Let one more entry or group wait with kind k, counted from the first on. All that is counted is up to date."""
    kind = kinds.records[k]
    if kind.holders == 0:
        _open_ask(kinds, machines, requests, wide(kind.ask))
        kind.total = 0
        for n in range(machines.nodes.size):
            if may_run_on(kind, machines.nodes[n].model):
                kind.total += kinds.rooms[n, kind.ask]
        kind.least_cpu = kind.least_memory = ENDLESS
        for m in range(kinds.listed.shape[0]):
            if m == kinds.listed.shape[0] - 1 or may_run_on(kind, m):
                kinds.listed[m, kinds.counts[m]] = k
                kinds.listed_at[m, k] = kinds.counts[m]
                kinds.counts[m] += 1
    kind.holders += 1
    set_marks_of_kind(kinds, thresholds, entries, machines, k)


@compiled
def set_marks_of_kind(kinds: Kinds, thresholds: Thresholds, entries: int, machines: Machines, k: int) -> None:
    """Put the marks of kind k where its totals are; nobody who waited before is concerned."""
    sum_free(kinds, machines)
    for c in range(PER_KIND):
        set_mark(thresholds, entries + PER_KIND * k + c, total_of_kind(kinds, machines, k, c))
        set_limits_of_kind(kinds, thresholds, entries, PER_KIND * k + c)


@compiled
def release_kind(kinds: Kinds, k: int) -> None:
    """Undo `hold_kind`."""
    kind = kinds.records[k]
    kind.holders -= 1
    if kind.holders > 0:
        return
    for m in range(kinds.listed.shape[0]):
        at = wide(kinds.listed_at[m, k])
        if at >= 0:
            kinds.counts[m] -= 1
            last = wide(kinds.listed[m, kinds.counts[m]])
            kinds.listed[m, at] = last
            kinds.listed_at[m, last] = at
            kinds.listed_at[m, k] = -1
    ask, end = kinds.asks[kind.ask], kinds.counts.size - 1
    ask.holders -= 1
    if ask.holders == 0:
        kinds.counts[end] -= 1
        last = wide(kinds.open_asks[kinds.counts[end]])
        kinds.open_asks[ask.open_at] = last
        kinds.asks[last].open_at = ask.open_at


@inlined
def _open_ask(kinds: Kinds, machines: Machines, requests: Records, a: int) -> None:
    """Let one more kind ask for these GPUs, counted on all nodes from the first on."""
    ask, end = kinds.asks[a], kinds.counts.size - 1
    if ask.holders == 0:
        for n in range(machines.nodes.size):
            kinds.rooms[n, a] = room_of_gpus(machines, requests, wide(ask.request), n)
        ask.open_at = kinds.counts[end]
        kinds.open_asks[ask.open_at] = a
        kinds.counts[end] += 1
    ask.holders += 1


@inlined
def sum_free(kinds: Kinds, machines: Machines) -> None:
    """Add up what is free on each set of models."""
    for i in range(kinds.sets.size):
        total = 0
        for m in range(machines.free.size - FREE_MODELS):
            if kinds.sets[i] >> m & 1:
                total += machines.free[FREE_MODELS + m]
        kinds.free[i] = total


@inlined
def total_of_kind(kinds: Kinds, machines: Machines, k: int, c: int) -> int:
    """Return total c of kind k, see PER_KIND; `sum_free` has added up."""
    kind = kinds.records[k]
    if kind.gpu_count == 0:
        return machines.free[c]
    return kind.total if c == 0 else kinds.free[kind.models] if c == 1 else kinds.free[kinds.free.size - 1]


@inlined
def set_limits_of_kind(kinds: Kinds, thresholds: Thresholds, entries: int, i: int) -> None:
    """Note between which thresholds the mark of total i of all kinds stands."""
    kinds.limits[LOW, i] = below(thresholds, entries + i, wide(-ENDLESS))
    kinds.limits[HIGH, i] = above(thresholds, entries + i)
