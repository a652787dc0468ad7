"""Counting for the ledger: what a node that changed had and has room for, and opening and closing of accounts."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit import gpu_room
from gputwin.simulation.engine.index import LOG_END, NO_LIMIT, NO_NETWORK, Index
from gputwin.simulation.engine.ledger import CAUGHT_UP, ENDLESS, KINDS_OPEN, MOVED, ROUND, Ledger
from gputwin.simulation.engine.state import APPLICATIONS, FREE_MODELS, Machines, Records, wide
from gputwin.simulation.engine.thresholds import PER_KIND, set_mark


@compiled
def catch_up(ledger: Ledger, index: Index, machines: Machines, requests: Records) -> None:
    """Count again on the nodes that changed since the last time."""
    state, end = ledger.state, index.log_end[LOG_END]
    since, size = state[CAUGHT_UP], index.log.size
    if since == end:
        return
    state[CAUGHT_UP] = end
    if end - since > size:
        # The log is a ring: what changed first is no longer in it.
        for n in range(machines.nodes.size):
            _recount(ledger, index, machines, requests, n)
        return
    state[ROUND] += 1
    for k in range(since, end):
        n = wide(index.log[k & (size - 1)])
        if ledger.nodes[n].round != state[ROUND]:
            ledger.nodes[n].round = state[ROUND]
            _recount(ledger, index, machines, requests, n)


@compiled
def _recount(ledger: Ledger, index: Index, machines: Machines, requests: Records, n: int) -> None:
    """Bring all open accounts up to date with node n, and copy it."""
    node, was = machines.nodes[n], ledger.nodes[n]
    gpus_changed = _copy_gpus(ledger, machines, n)
    same = node.cpu_free == was.cpu and node.memory_free == was.memory
    same = same and node.disk_free == was.disk and node.rdma_free == was.rdma
    if same and not gpus_changed and ledger.residents.shape[1] == 0:
        # Taken and given back, or hidden and shown again.
        return
    most_cpu, most_memory = max(node.cpu_free, was.cpu), max(node.memory_free, was.memory)
    for a in range(ledger.state[KINDS_OPEN]):
        k = wide(ledger.lists[KINDS_OPEN, a])
        kind = ledger.kinds[k]
        had = now = wide(ledger.gpu_rooms[n, k])
        if gpus_changed and kind.gpu_count > 0:
            now = gpu_room(machines, requests, index.allowed, wide(kind.request), n)
            if now != had:
                ledger.gpu_rooms[n, k] = now
                kind.total += now - had
        if (had > 0 or now > 0) and most_cpu >= kind.least_cpu and most_memory >= kind.least_memory:
            _recount_kind(ledger, machines, requests, wide(kind.first_account), n, had, now)
    was.cpu, was.memory, was.disk, was.rdma = node.cpu_free, node.memory_free, node.disk_free, node.rdma_free
    for k in range(ledger.residents.shape[1]):
        ledger.residents[n, k] = machines.residents[n, APPLICATIONS + k]
    t = wide(ledger.nodes[n].eased)
    while t >= 0:
        following, needed = wide(ledger.accounts[t].next), ledger.accounts[t].total
        if _room_seen(ledger, requests, t, n) < needed:
            _unlink(ledger, t)
            _settle(ledger, requests, t, needed)
            _note_move(ledger, t)
        t = following


@inlined
def _copy_gpus(ledger: Ledger, machines: Machines, n: int) -> bool:
    """Copy the devices of node n, and return whether one of them has changed."""
    changed = False
    for d in range(machines.nodes[n].gpu_count):
        device, was = machines.gpus[n, d], ledger.gpus[n, d]
        if device.free != was.free or device.memory_free != was.memory_free:
            was.free, was.memory_free = device.free, device.memory_free
            changed = True
    return changed


@inlined
def _recount_kind(ledger: Ledger, machines: Machines, requests: Records, t: int, n: int, had: int, now: int) -> None:
    """Bring the accounts from t on up to date with node n, whose GPUs could take `had` instances and now take `now`."""
    node, was = machines.nodes[n], ledger.nodes[n]
    while t >= 0:
        account = ledger.accounts[t]
        room = _room(account.cpu, account.memory, node.cpu_free, node.memory_free, min(now, account.most))
        before = _room(account.cpu, account.memory, was.cpu, was.memory, min(had, account.most))
        if account.more != 0:
            r = wide(account.request)
            column = requests[r].application
            living = wide(machines.residents[n, column]) if column >= 0 else wide(0)
            room = _room_beside(requests, r, account.relaxed, room, node.disk_free, node.rdma_free, living)
            before = _room_beside(
                requests, r, account.relaxed, before, was.disk, was.rdma, _lived(ledger, requests, r, n)
            )
        if room != before:
            account.total += room - before
            _note_move(ledger, t)
        t = wide(account.next)


@inlined
def _note_move(ledger: Ledger, t: int) -> None:
    """List account t, whose total has changed."""
    account = ledger.accounts[t]
    if account.moved == 0:
        account.moved = 1
        ledger.lists[MOVED, ledger.state[MOVED]] = t
        ledger.state[MOVED] += 1


@inlined
def _room(cpu: int, memory: int, cpu_free: int, memory_free: int, room: int) -> int:
    """Return how many of `room` instances fit in so much CPU and memory."""
    return _most(memory_free, memory, _most(cpu_free, cpu, room))


@inlined
def _most(free: int, asked: int, room: int) -> int:
    """Return how many of `room` instances fit where each asks for so much of what is free; division is slow."""
    if asked * room <= free:
        return room
    return 0 if asked > free else free // asked


@inlined
def _lived(ledger: Ledger, requests: Records, r: int, n: int) -> int:
    """Return how many instances of r's application lived on node n when it was last counted."""
    return (
        wide(ledger.residents[n, requests[r].application - APPLICATIONS]) if requests[r].application >= 0 else wide(0)
    )


