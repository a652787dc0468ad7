"""What waiting shapes wait for, looked at again only where something it depends on has changed.

Whether a shape has room, and what it lacks otherwise, follows from a few totals: the room of its requests and of their
kinds of GPUs (`fit/totals.py`), and what is free in all. A shape is looked at again when one of these totals has passed its
threshold (`thresholds.py`) between the end of one pass and the end of the next.

Under greedy skip nobody waits at the end of a pass who has room. So a shape of one group needs no total of its own there,
unless it asks for network cards or has a limit per node.
"""

from __future__ import annotations

from gputwin.simulation.engine.attribution.causes import BEHIND, QUOTA, blame
from gputwin.simulation.engine.attribution.reasons import needs_no_totals, reason
from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.fit.counting import catch_up, catch_up_fully, hold, release
from gputwin.simulation.engine.fit.index import LOG_END
from gputwin.simulation.engine.fit.kinds import (
    HIGH,
    LOW,
    hold_kind,
    open_kind,
    open_kinds,
    release_kind,
    set_limits_of_kind,
    sum_free,
    total_of_kind,
)
from gputwin.simulation.engine.fit.questions import blocked_by, lacks_room
from gputwin.simulation.engine.fit.rows import set_limits
from gputwin.simulation.engine.fit.thresholds import PER_KIND, set_waits
from gputwin.simulation.engine.fit.totals import (
    CHANGED,
    HEAD,
    KNOWN,
    LEFT,
    NEW,
    NEW_SHAPES,
    NOBODY,
    OPEN_SHAPES,
    PASSED,
    forget_new,
    total_of,
)
from gputwin.simulation.engine.queue.jobs import LISTED
from gputwin.simulation.engine.queue.shape_tree import ANYTHING, watch
from gputwin.simulation.engine.state.outages import ASKED, OUT
from gputwin.simulation.engine.state.records import wide
from gputwin.simulation.engine.world import World


@inlined
def count_changes(world: World) -> None:
    """Bring the totals up to date with the nodes."""
    catch_up(world.totals, world.index, world.machines, world.requests)


@compiled
def end_pass(world: World, head: int, now: float) -> None:
    """Look again at what has changed, and get to know the shapes that are new and still wait."""
    review(world, head, now)
    for k in range(world.totals.state[NEW_SHAPES]):
        s = wide(world.totals.lists[NEW_SHAPES, k])
        if world.queue.shapes[s].joined == NEW:
            _open_entries(world, s, now)
    forget_new(world.totals, world.queue.shapes)
    world.totals.state[PASSED] = world.index.log_end[LOG_END]
    if world.outages.count[OUT] > 0 or world.outages.count[ASKED] > 0:
        world.outages.count[ASKED] = world.outages.count[OUT]
        for k in range(world.queue.counts[LISTED]):
            s = wide(world.queue.listed[k])
            if world.queue.shapes[s].joined == KNOWN:
                consider(world, s, now)


@compiled
def _open_entries(world: World, s: int, now: float) -> None:
    """Open entries for shape s, and give the verdict on it."""
    totals, shape = world.totals, world.queue.shapes[s]
    catch_up_fully(totals, world.index, world.machines, world.requests)
    shape.joined = KNOWN
    for g in range(shape.first_group, shape.first_group + shape.groups):
        set_waits(totals.thresholds, wide(g), wide(1))
    if needs_no_totals(world, s):
        lacking = wide(shape.first_group)
        k = wide(totals.entries[world.groups[lacking].request].kind)
        hold_kind(totals.kinds, totals.thresholds, totals.entries.size, world.machines, world.requests, k)
    else:
        for g in range(shape.first_group, shape.first_group + shape.groups):
            r = wide(world.groups[g].request)
            entry = totals.entries[r]
            size = wide(world.groups[g].size)
            hold(totals, world.index, world.machines, world.requests, r, size)
            if entry.no_limit >= 0:
                hold(totals, world.index, world.machines, world.requests, wide(entry.no_limit), size)
            if entry.no_network >= 0:
                hold(totals, world.index, world.machines, world.requests, wide(entry.no_network), size)
        lacking = blocked_by(world, s)
    if world.queue.tree.branches.size > 0:
        watch(world.queue.tree, world.queue.jobs, world.queue.shapes, s, lacking)
    consider(world, s, now)


@compiled
def end_waiting(world: World, s: int) -> None:
    """Forget shape s, the last job of which has left."""
    totals, shape = world.totals, world.queue.shapes[s]
    known, shape.watched = shape.joined == KNOWN, ANYTHING
    shape.joined = 0 if known else LEFT
    if not known:
        return
    for g in range(shape.first_group, shape.first_group + shape.groups):
        set_waits(totals.thresholds, wide(g), wide(0))
    if needs_no_totals(world, s):
        release_kind(totals.kinds, wide(totals.entries[world.groups[shape.first_group].request].kind))
        return
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r = wide(world.groups[g].request)
        entry = totals.entries[r]
        if entry.no_limit >= 0:
            release(totals, wide(entry.no_limit))
        if entry.no_network >= 0:
            release(totals, wide(entry.no_network))
        release(totals, r)
    _set_open(world, s, False)


