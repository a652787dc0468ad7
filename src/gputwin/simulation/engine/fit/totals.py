"""How many instances of each waiting request fit now, over all nodes together, kept up to date node by node.

Asking the cluster again for every waiting shape after every event is what costs when shapes are many. So each request
that somebody waits with has an entry: the total of its room. When a node changes, only what it had and has room for
is counted again; what it had follows from a copy of the node as it was when last counted. Requests that ask for the
same GPUs are of one kind: where a node has no such GPUs (the usual case when jobs wait), all of the kind are passed over
at once. Requests without GPUs would be counted again with every change, and nearly always find plenty: such an entry
is not counted while one node alone has room for all instances of whoever waits.

Those who wait are looked at only when a total passes their threshold (`thresholds.py`, `waiting.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import FULL, NO_LIMIT, NO_NETWORK
from gputwin.simulation.engine.fit.kinds import Kinds, make_kinds
from gputwin.simulation.engine.fit.rows import Rows, make_rows, total_in
from gputwin.simulation.engine.fit.thresholds import Thresholds, make_thresholds
from gputwin.simulation.engine.state.records import APPLICATIONS, Ints, Machines, Records, SmallInts, models_of, wide

ENTRY = np.dtype(
    [
        (
            "covered",
            np.int64,
        ),  # where one node alone has room for all who wait: the most instances one of them asks for
        ("cpu", np.int64),
        ("memory", np.int64),
        ("most", np.int64),  # the largest number of instances anybody asks for
        ("row", np.int32),  # where its total is counted, see `rows.py`; -1: it is closed or covered
        ("next", np.int32),
        ("previous", np.int32),  # entries covered by the same node
        ("covered_by", np.int32),  # a node that alone has room for all who wait; -1: the total is kept
        ("more", np.int32),  # 1: it asks for more than GPUs, CPU and memory
        ("changed", np.int32),  # 1: its total has changed since it was last looked at
        ("request", np.int32),
        ("relaxed", np.int32),  # what of the request counts: FULL, NO_LIMIT or NO_NETWORK
        ("kind", np.int32),
        ("holders", np.int32),  # waiting groups that need it; 0: it is closed
        ("no_limit", np.int32),
        ("no_network", np.int32),  # entries of the same request that count less of it; -1: it asks for no such thing
    ],
    align=True,
)
"""The entry of request r in full is number r."""

COUNTED = np.dtype(
    [
        ("cpu", np.int64),
        ("memory", np.int64),
        ("disk", np.int64),
        ("rdma", np.int64),
        ("round", np.int64),
        ("model", np.int64),
        ("covers", np.int64),  # entries it alone has room for, start of a list
    ],
    align=True,
)
"""What was free on a node when it was last counted, in which round that was, and its GPU model."""


class FitTotals(NamedTuple):
    """Entries, kinds of GPUs asked for, thresholds, and the nodes as they were when last counted."""

    entries: Records
    kinds: Kinds
    rows: Rows
    thresholds: Thresholds
    nodes: Records  # [n] COUNTED
    gpus: Records  # [n, d] DEVICE, as they were when last counted
    residents: SmallInts  # [n, k]: instances by application, when last counted
    lists: SmallInts  # [list, k], see below
    state: Ints


CHANGED, OPEN_SHAPES, NEW_SHAPES, ARRIVALS, CAUGHT_UP, ROUND, PASSED, HEAD, STATES = range(9)
"""Positions in FitTotals.state: lengths of the lists; the end of the log up to which all is counted, how often that was,
the end of the log up to which passes have looked for somebody to start, and whose shape stands at the head of the line (or
one of those below).

The lists: entries whose total has changed; shapes that wait though each of their groups has
room; shapes that began to wait at this instant, most of which start in its pass; shapes that waited before, to which a job
came since the last pass."""
NOBODY, NO_HEAD = wide(-1), wide(-2)
"""Instead of the head's shape: nobody waits behind others; all wait behind others."""
NEW, KNOWN, LEFT = 1, 2, 3
"""What a shape's `joined` says. LEFT: new, and nobody waits any more; jobs that are stopped and started again within an
instant may let it begin and end to wait many times, and it is listed once."""