@compiled
def _room_beside(requests: Records, r: int, relaxed: int, room: int, disk: int, rdma: int, living: int) -> int:
    """Return how many of `room` instances fit beside what else r asks for: disk, network, and the limit per node."""
    request = requests[r]
    room = _most(disk, request.disk, room)
    if relaxed < NO_NETWORK:
        room = _most(rdma, request.rdma, room)
    if relaxed < NO_LIMIT and request.max_per_node >= 0:
        room = min(room, max(request.max_per_node - living, 0))
    return room


@inlined
def _room_seen(ledger: Ledger, requests: Records, t: int, n: int) -> int:
    """Return how many instances of account t, at most as many as anybody asks for, fit on node n as last counted."""
    account, was = ledger.accounts[t], ledger.nodes[n]
    room = account.most
    if ledger.kinds[account.kind].gpu_count > 0:
        room = min(room, wide(ledger.gpu_rooms[n, account.kind]))
    room = _room(account.cpu, account.memory, was.cpu, was.memory, room)
    if room > 0 and account.more != 0:
        r = wide(account.request)
        room = _room_beside(requests, r, account.relaxed, room, was.disk, was.rdma, _lived(ledger, requests, r, n))
    return room


@compiled
def hold(ledger: Ledger, index: Index, machines: Machines, requests: Records, t: int, size: int) -> None:
    """Let one more group of `size` instances wait with account t, opened for the first. The ledger has caught up."""
    account = ledger.accounts[t]
    account.holders += 1
    if account.holders == 1:
        hold_kind(ledger, index, machines, requests, wide(account.kind))
        _settle(ledger, requests, t, size)
        set_mark(ledger.thresholds, t, account.total)
    elif account.eased_on >= 0 and size > account.total:
        _unlink(ledger, t)
        _settle(ledger, requests, t, size)
        # Nobody else asks for as much.
        set_mark(ledger.thresholds, t, account.total)


