"""What waiting shapes wait for, looked at again only where something it depends on has changed.

Whether a shape has room, and what it lacks otherwise, follows from a few totals: the room of its requests and of their
kinds of GPUs (`ledger.py`), and the free GPUs of its models. Each total is compared with thresholds only: the sizes of
those who wait. So with each goes the span within which no comparison comes out differently; shapes are asked again when
a total has left it, and then only those whose threshold it passed.
"""

from __future__ import annotations

from gputwin.simulation.engine.attribution import BEHIND, OUTAGE, blame, cause_of
from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.counting import catch_up, hold, release
from gputwin.simulation.engine.index import FULL, has_room
from gputwin.simulation.engine.ledger import (
    ENDLESS,
    HEAD,
    KINDS_OPEN,
    KNOWN,
    MOVED,
    NEW,
    NEW_SHAPES,
    NOBODY,
    OPEN_SHAPES,
)
from gputwin.simulation.engine.outages import hidden_room
from gputwin.simulation.engine.queue import LISTED
from gputwin.simulation.engine.state import FREE_MODELS, wide
from gputwin.simulation.engine.world import ATTRIBUTE, DRAWS, World


@compiled
def reason(world: World, s: int) -> int:
    """Return what keeps a job of shape s from starting now."""
    if world.outages.count[1] > 0 and _would_fit(world, s):
        return wide(OUTAGE)
    return cause_of(world.machines, world.requests, world.queue.shapes, world.groups, world.index, world.ledger, s)


@compiled
def _would_fit(world: World, s: int) -> bool:
    """Return whether shape s lacks room now, and each of its groups would have it if no node were out."""
    shape, lacks = world.queue.shapes[s], False
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r, size = wide(world.groups[g].request), wide(world.groups[g].size)
        if not has_room(world.index, world.machines, world.requests, r, size, FULL):
            lacks = True
            hidden = hidden_room(world.outages, world.machines, world.requests, world.index.allowed, r)
            visible = size - hidden
            if visible > 0 and not has_room(world.index, world.machines, world.requests, r, visible, FULL):
                return False
    return lacks


@inlined
def count_changes(world: World) -> None:
    """Bring the ledger up to date with the nodes."""
    catch_up(world.ledger, world.index, world.machines, world.requests)


@inlined
def hopeless(world: World, s: int) -> bool:
    """Return whether placing a job of shape s is sure to fail, by a ledger that has caught up.

    Where scores are draws, it must not be spared if an instance would be placed first: the draws would be others.
    """
    shape = world.queue.shapes[s]
    if shape.joined != KNOWN:
        return False
    for g in range(shape.first_group, shape.first_group + shape.groups):
        if world.ledger.accounts[world.groups[g].request].total < world.groups[g].size:
            return g == shape.first_group or world.options[DRAWS] == 0
    return False


@compiled
def end_pass(world: World, head: int, now: float) -> None:
    """Look again at what the pass has changed, and get to know the shapes that are new and still wait."""
    # First of all: spans may be narrowed only where totals are within them.
    review(world, head, now)
    for k in range(world.ledger.state[NEW_SHAPES]):
        s = wide(world.ledger.lists[NEW_SHAPES, k])
        if world.queue.shapes[s].joined == NEW:
            _open_accounts(world, s, now)
    world.ledger.state[NEW_SHAPES] = 0
    if world.outages.count[1] > 0 or world.outages.count[2] > 0:
        world.outages.count[2] = world.outages.count[1]
        for k in range(world.queue.counts[LISTED]):
            s = wide(world.queue.listed[k])
            if world.queue.shapes[s].joined == KNOWN:
                _consider(world, s, now)


@compiled
def _open_accounts(world: World, s: int, now: float) -> None:
    """Open accounts for shape s, and give the verdict on it."""
    ledger, shape = world.ledger, world.queue.shapes[s]
    shape.joined = KNOWN
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r = wide(world.groups[g].request)
        account = ledger.accounts[r]
        size = wide(world.groups[g].size)
        hold(ledger, world.index, world.machines, world.requests, r, size)
        if account.no_limit >= 0:
            hold(ledger, world.index, world.machines, world.requests, wide(account.no_limit), size)
        if account.no_network >= 0:
            hold(ledger, world.index, world.machines, world.requests, wide(account.no_network), size)
        _narrow_kind(world, r, g)
        following = account.first_group
        ledger.waiters[g].next, ledger.waiters[g].previous = following, -1
        if following >= 0:
            ledger.waiters[following].previous = g
        account.first_group = g
    _consider(world, s, now)


