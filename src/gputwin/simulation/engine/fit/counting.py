"""Counting for the totals: what a node that changed had and has room for, and opening and closing of entries."""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.index import LOG_END, NO_LIMIT, NO_NETWORK, Index
from gputwin.simulation.engine.fit.kinds import (
    count_gpus,
    hold_kind,
    may_run_on,
    open_kinds,
    release_kind,
    set_marks_of_kind,
)
from gputwin.simulation.engine.fit.rows import (
    TOTAL,
    add_changes,
    add_row,
    is_outside,
    lift_limits,
    remove_row,
    set_limits,
)
from gputwin.simulation.engine.fit.thresholds import set_mark
from gputwin.simulation.engine.fit.totals import CAUGHT_UP, CHANGED, ROUND, FitTotals, total_of
from gputwin.simulation.engine.state.records import APPLICATIONS, Machines, Records, wide


@inlined
def catch_up(totals: FitTotals, index: Index, machines: Machines, requests: Records) -> None:
    """Count again on the nodes that changed since the last time; where nothing is counted, that can wait."""
    if open_kinds(totals.kinds) > 0:
        catch_up_fully(totals, index, machines, requests)


@compiled
def catch_up_fully(totals: FitTotals, index: Index, machines: Machines, requests: Records) -> None:
    """Count again on the nodes that changed since the last time, before something is to be counted."""
    state, end = totals.state, index.log_end[LOG_END]
    since, size = state[CAUGHT_UP], index.log.size
    if since == end:
        return
    state[CAUGHT_UP] = end
    if end - since > size:
        # The log is a ring: what changed first is no longer in it.
        for n in range(machines.nodes.size):
            _recount(totals, index, machines, requests, n)
        return
    state[ROUND] += 1
    for k in range(since, end):
        n = wide(index.log[k & (size - 1)])
        if totals.nodes[n].round != state[ROUND]:
            totals.nodes[n].round = state[ROUND]
            _recount(totals, index, machines, requests, n)


@compiled
def _recount(totals: FitTotals, index: Index, machines: Machines, requests: Records, n: int) -> None:
    """Bring all open entries up to date with node n, and copy it."""
    node, was = machines.nodes[n], totals.nodes[n]
    gpus_changed = _copy_gpus(totals, machines, n)
    same = node.cpu_free == was.cpu and node.memory_free == was.memory
    same = same and node.disk_free == was.disk and node.rdma_free == was.rdma
    if same and not gpus_changed and totals.residents.shape[1] == 0:
        # Taken and given back, or hidden and shown again.
        return
    most_cpu, most_memory = max(node.cpu_free, was.cpu), max(node.memory_free, was.memory)
    kinds, m = totals.kinds, node.model
    if gpus_changed:
        count_gpus(kinds, machines, requests, n)
    for i in range(kinds.counts[m]):
        k = wide(kinds.listed[m, i])
        kind = kinds.records[k]
        had = now = wide(kinds.rooms[n, kind.ask])
        if gpus_changed:
            had = kinds.had[kind.ask]
            kind.total += now - had
        if (had > 0 or now > 0) and most_cpu >= kind.least_cpu and most_memory >= kind.least_memory:
            _recount_kind(totals, machines, requests, k, n, had, now)
    was.cpu, was.memory, was.disk, was.rdma = node.cpu_free, node.memory_free, node.disk_free, node.rdma_free
    for k in range(totals.residents.shape[1]):
        totals.residents[n, k] = machines.residents[n, APPLICATIONS + k]
    t = wide(totals.nodes[n].covers)
    while t >= 0:
        following, needed = wide(totals.entries[t].next), totals.entries[t].covered
        if _room_seen(totals, requests, t, n) < needed:
            _unlink(totals, t)
            _settle(totals, requests, t, needed)
            _note_change(totals, t)
        t = following


@inlined
def _copy_gpus(totals: FitTotals, machines: Machines, n: int) -> bool:
    """Copy the devices of node n, and return whether one of them has changed."""
    changed = False
    for d in range(machines.nodes[n].gpu_count):
        device, was = machines.gpus[n, d], totals.gpus[n, d]
        if device.free != was.free or device.memory_free != was.memory_free:
            was.free, was.memory_free = device.free, device.memory_free
            changed = True
    return changed


@inlined
def _recount_kind(totals: FitTotals, machines: Machines, requests: Records, k: int, n: int, had: int, now: int) -> None:
    """Bring the entries of kind k up to date with node n, whose GPUs could take `had` instances and now take `now`."""
    node, was, kind, rows = machines.nodes[n], totals.nodes[n], totals.kinds.records[k], totals.rows
    first, count = wide(kind.first_row), wide(kind.rows)
    if kind.more > 0:
        for i in range(first, first + count):
            rows.columns[TOTAL, i] += _gained(totals, machines, requests, wide(rows.entry_at[i]), n, had, now)
        passed = True
    else:
        passed = add_changes(rows.columns, first, count, node.cpu_free, node.memory_free, now, was.cpu, was.memory, had)
    if passed:
        for i in range(first, first + count):
            if is_outside(rows, i):
                lift_limits(rows, i)
                _note_change(totals, wide(rows.entry_at[i]))


