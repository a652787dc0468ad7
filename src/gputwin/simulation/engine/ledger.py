"""How many instances of each waiting request fit now, over all nodes together, kept up to date node by node.

Asking the cluster again for every waiting shape after every event is what costs when shapes are many. So each request
that somebody waits with has an account: its room on each node, and the total. When a node changes, only that node is
counted again. Requests that ask for the same GPUs are of one kind: where a node has no such GPUs left (the usual case
when jobs wait), all of the kind are passed over at once.

An account also knows between which totals nobody's verdict changes, so that those who wait are looked at only when a
total leaves that span (`waiting.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit import base_room, gpu_room, limit_room, rdma_room
from gputwin.simulation.engine.index import FULL, GPU_ONLY, LOG_END, NO_LIMIT, NO_NETWORK, Index, has_room
from gputwin.simulation.engine.state import Ints, Machines, Records, SmallInts, models_of, wide

ENDLESS = 1 << 62
"""No total is as large."""

ACCOUNT = np.dtype(
    [
        ("total", np.int64),  # instances that fit, over all nodes
        ("low", np.int64),  # while low <= total < high, the same of those who wait have room
        ("high", np.int64),
        ("request", np.int32),
        ("relaxed", np.int32),  # what of the request counts: FULL, NO_LIMIT or NO_NETWORK
        ("kind", np.int32),
        ("slot", np.int32),  # its row of Ledger.rooms; -1: it is closed, nobody waits with this request
        ("holders", np.int32),  # waiting groups that need it
        ("first_group", np.int32),  # the waiting groups of its request, start of a list (only where FULL)
        ("next", np.int32),
        ("previous", np.int32),  # open accounts of the same kind
        ("moved", np.int32),  # 1: it is in Ledger.moved
        ("no_limit", np.int32),
        ("no_network", np.int32),  # accounts of the same request that count less of it; -1: it asks for no such thing
    ],
    align=True,
)
"""The account of request r in full is number r."""

KIND = np.dtype(
    [
        ("total", np.int64),  # instances whose GPUs fit, over all nodes
        ("low", np.int64),
        ("high", np.int64),
        ("free_low", np.int64),  # the same for the milli-GPU free on models it may run on
        ("free_high", np.int64),
        ("all_low", np.int64),  # and for that free on all models
        ("all_high", np.int64),
        ("least_cpu", np.int64),
        ("least_memory", np.int64),  # none of its accounts asks for less
        ("gpu_count", np.int64),
        ("models", np.int32),  # position in Ledger.models
        ("request", np.int32),  # one that asks for these GPUs
        ("first_account", np.int32),
        ("accounts", np.int32),  # how many are open
        ("open_at", np.int32),  # in Ledger.kinds_open
    ],
    align=True,
)

WAITER = np.dtype([("shape", np.int32), ("next", np.int32), ("previous", np.int32)], align=True)
"""One per task group, where it waits: others that wait with the same request."""


class Ledger(NamedTuple):
    """Accounts, kinds of GPUs asked for, and who waits."""

    accounts: Records
    kinds: Records
    waiters: Records  # [g]
    rooms: SmallInts  # [slot, n]: instances that fit on a node
    gpu_rooms: SmallInts  # [kind, n]: instances whose GPUs fit on a node
    fitting: SmallInts  # [kind, n]: open accounts with room on a node
    slots: SmallInts  # a stack of rows nobody uses
    kinds_open: SmallInts
    moved: SmallInts  # accounts whose total left the span [low, high)
    models: Ints  # bit sets of GPU models that some kind may run on
    models_free: Ints  # milli-GPU free on each of them
    open_shapes: SmallInts  # shapes that wait though each of their groups has room
    counted: Ints  # [n]: the round in which the node was last counted
    state: Ints


CAUGHT_UP, ROUND, SLOTS_LEFT, KINDS_OPEN, MOVED, OPEN_SHAPES, HEAD, STATES = range(8)
"""Positions in Ledger.state: the end of the log up to which all is counted, how often that was, lengths of the lists
above, and whose shape stands at the head of the line (or one of those below)."""
NOBODY, NO_HEAD = -1, -2
"""Instead of the head's shape: nobody waits behind others; all wait behind others."""