@compiled
def hold_kind(ledger: Ledger, index: Index, machines: Machines, requests: Records, k: int) -> None:
    """Let one more account or group wait with kind k, counted from the first on. The ledger has caught up."""
    if ledger.kinds[k].holders == 0:
        _open_kind(ledger, index, machines, requests, k)
    ledger.kinds[k].holders += 1


@compiled
def _settle(ledger: Ledger, requests: Records, t: int, size: int) -> None:
    """Put account t at ease, if it can be with `size` instances, or else count its total on all nodes."""
    account = ledger.accounts[t]
    kind = ledger.kinds[account.kind]
    total, best, top = 0, -1, size - 1
    for n in range(ledger.nodes.size):
        room = _room_seen(ledger, requests, t, n)
        total += room
        if room > top or (room == top and best >= 0 and ledger.nodes[n].cpu > ledger.nodes[best].cpu):
            best, top = n, room
    if kind.gpu_count == 0 and best >= 0:
        account.total, account.eased_on = size, best
        _link(ledger, t, wide(ledger.nodes[best].eased))
        ledger.nodes[best].eased = t
        return
    account.total, account.eased_on = total, -1
    kind.least_cpu, kind.least_memory = min(kind.least_cpu, account.cpu), min(kind.least_memory, account.memory)
    _link(ledger, t, wide(kind.first_account))
    kind.first_account = t


@inlined
def _link(ledger: Ledger, t: int, following: int) -> None:
    ledger.accounts[t].next, ledger.accounts[t].previous = following, -1
    if following >= 0:
        ledger.accounts[following].previous = t


@compiled
def _unlink(ledger: Ledger, t: int) -> None:
    """Take account t out of the list it is in."""
    account = ledger.accounts[t]
    if account.next >= 0:
        ledger.accounts[account.next].previous = account.previous
    if account.previous >= 0:
        ledger.accounts[account.previous].next = account.next
    elif account.eased_on >= 0:
        ledger.nodes[account.eased_on].eased = account.next
    else:
        ledger.kinds[account.kind].first_account = account.next


@compiled
def _open_kind(ledger: Ledger, index: Index, machines: Machines, requests: Records, k: int) -> None:
    kind, total = ledger.kinds[k], 0
    for n in range(machines.nodes.size):
        room = gpu_room(machines, requests, index.allowed, wide(kind.request), n)
        ledger.gpu_rooms[n, k] = room
        total += room
    kind.total = total
    kind.least_cpu = kind.least_memory = ENDLESS
    for c in range(PER_KIND):
        set_mark(ledger.thresholds, ledger.accounts.size + PER_KIND * k + c, total_of_kind(ledger, machines, k, c))
    kind.open_at = ledger.state[KINDS_OPEN]
    ledger.lists[KINDS_OPEN, kind.open_at] = k
    ledger.state[KINDS_OPEN] += 1


@compiled
def total_of_kind(ledger: Ledger, machines: Machines, k: int, c: int) -> int:
    """Return total c of kind k, see PER_KIND."""
    kind, free = ledger.kinds[k], machines.free
    if kind.gpu_count == 0:
        return free[c]
    if c == 0:
        return kind.total
    allowed, total = ledger.models[kind.models].bits if c == 1 else -1, 0
    for m in range(free.size - FREE_MODELS):
        if allowed >> m & 1:
            total += free[FREE_MODELS + m]
    return total


@compiled
def release(ledger: Ledger, t: int) -> None:
    """Undo `hold`: the account is closed where it was the last."""
    account = ledger.accounts[t]
    account.holders -= 1
    if account.holders == 0:
        _unlink(ledger, t)
        release_kind(ledger, wide(account.kind))


@compiled
def release_kind(ledger: Ledger, k: int) -> None:
    """Undo `hold_kind`."""
    kind, state = ledger.kinds[k], ledger.state
    kind.holders -= 1
    if kind.holders == 0:
        state[KINDS_OPEN] -= 1
        last = ledger.lists[KINDS_OPEN, state[KINDS_OPEN]]
        ledger.lists[KINDS_OPEN, kind.open_at] = last
        ledger.kinds[last].open_at = kind.open_at
        kind.open_at = -1