def make_totals(requests: Records, groups: Records, shapes: Records, allowed: Records, machines: Machines) -> FitTotals:
    """Return totals without open entries."""
    nodes = machines.nodes
    kinds, kind_of = make_kinds(requests, models_of(allowed), allowed.shape[1], nodes.size)
    entries = _entries(requests, kind_of)
    np.maximum.at(entries["most"], groups["request"], groups["size"])
    entries["most"] = entries["most"][entries["request"]]
    counted = np.zeros(nodes.size, COUNTED)
    for name in ("cpu", "memory", "disk", "rdma"):
        counted[name] = nodes[f"{name}_free"]
    counted["covers"], counted["model"] = -1, nodes["model"]
    shape_of = np.repeat(np.arange(shapes.size, dtype=np.int32), shapes["groups"])
    state = np.zeros(STATES, np.int64)
    state[HEAD] = NOBODY
    return FitTotals(
        entries=entries,
        kinds=kinds,
        rows=make_rows(entries["kind"].astype(np.int64), kinds.records),
        thresholds=make_thresholds(
            requests, groups, shape_of, entries["request"].astype(np.int64), kind_of, kinds.records.size
        ),
        nodes=counted,
        gpus=machines.gpus.copy(),
        residents=machines.residents[:, APPLICATIONS:].copy(),
        lists=np.zeros((CAUGHT_UP, max(entries.size, shapes.size)), np.int32),
        state=state,
    )


def _entries(requests: Records, kind_of: Ints) -> Records:
    """Return closed entries: one in full for each request, then those that count less of it."""
    limited, networked = np.flatnonzero(requests["max_per_node"] >= 0), np.flatnonzero(requests["rdma"] > 0)
    entries = np.zeros(requests.size + limited.size + networked.size, ENTRY)
    entries["request"] = np.concatenate([np.arange(requests.size), limited, networked])
    entries["relaxed"] = np.repeat([FULL, NO_LIMIT, NO_NETWORK], [requests.size, limited.size, networked.size])
    entries["kind"] = kind_of[entries["request"]]
    asked = requests[entries["request"]]
    entries["cpu"], entries["memory"] = asked["cpu"], asked["memory"]
    entries["more"] = (asked["disk"] > 0) | (asked["rdma"] > 0) | (asked["max_per_node"] >= 0)
    for name in ("row", "next", "previous", "covered_by", "no_limit", "no_network"):
        entries[name] = -1
    entries["no_limit"][limited] = requests.size + np.arange(limited.size)
    entries["no_network"][networked] = requests.size + limited.size + np.arange(networked.size)
    return entries


@inlined
def begin_waiting(totals: FitTotals, shapes: Records, s: int) -> None:
    """Note that the first job of shape s waits; if it still does at the end of the pass, entries are opened."""
    if shapes[s].joined != LEFT:
        totals.lists[NEW_SHAPES, totals.state[NEW_SHAPES]] = s
        totals.state[NEW_SHAPES] += 1
    shapes[s].joined = NEW


@inlined
def forget_new(totals: FitTotals, shapes: Records) -> None:
    """Empty the list of shapes that began to wait at this instant."""
    for k in range(totals.state[NEW_SHAPES]):
        s = totals.lists[NEW_SHAPES, k]
        if shapes[s].joined == LEFT:
            shapes[s].joined = 0
    totals.state[NEW_SHAPES] = 0


@inlined
def note_arrival(totals: FitTotals, shapes: Records, s: int) -> None:
    """Note that a job came to shape s, of which others wait: it may be short enough to overtake where they are not."""
    if shapes[s].joined == KNOWN and shapes[s].arrived == 0:
        shapes[s].arrived = 1
        totals.lists[ARRIVALS, totals.state[ARRIVALS]] = s
        totals.state[ARRIVALS] += 1


@inlined
def total_of(totals: FitTotals, t: int) -> int:
    """Return how many instances of entry t fit over all nodes; where it is covered, as many as somebody asks for."""
    entry = totals.entries[t]
    return total_in(totals.rows, wide(entry.row)) if entry.row >= 0 else entry.covered


@compiled
def list_reached(totals: FitTotals, requests: Records, shapes: SmallInts) -> int:
    """List the shapes that wait for a request whose total has come to reach what they ask for; return their number.

    A shape is listed once for each of its groups that has come to have room; others may have none.
    """
    count = 0
    for k in range(totals.state[CHANGED]):
        t = wide(totals.lists[CHANGED, k])
        # Totals that count less of a request say what it waits for, not that it has room.
        if t < requests.size and totals.entries[t].holders > 0:
            mark, total = totals.thresholds.marks[t], total_of(totals, t)
            for at in range(mark.at, mark.end):
                entry = totals.thresholds.entries[at]
                if entry.amount > total:
                    break
                if entry.waits != 0:
                    shapes[count] = entry.shape
                    count += 1
    return count