@compiled
def end_waiting(world: World, s: int) -> None:
    """Forget shape s, the last job of which has left."""
    ledger, shape = world.ledger, world.queue.shapes[s]
    known, shape.joined = shape.joined == KNOWN, 0
    if not known:
        return
    for g in range(shape.first_group, shape.first_group + shape.groups):
        r = wide(world.groups[g].request)
        account, waiter = ledger.accounts[r], ledger.waiters[g]
        if waiter.next >= 0:
            ledger.waiters[waiter.next].previous = waiter.previous
        if waiter.previous >= 0:
            ledger.waiters[waiter.previous].next = waiter.next
        else:
            account.first_group = waiter.next
        if account.no_limit >= 0:
            release(ledger, wide(account.no_limit))
        if account.no_network >= 0:
            release(ledger, wide(account.no_network))
        release(ledger, r)
    _set_open(world, s, False)


@compiled
def look_for_room(world: World) -> None:
    """List the shapes that have room now; what they wait for otherwise is asked at the end of the pass."""
    count_changes(world)
    ledger = world.ledger
    for k in range(ledger.state[MOVED]):
        t = wide(ledger.lists[MOVED, k])
        g = wide(ledger.accounts[ledger.accounts[t].request].first_group)
        while g >= 0:
            s = wide(ledger.waiters[g].shape)
            _set_open(world, s, _has_room(world, s))
            g = wide(ledger.waiters[g].next)


@compiled
def review(world: World, head: int, now: float) -> None:
    """Look again at the shapes for which something has changed. `head`: the shape at the head, see Ledger.state."""
    count_changes(world)
    ledger, before = world.ledger, world.ledger.state[HEAD]
    ledger.state[HEAD] = head
    for k in range(ledger.state[MOVED]):
        t = wide(ledger.lists[MOVED, k])
        ledger.accounts[t].moved = 0
        if ledger.accounts[t].holders > 0:
            _review_account(world, t, now)
    ledger.state[MOVED] = 0
    if world.options[ATTRIBUTE] == 0:
        return
    _review_kinds(world, now)
    if before == head:
        return
    if before == NOBODY or head == NOBODY:
        for k in range(ledger.state[OPEN_SHAPES]):
            _consider(world, wide(ledger.lists[OPEN_SHAPES, k]), now)
        return
    if before >= 0 and world.queue.shapes[before].joined == KNOWN:
        _consider(world, before, now)
    if head >= 0 and world.queue.shapes[head].joined == KNOWN:
        _consider(world, head, now)


@compiled
def _consider(world: World, s: int, now: float) -> None:
    """Give the verdict on shape s: whether each of its groups has room, and what its jobs wait for."""
    shape, ledger, fits = world.queue.shapes[s], world.ledger, _has_room(world, s)
    _set_open(world, s, fits)
    if world.options[ATTRIBUTE] == 0:
        return
    behind = fits and ledger.state[HEAD] != NOBODY and ledger.state[HEAD] != s
    cause = BEHIND if behind else reason(world, s)
    if cause != shape.cause:
        blame(world.causes, world.queue.shapes, s, cause, now)


@inlined
def _has_room(world: World, s: int) -> bool:
    """Return whether each group of shape s has room, taken alone."""
    shape = world.queue.shapes[s]
    for g in range(shape.first_group, shape.first_group + shape.groups):
        if world.ledger.accounts[world.groups[g].request].total < world.groups[g].size:
            return False
    return True


@inlined
def _set_open(world: World, s: int, fits: bool) -> None:
    """Enter shape s into the list of those with room, or take it out."""
    shape, ledger = world.queue.shapes[s], world.ledger
    if fits == (shape.open_at >= 0):
        return
    if fits:
        shape.open_at = ledger.state[OPEN_SHAPES]
        ledger.lists[OPEN_SHAPES, shape.open_at] = s
        ledger.state[OPEN_SHAPES] += 1
    else:
        ledger.state[OPEN_SHAPES] -= 1
        last = ledger.lists[OPEN_SHAPES, ledger.state[OPEN_SHAPES]]
        ledger.lists[OPEN_SHAPES, shape.open_at] = last
        world.queue.shapes[last].open_at = shape.open_at
        shape.open_at = -1


@inlined
def _needed(world: World, g: int) -> int:
    """Return the milli-GPU that group g asks for in all."""
    request = world.requests[world.groups[g].request]
    return world.groups[g].size * request.gpu_count * request.gpu_milli