@compiled
def review(world: World, head: int, now: float) -> None:
    """Look again at the shapes whose threshold a total has passed. `head`: the shape at the head, see FitTotals.state."""
    count_changes(world)
    totals, before = world.totals, world.totals.state[HEAD]
    totals.state[HEAD] = head
    for k in range(totals.state[CHANGED]):
        t = wide(totals.lists[CHANGED, k])
        totals.entries[t].changed = 0
        if totals.entries[t].holders > 0:
            _move_mark(world, t, total_of(totals, t), now)
            set_limits(totals.rows, totals.thresholds, totals.entries, t)
    totals.state[CHANGED] = 0
    if world.settings[0].attributes == 0:
        return
    _review_kinds(world, now)
    if before == head:
        return
    if before == NOBODY or head == NOBODY:
        for k in range(totals.state[OPEN_SHAPES]):
            consider(world, wide(totals.lists[OPEN_SHAPES, k]), now)
        return
    if before >= 0 and world.queue.shapes[before].joined == KNOWN:
        consider(world, before, now)
    if head >= 0 and world.queue.shapes[head].joined == KNOWN:
        consider(world, head, now)


@inlined
def _review_kinds(world: World, now: float) -> None:
    """Look again at the shapes whose threshold a total of a kind of GPUs has passed."""
    totals, kinds = world.totals, world.totals.kinds
    sum_free(kinds, world.machines)
    for a in range(open_kinds(kinds)):
        k = open_kind(kinds, a)
        for c in range(PER_KIND):
            i, total = PER_KIND * k + c, total_of_kind(kinds, world.machines, k, c)
            if total < kinds.limits[LOW, i] or total >= kinds.limits[HIGH, i]:
                _move_mark(world, totals.entries.size + i, total, now)
                set_limits_of_kind(kinds, totals.thresholds, totals.entries.size, i)


@compiled
def _move_mark(world: World, k: int, total: int, now: float) -> None:
    """Move mark k to where its total is, and look at the shapes passed on the way."""
    mark, entries = world.totals.thresholds.marks[k], world.totals.thresholds.entries
    while mark.at < mark.end and entries[mark.at].amount <= total:
        mark.at += 1
        _consider_group(world, wide(mark.at - 1), now)
    while mark.at > mark.begin and entries[mark.at - 1].amount > total:
        mark.at -= 1
        _consider_group(world, wide(mark.at), now)


@inlined
def _consider_group(world: World, at: int, now: float) -> None:
    """Look at the shape of the group whose amount is entry `at` of the thresholds, if it waits."""
    entry = world.totals.thresholds.entries[at]
    if entry.waits != 0:
        consider(world, wide(entry.shape), now)


@compiled
def consider(world: World, s: int, now: float) -> None:
    """Give the verdict on shape s: whether each of its groups has room, and what its jobs wait for."""
    shape, totals = world.queue.shapes[s], world.totals
    lacking = wide(shape.first_group) if needs_no_totals(world, s) else blocked_by(world, s)
    fits = lacking == ANYTHING
    if world.settings[0].totals != 0:
        _set_open(world, s, fits)
        tells = shape.watched >= 0 and lacks_room(world, wide(shape.watched))
        if not fits and world.queue.tree.branches.size > 0 and not tells:
            # It waited for a group that lacked room only beside a reservation.
            watch(world.queue.tree, world.queue.jobs, world.queue.shapes, s, lacking)
    if world.settings[0].attributes == 0:
        return
    behind = fits and totals.state[HEAD] != NOBODY and totals.state[HEAD] != s
    if shape.held_back != 0:
        cause = wide(QUOTA)
    else:
        cause = BEHIND if behind else reason(world, s)
    if cause != shape.cause:
        blame(world.causes, world.queue.shapes, s, cause, now)


@inlined
def _set_open(world: World, s: int, fits: bool) -> None:
    """Enter shape s into the list of those with room, or take it out."""
    shape, totals = world.queue.shapes[s], world.totals
    if fits == (shape.open_at >= 0):
        return
    if fits:
        shape.open_at = totals.state[OPEN_SHAPES]
        totals.lists[OPEN_SHAPES, shape.open_at] = s
        totals.state[OPEN_SHAPES] += 1
    else:
        totals.state[OPEN_SHAPES] -= 1
        last = totals.lists[OPEN_SHAPES, totals.state[OPEN_SHAPES]]
        totals.lists[OPEN_SHAPES, shape.open_at] = last
        world.queue.shapes[last].open_at = shape.open_at
        shape.open_at = -1
