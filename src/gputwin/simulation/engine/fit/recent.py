"""Room for waiting requests while a pass lasts: as counted at its end, and what has changed on a few nodes since.

A job that ends makes room, and those who start in its place take it again. Counting the totals after each of these would
count most of it twice. So a pass that asks for totals lists the nodes that changed, and counts them once when it ends.
"""

from __future__ import annotations

from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.counting import catch_up, recount, room_beside, room_in, room_seen
from gputwin.simulation.engine.fit.index import LOG_END, Index
from gputwin.simulation.engine.fit.room import gpu_room
from gputwin.simulation.engine.fit.totals import CAUGHT_UP, NOT_LISTED, RECENT, ROUND, FitTotals
from gputwin.simulation.engine.state.records import Machines, Records, wide

_FEW = 24
"""With more changes, counting anew is cheaper."""


@compiled
def list_changes(totals: FitTotals, index: Index, machines: Machines, requests: Records) -> None:
    """List the nodes that changed since all was counted; where they are many, all is counted."""
    state, end, size = totals.state, index.log_end[LOG_END], index.log.size
    if end - state[CAUGHT_UP] > min(_FEW, size):
        catch_up(totals, index, machines, requests)
    state[ROUND] += 1
    state[RECENT] = 0
    for k in range(state[CAUGHT_UP], end):
        note_change_of(totals, wide(index.log[k & (size - 1)]))


@inlined
def note_change_of(totals: FitTotals, n: int) -> None:
    """List node n, which has changed."""
    if totals.nodes[n].round != totals.state[ROUND]:
        totals.nodes[n].round = totals.state[ROUND]
        totals.recent[totals.state[RECENT]] = n
        totals.state[RECENT] += 1


@compiled
def count_if_many(totals: FitTotals, index: Index, machines: Machines, requests: Records) -> None:
    """Count the listed nodes where they have become many."""
    if totals.state[RECENT] > _FEW:
        count_listed(totals, index, machines, requests)
        totals.state[ROUND] += 1
        totals.state[RECENT] = 0


@compiled
def count_listed(totals: FitTotals, index: Index, machines: Machines, requests: Records) -> None:
    """Count the listed nodes: no other has changed. The list ends here."""
    for i in range(totals.state[RECENT]):
        recount(totals, index, machines, requests, wide(totals.recent[i]))
    totals.state[CAUGHT_UP] = index.log_end[LOG_END]
    totals.state[RECENT] = NOT_LISTED


@compiled
def room_of(totals: FitTotals, index: Index, machines: Machines, requests: Records, t: int) -> int:
    """Return the total of entry t, whose total is kept, as it is now."""
    entry, room = totals.entries[t], totals.entries[t].total
    for i in range(totals.state[RECENT]):
        n = wide(totals.recent[i])
        node, was = machines.nodes[n], totals.nodes[n]
        had = was.cpu >= entry.cpu and was.memory >= entry.memory
        if had:
            room -= room_seen(totals, requests, t, n)
        if node.cpu_free >= entry.cpu and node.memory_free >= entry.memory:
            room += _room_now(totals, index, machines, requests, t, n)
    return room


@inlined
def _room_now(totals: FitTotals, index: Index, machines: Machines, requests: Records, t: int, n: int) -> int:
    """Return how many instances of entry t, at most as many as anybody asks for, fit on node n now."""
    entry, node, r = totals.entries[t], machines.nodes[n], wide(totals.entries[t].request)
    room = min(gpu_room(machines, requests, index.allowed, r, n), entry.most)
    room = room_in(entry.cpu, entry.memory, node.cpu_free, node.memory_free, room)
    if room > 0 and entry.more != 0:
        column = requests[r].application
        living = wide(machines.residents[n, column]) if column >= 0 else wide(0)
        room = room_beside(requests, r, entry.relaxed, room, node.disk_free, node.rdma_free, living)
    return room


@inlined
def covers_now(totals: FitTotals, index: Index, machines: Machines, requests: Records, t: int, size: int) -> bool:
    """Return whether the node that covered entry t when all was counted still has room for `size` instances."""
    n = wide(totals.entries[t].covered_by)
    if totals.nodes[n].round != totals.state[ROUND]:
        return size <= totals.entries[t].total
    return _room_now(totals, index, machines, requests, t, n) >= size