@inlined
def _narrow(world: World, t: int, g: int) -> None:
    """Let the span of account t end where group g's verdict would change."""
    account, size = world.ledger.accounts[t], world.groups[g].size
    if size <= account.total:
        account.low = max(account.low, size)
    else:
        account.high = min(account.high, size)


@compiled
def _narrow_kind(world: World, r: int, g: int) -> None:
    """Let the spans of the kind of request r end where group g's cause would change."""
    kind, size, needed = world.ledger.kinds[world.ledger.accounts[r].kind], world.groups[g].size, _needed(world, g)
    if size <= kind.total:
        kind.low = max(kind.low, size)
    else:
        kind.high = min(kind.high, size)
    if needed <= world.ledger.models[kind.models].free:
        kind.free_low = max(kind.free_low, needed)
    else:
        kind.free_high = min(kind.free_high, needed)
    if needed <= _free_everywhere(world):
        kind.all_low = max(kind.all_low, needed)
    else:
        kind.all_high = min(kind.all_high, needed)


@compiled
def _review_account(world: World, t: int, now: float) -> None:
    """Look at the shapes whose size the total of account t has passed, and find its new span."""
    account = world.ledger.accounts[t]
    low = account.low
    account.low, account.high = -1, ENDLESS
    g = wide(world.ledger.accounts[account.request].first_group)
    while g >= 0:
        _narrow(world, t, g)
        s = wide(world.ledger.waiters[g].shape)
        if (world.groups[g].size <= low) != (world.groups[g].size <= account.total):
            _consider(world, s, now)
        else:
            # It had room, or had none, only during the pass.
            _set_open(world, s, _has_room(world, s))
        g = wide(world.ledger.waiters[g].next)


@compiled
def _review_kinds(world: World, now: float) -> None:
    """Look at the kinds of GPUs of which a total has left its span, and sum the free GPUs anew for that."""
    ledger, free = world.ledger, world.machines.free
    for k in range(ledger.models.size):
        ledger.models[k].free = 0
        for m in range(free.size - FREE_MODELS):
            if ledger.models[k].bits >> m & 1:
                ledger.models[k].free += free[FREE_MODELS + m]
    everywhere = _free_everywhere(world)
    for a in range(ledger.state[KINDS_OPEN]):
        k = wide(ledger.lists[KINDS_OPEN, a])
        kind = ledger.kinds[k]
        if kind.gpu_count == 0:
            _review_without_gpus(world, k, now)
            continue
        unmoved = kind.low <= kind.total < kind.high and kind.all_low <= everywhere < kind.all_high
        if not (unmoved and kind.free_low <= ledger.models[kind.models].free < kind.free_high):
            _review_kind(world, k, now)


@inlined
def _free_everywhere(world: World) -> int:
    total = 0
    for m in range(FREE_MODELS, world.machines.free.size):
        total += world.machines.free[m]
    return total


@compiled
def _review_kind(world: World, k: int, now: float) -> None:
    """Look at the shapes whose size or need one of the totals of kind k has passed, and find its new spans."""
    ledger, kind = world.ledger, world.ledger.kinds[k]
    low, free_low, all_low = kind.low, kind.free_low, kind.all_low
    free, everywhere = ledger.models[kind.models].free, _free_everywhere(world)
    kind.low = kind.free_low = kind.all_low = -1
    kind.high = kind.free_high = kind.all_high = ENDLESS
    t = wide(kind.first_account)
    while t >= 0:
        g = wide(ledger.accounts[t].first_group)
        while g >= 0:
            size, needed = world.groups[g].size, _needed(world, g)
            _narrow_kind(world, t, g)
            passed = (size <= low) != (size <= kind.total) or (needed <= free_low) != (needed <= free)
            if passed or (needed <= all_low) != (needed <= everywhere):
                _consider(world, wide(ledger.waiters[g].shape), now)
            g = wide(ledger.waiters[g].next)
        t = wide(ledger.accounts[t].next)


@compiled
def _review_without_gpus(world: World, k: int, now: float) -> None:
    """Look at the shapes of kind k that lack room: whether there is enough CPU and memory in all is asked afresh."""
    ledger = world.ledger
    t = wide(ledger.kinds[k].first_account)
    while t >= 0:
        account = ledger.accounts[t]
        g = wide(account.first_group) if account.relaxed == FULL and account.high < ENDLESS else wide(-1)
        while g >= 0:
            if world.groups[g].size > account.total:
                _consider(world, wide(ledger.waiters[g].shape), now)
            g = wide(ledger.waiters[g].next)
        t = wide(account.next)