@compiled
def _gained(totals: FitTotals, machines: Machines, requests: Records, t: int, n: int, had: int, now: int) -> int:
    """Return how many more instances of entry t node n has room for than when last counted, whatever t asks for."""
    entry, node, was = totals.entries[t], machines.nodes[n], totals.nodes[n]
    room = _room(entry.cpu, entry.memory, node.cpu_free, node.memory_free, min(now, entry.most))
    before = _room(entry.cpu, entry.memory, was.cpu, was.memory, min(had, entry.most))
    if entry.more != 0:
        r = wide(entry.request)
        column = requests[r].application
        living = wide(machines.residents[n, column]) if column >= 0 else wide(0)
        room = _room_beside(requests, r, entry.relaxed, room, node.disk_free, node.rdma_free, living)
        before = _room_beside(requests, r, entry.relaxed, before, was.disk, was.rdma, _lived(totals, requests, r, n))
    return room - before


@inlined
def _note_change(totals: FitTotals, t: int) -> None:
    """List entry t, whose total has changed."""
    entry = totals.entries[t]
    if entry.changed == 0:
        entry.changed = 1
        totals.lists[CHANGED, totals.state[CHANGED]] = t
        totals.state[CHANGED] += 1


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
def _lived(totals: FitTotals, requests: Records, r: int, n: int) -> int:
    """Return how many instances of r's application lived on node n when it was last counted."""
    return (
        wide(totals.residents[n, requests[r].application - APPLICATIONS]) if requests[r].application >= 0 else wide(0)
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
def _room_seen(totals: FitTotals, requests: Records, t: int, n: int) -> int:
    """Return how many instances of entry t, at most as many as anybody asks for, fit on node n as last counted."""
    entry, was = totals.entries[t], totals.nodes[n]
    kind = totals.kinds.records[entry.kind]
    if not may_run_on(kind, was.model):
        return 0
    room = min(entry.most, wide(totals.kinds.rooms[n, kind.ask]))
    if room == 0:
        return 0
    room = _room(entry.cpu, entry.memory, was.cpu, was.memory, room)
    if room > 0 and entry.more != 0:
        r = wide(entry.request)
        room = _room_beside(requests, r, entry.relaxed, room, was.disk, was.rdma, _lived(totals, requests, r, n))
    return room


@compiled
def hold(totals: FitTotals, index: Index, machines: Machines, requests: Records, t: int, size: int) -> None:
    """Let one more group of `size` instances wait with entry t, opened for the first. The totals are up to date."""
    entry, k = totals.entries[t], wide(totals.entries[t].kind)
    entry.holders += 1
    if entry.holders == 1:
        hold_kind(totals.kinds, totals.thresholds, totals.entries.size, machines, requests, k)
        _settle(totals, requests, t, size)
    else:
        set_marks_of_kind(totals.kinds, totals.thresholds, totals.entries.size, machines, k)
        if entry.covered_by >= 0 and size > entry.covered:
            _unlink(totals, t)
            _settle(totals, requests, t, size)
    # Whoever waited before is on the same side of the mark as it was.
    set_mark(totals.thresholds, t, total_of(totals, t))
    set_limits(totals.rows, totals.thresholds, totals.entries, t)


@compiled
def _settle(totals: FitTotals, requests: Records, t: int, size: int) -> None:
    """Let one node cover entry t, if one alone has room for `size` instances, or else count its total on all nodes."""
    entry = totals.entries[t]
    kind = totals.kinds.records[entry.kind]
    total, best, top = 0, -1, size - 1
    for n in range(totals.nodes.size):
        room = _room_seen(totals, requests, t, n)
        total += room
        if room > top or (room == top and best >= 0 and totals.nodes[n].cpu > totals.nodes[best].cpu):
            best, top = n, room
    if kind.gpu_count == 0 and best >= 0:
        entry.covered, entry.covered_by = size, best
        _link(totals, t, wide(totals.nodes[best].covers))
        totals.nodes[best].covers = t
        return
    entry.covered_by = -1
    add_row(totals.rows, totals.thresholds, totals.entries, totals.kinds.records, t, total)


@inlined
def _link(totals: FitTotals, t: int, following: int) -> None:
    totals.entries[t].next, totals.entries[t].previous = following, -1
    if following >= 0:
        totals.entries[following].previous = t


@compiled
def _unlink(totals: FitTotals, t: int) -> None:
    """Count entry t no more, or take it from the node that covers it."""
    entry = totals.entries[t]
    if entry.row >= 0:
        remove_row(totals.rows, totals.entries, totals.kinds.records, t)
        return
    if entry.next >= 0:
        totals.entries[entry.next].previous = entry.previous
    if entry.previous >= 0:
        totals.entries[entry.previous].next = entry.next
    else:
        totals.nodes[entry.covered_by].covers = entry.next


@compiled
def release(totals: FitTotals, t: int) -> None:
    """Undo `hold`: the entry is closed where it was the last."""
    entry = totals.entries[t]
    entry.holders -= 1
    if entry.holders == 0:
        _unlink(totals, t)
        release_kind(totals.kinds, wide(entry.kind))