def make_ledger(requests: Records, groups: Records, shapes: Records, allowed: Records, nodes: int) -> Ledger:
    """Return a ledger without open accounts."""
    kinds, kind_of, models = _kinds(requests, models_of(allowed))
    accounts = _accounts(requests, kind_of)
    waiters = np.zeros(groups.size, WAITER)
    waiters["shape"] = np.repeat(np.arange(shapes.size), shapes["groups"])
    sets, kinds["models"] = np.unique(models, return_inverse=True)
    state = np.zeros(STATES, np.int64)
    state[SLOTS_LEFT], state[HEAD] = accounts.size, NOBODY
    return Ledger(
        accounts=accounts,
        kinds=kinds,
        waiters=waiters,
        rooms=np.zeros((accounts.size, nodes), np.int32),
        gpu_rooms=np.zeros((kinds.size, nodes), np.int32),
        fitting=np.zeros((kinds.size, nodes), np.int32),
        slots=np.arange(accounts.size - 1, -1, -1, dtype=np.int32),
        kinds_open=np.zeros(kinds.size, np.int32),
        moved=np.zeros(accounts.size, np.int32),
        models=sets,
        models_free=np.zeros(sets.size, np.int64),
        open_shapes=np.zeros(shapes.size, np.int32),
        counted=np.zeros(nodes, np.int64),
        state=state,
    )


def _kinds(requests: Records, models: Ints) -> tuple[Records, Ints, Ints]:
    """Return the kinds of GPUs asked for, which of them each request asks for, and the models each may run on."""
    # Requests without GPUs run anywhere.
    asked = np.where(requests["gpu_count"] > 0, models, 0)
    keys = np.stack([requests["gpu_count"], requests["gpu_milli"], requests["gpu_memory"], asked])
    _, one, kind_of = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    kinds = np.zeros(one.size, KIND)
    kinds["request"], kinds["gpu_count"] = one, requests["gpu_count"][one]
    kinds["first_account"] = kinds["open_at"] = -1
    return kinds, kind_of.reshape(-1), asked[one]


def _accounts(requests: Records, kind_of: Ints) -> Records:
    """Return closed accounts: one in full for each request, then those that count less of it."""
    limited, networked = np.flatnonzero(requests["max_per_node"] >= 0), np.flatnonzero(requests["rdma"] > 0)
    accounts = np.zeros(requests.size + limited.size + networked.size, ACCOUNT)
    accounts["request"] = np.concatenate([np.arange(requests.size), limited, networked])
    accounts["relaxed"] = np.repeat([FULL, NO_LIMIT, NO_NETWORK], [requests.size, limited.size, networked.size])
    accounts["kind"] = kind_of[accounts["request"]]
    for name in ("slot", "first_group", "next", "previous", "no_limit", "no_network"):
        accounts[name] = -1
    accounts["no_limit"][limited] = requests.size + np.arange(limited.size)
    accounts["no_network"][networked] = requests.size + limited.size + np.arange(networked.size)
    return accounts


@compiled
def catch_up(ledger: Ledger, index: Index, machines: Machines, requests: Records) -> None:
    """Count again on the nodes that changed since the last time."""
    state, end = ledger.state, index.log_end[LOG_END]
    since, size = state[CAUGHT_UP], index.log.size
    state[CAUGHT_UP] = end
    if state[KINDS_OPEN] == 0 or since == end:
        return
    if end - since > size:
        # The log is a ring: what changed first is no longer in it.
        for n in range(machines.nodes.size):
            _recount(ledger, index, machines, requests, n)
        return
    state[ROUND] += 1
    for k in range(since, end):
        n = wide(index.log[k & (size - 1)])
        if ledger.counted[n] != state[ROUND]:
            ledger.counted[n] = state[ROUND]
            _recount(ledger, index, machines, requests, n)


@compiled
def _recount(ledger: Ledger, index: Index, machines: Machines, requests: Records, n: int) -> None:
    """Bring all open accounts up to date with node n."""
    node, accounts = machines.nodes[n], ledger.accounts
    for a in range(ledger.state[KINDS_OPEN]):
        k = wide(ledger.kinds_open[a])
        kind = ledger.kinds[k]
        room = gpu_room(machines, requests, index.allowed, wide(kind.request), n)
        if room != ledger.gpu_rooms[k, n]:
            kind.total += room - ledger.gpu_rooms[k, n]
            ledger.gpu_rooms[k, n] = room
        short = room == 0 or node.cpu_free < kind.least_cpu or node.memory_free < kind.least_memory
        if short and ledger.fitting[k, n] == 0:
            continue
        t = wide(kind.first_account)
        while t >= 0:
            account = accounts[t]
            had = ledger.rooms[account.slot, n]
            now = _room(machines, requests, wide(account.request), account.relaxed, n, room)
            if now != had:
                ledger.rooms[account.slot, n] = now
                ledger.fitting[k, n] += (now > 0) - (had > 0)
                account.total += now - had
                if account.moved == 0 and not account.low <= account.total < account.high:
                    account.moved = 1
                    ledger.moved[ledger.state[MOVED]] = t
                    ledger.state[MOVED] += 1
            t = wide(account.next)


@inlined
def _room(machines: Machines, requests: Records, r: int, relaxed: int, n: int, gpus: int) -> int:
    """Return how many instances of r fit on node n, whose GPUs can take `gpus`: `room_on` without asking them again."""
    node, request = machines.nodes[n], requests[r]
    if gpus == 0 or node.cpu_free < request.cpu or node.memory_free < request.memory:
        return 0
    room = min(gpus, base_room(machines, requests, r, n))
    if relaxed < NO_NETWORK and request.rdma > 0:
        room = min(room, rdma_room(machines, requests, r, n))
    if relaxed < NO_LIMIT and request.max_per_node >= 0:
        room = min(room, limit_room(machines, requests, r, n))
    return room


@compiled
def has_room_for(
    ledger: Ledger, index: Index, machines: Machines, requests: Records, r: int, size: int, relaxed: int
) -> bool:
    """Return what `has_room` does; from the account, where it is open and has caught up."""
    account = ledger.accounts[r]
    if account.slot < 0:
        return has_room(index, machines, requests, r, size, relaxed)
    if relaxed == GPU_ONLY:
        return ledger.kinds[account.kind].total >= size
    t = wide(r) if relaxed == FULL else wide(account.no_limit) if relaxed == NO_LIMIT else wide(account.no_network)
    return ledger.accounts[t].total >= size


@compiled
def hold(ledger: Ledger, index: Index, machines: Machines, requests: Records, t: int) -> None:
    """Let one more waiting group need account t, which is opened where it is the first."""
    account = ledger.accounts[t]
    account.holders += 1
    if account.holders > 1:
        return
    k, state = wide(account.kind), ledger.state
    kind, request = ledger.kinds[k], requests[account.request]
    if kind.accounts == 0:
        _open_kind(ledger, index, machines, requests, k)
    kind.accounts += 1
    kind.least_cpu, kind.least_memory = min(kind.least_cpu, request.cpu), min(kind.least_memory, request.memory)
    account.next, account.previous = kind.first_account, -1
    if kind.first_account >= 0:
        ledger.accounts[kind.first_account].previous = t
    kind.first_account = t
    state[SLOTS_LEFT] -= 1
    account.slot = ledger.slots[state[SLOTS_LEFT]]
    account.low, account.high, total = -1, ENDLESS, 0
    for n in range(machines.nodes.size):
        room = _room(machines, requests, wide(account.request), account.relaxed, n, wide(ledger.gpu_rooms[k, n]))
        ledger.rooms[account.slot, n] = room
        ledger.fitting[k, n] += room > 0
        total += room
    account.total = total


@compiled
def _open_kind(ledger: Ledger, index: Index, machines: Machines, requests: Records, k: int) -> None:
    kind, total = ledger.kinds[k], 0
    for n in range(machines.nodes.size):
        room = gpu_room(machines, requests, index.allowed, wide(kind.request), n)
        ledger.gpu_rooms[k, n] = room
        total += room
    kind.total = total
    kind.low = kind.free_low = kind.all_low = -1
    kind.high = kind.free_high = kind.all_high = kind.least_cpu = kind.least_memory = ENDLESS
    kind.open_at = ledger.state[KINDS_OPEN]
    ledger.kinds_open[kind.open_at] = k
    ledger.state[KINDS_OPEN] += 1


@compiled
def release(ledger: Ledger, t: int) -> None:
    """Undo `hold`: the account is closed where it was the last."""
    account, state = ledger.accounts[t], ledger.state
    account.holders -= 1
    if account.holders > 0:
        return
    k = wide(account.kind)
    kind = ledger.kinds[k]
    for n in range(ledger.rooms.shape[1]):
        ledger.fitting[k, n] -= ledger.rooms[account.slot, n] > 0
    ledger.slots[state[SLOTS_LEFT]] = account.slot
    state[SLOTS_LEFT] += 1
    account.slot = -1
    if account.next >= 0:
        ledger.accounts[account.next].previous = account.previous
    if account.previous >= 0:
        ledger.accounts[account.previous].next = account.next
    else:
        kind.first_account = account.next
    kind.accounts -= 1
    if kind.accounts == 0:
        state[KINDS_OPEN] -= 1
        last = ledger.kinds_open[state[KINDS_OPEN]]
        ledger.kinds_open[kind.open_at] = last
        ledger.kinds[last].open_at = kind.open_at
        kind.open_at = -1
