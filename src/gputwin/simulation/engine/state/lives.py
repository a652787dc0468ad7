"""What jobs live through in a run with change: work done, rates, costs, and the log of segments.

A segment is a stretch in which one job runs in one place at one rate. A run in which nothing is ever stopped has one
segment per job, which its start and end give, and none of this is kept.

Work is counted in seconds at full speed: `end = since + overhead + (work - done) / rate`, plus the checkpoints saved on
the way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.attribution.causes import CAUSES
from gputwin.simulation.engine.compiled import compiled, inlined
from gputwin.simulation.engine.state.records import SLOT, Floats, Ints, Records, SmallInts, wide

LIFE = np.dtype(
    [
        ("since", np.float64),  # its progress is known up to here
        ("rate", np.float64),  # work a second, the product of its factors
        ("overhead", np.float64),  # s that pass before work goes on
        ("safe", np.float64),  # work that a stop cannot undo; below 0: the first checkpoint comes earlier by so much
        ("overheads", np.float64),  # s of overhead so far
        ("saving", np.int32),  # 1: the overhead is a checkpoint being saved
        ("entered", np.int32),  # 1: it is in the list of running jobs by rank
        ("listed", np.int32),  # 1: it is among those whose rate is to be settled at this instant
        ("uneven", np.int32),  # 0: all its factors are 1, and not kept
        ("first_start", np.float64),
        ("queued", np.float64),  # when it last began to wait
        ("waited", np.float64),  # s in all waits that have ended
        ("full_shape", np.int32),  # the shape it asks for; it may run as a smaller one
        ("stops", np.int32),  # how often it was stopped before its end
        ("lost", np.float64),  # work done again because a stop undid it
        ("promoted_at", np.float64),  # when it will have waited so long that its service is forgotten
    ],
    align=True,
)

FACTORS = np.dtype(
    [
        ("model", np.float64),
        ("spread", np.float64),
        ("neighbours", np.float64),
        ("size", np.float64),
        ("slow_model", np.float64),  # s lost so far to each of the factors
        ("slow_spread", np.float64),
        ("slow_neighbours", np.float64),
        ("slow_size", np.float64),
    ],
    align=True,
)
"""What makes a job slower or faster than at full speed. Most runs have no such jobs, and then this takes no memory."""

FORM = np.dtype(
    [
        ("speed", np.float64),  # work a second at this size, against that of the size asked for
        ("patience", np.float64),  # s after which a waiting job takes the next form; infinity: never
        ("next", np.int64),  # the shape it has then
        ("in_rack", np.int64),  # 1: all instances must be in one rack
    ],
    align=True,
)
"""What a job is as one of its shapes: a job that may have several sizes or places has several shapes."""

SEGMENT = np.dtype(
    [
        ("start", np.float64),
        ("end", np.float64),
        ("rate", np.float64),
        ("job", np.int32),
        ("why", np.int32),
        ("by", np.int32),  # the job that took its place; -1: none
        ("spots", np.int32),
        ("first_spot", np.int64),
    ],
    align=True,
)

REASONS = ("finished", "preempted", "failed", "drained", "resized", "rate_changed")
BY_FINISH, BY_PREEMPTION, BY_FAILURE, BY_DRAIN, BY_RESIZE, BY_RATE = range(6)
"""Why a segment ended."""

SEGMENTS, SPOTS, STARTED, INSTANCES, RUNNING_ROOT, SETTLED, SHRUNK, FOR, COUNTS = range(9)
"""Positions in Lives.counts: segments and spots logged, jobs that started at this instant, instances that run, the root
of the tree of running jobs by rank, the end of the index's log when rates were last settled, how many jobs run on fewer
instances than they ask for, and for whom jobs are preempted just now."""
(
    INTERVAL,
    SAVE,
    RESTART,
    RESIZE,
    SAVE_WHEN_PREEMPTED,
    MOST_STOPS,
    SAVE_WHEN_DRAINED,
    EXIT,
    SAVE_LATER,
    COSTS,
) = range(10)
"""Positions in Lives.costs: work between checkpoints, and what saving, restarting and resizing take, s; whether a
preempted job saves what it has done; after how many stops a job gives up; whether a job that a drained node stops
saves what it has done; how long a job waits for those that make room for it to leave, s; and what a preempted job's save
takes when it runs again, s (0: it has saved before it left)."""


_MANY = 8.0
"""Intervals between checkpoints: fewer are stepped through one by one."""


class Lives(NamedTuple):
    """Each job's life, the log of segments that have ended, and what interruptions cost."""

    records: Records  # [j] LIFE
    factors: Records  # [j] FACTORS
    segments: Records
    spots: Records  # SLOT: where the instances of each segment ran
    counts: Ints
    started: SmallInts  # jobs that started at this instant
    victims: SmallInts  # scratch of preemption: how many, then running jobs taken back on trial
    earlier: Floats  # [j, cause]: s of waits that have ended, but for the last
    costs: Floats
    forms: Records  # [shape] FORM


def plain_forms(shapes: int) -> Records:
    """Return the forms of jobs that have one size and may run anywhere."""
    forms = np.zeros(shapes, FORM)
    forms["speed"], forms["patience"] = 1.0, np.inf
    return forms


def make_lives(
    jobs: Records, instances: int, costs: Floats, forms: Records, *, kept: bool, staggered: bool = False
) -> Lives:
    """Return lives that have not begun; where they are not kept, next to nothing. `staggered`: see `stagger`."""
    size = jobs.size if kept else 1
    records = np.zeros(size, LIFE)
    records["first_start"] = np.nan
    if kept:
        records["rate"] = 1.0
        records["full_shape"] = jobs["shape"]
        records["queued"] = jobs["submit"]
        if staggered:
            records["safe"] = -stagger(size) * costs[INTERVAL]
    counts = np.zeros(COUNTS, np.int64)
    counts[RUNNING_ROOT] = -1
    room = 2 * size + 4096 if kept else 1
    return Lives(
        records,
        np.zeros(size, FACTORS),
        np.zeros(room, SEGMENT),
        np.zeros(2 * instances + 8192 if kept else 1, SLOT),
        counts,
        np.zeros(size + 1, np.int32),
        np.zeros(2 * size + 64, np.int32),
        np.zeros((size, CAUSES)),
        costs,
        forms,
    )


def stagger(jobs: int) -> Floats:
    """Return by which part of an interval each job's checkpoints come earlier, so that few jobs save at the same time.

    Multiples of the golden ratio, less whole numbers: of any jobs in a row they are spread evenly.
    """
    return np.arange(jobs) * ((np.sqrt(5.0) - 1.0) / 2.0) % 1.0


def grown(lives: Lives, running: int) -> Lives:
    """Return the same with room for what one instant can bring (`has_log_room`)."""
    counts, segments, spots = lives.counts, lives.segments, lives.spots
    if counts[SEGMENTS] + 4 * running + 1024 >= segments.size:
        segments = np.zeros(2 * segments.size + 4 * running + 1024, SEGMENT)
        segments[: lives.segments.size] = lives.segments
    if counts[SPOTS] + 4 * counts[INSTANCES] + 4096 >= spots.size:
        spots = np.zeros(2 * spots.size + 4 * counts[INSTANCES] + 4096, SLOT)
        spots[: lives.spots.size] = lives.spots
    return lives._replace(segments=segments, spots=spots)


@compiled
def has_log_room(lives: Lives, running: int) -> bool:
    """Return whether one instant, at which everything that runs may be stopped and started again, fits in the log."""
    counts = lives.counts
    enough = counts[SEGMENTS] + 4 * running + 1024 < lives.segments.size
    return enough and counts[SPOTS] + 4 * counts[INSTANCES] + 4096 < lives.spots.size


@inlined
def _saved(safe: float, interval: float, done: float) -> float:
    """Return the work at the last checkpoint, where saving takes no time; with no interval all work is safe at once."""
    if interval == 0.0:
        return done
    # A checkpoint that is reached exactly is saved, whatever rounding says.
    return safe + np.floor((done - safe) / interval + 1e-12) * interval if interval < np.inf else safe


@compiled
def progress(lives: Lives, jobs: Records, j: int, now: float) -> None:
    """Bring the running job j up to `now`."""
    life, job = lives.records[j], jobs[j]
    standing = standing_at(lives, jobs, j, now)
    worked = standing.worked
    job.attained += now - life.since
    life.since = now
    job.done, life.safe = standing.done, standing.safe
    life.overhead, life.saving = standing.overhead, standing.saving
    life.overheads += standing.spent
    if life.uneven != 0:
        of = lives.factors[j]
        of.slow_model += worked * (1.0 - of.model)
        of.slow_spread += worked * of.model * (1.0 - of.spread)
        of.slow_neighbours += worked * of.model * of.spread * (1.0 - of.neighbours)
        of.slow_size += worked * of.model * of.spread * of.neighbours * (1.0 - of.size)


class Standing(NamedTuple):
    """How far a running job has come: work done and safe, s of overhead ahead, whether it saves; s spent and worked."""

    done: float
    safe: float
    overhead: float
    saving: int
    spent: float
    worked: float


@inlined
def standing_at(lives: Lives, jobs: Records, j: int, now: float) -> Standing:
    """Return where job j stands at `now`: overhead first, then work, with a checkpoint after each interval of it.

    Nothing is changed.
    """
    life, job, interval, save = lives.records[j], jobs[j], lives.costs[INTERVAL], lives.costs[SAVE]
    left, done, safe = now - life.since, job.done, life.safe
    overhead, saving, spent, worked = life.overhead, wide(life.saving), 0.0, 0.0
    while left > 0.0:
        if overhead > 0.0:
            paid = min(overhead, left)
            overhead -= paid
            spent += paid
            left -= paid
            if overhead > 0.0:
                break
        if saving != 0:
            saving, safe = wide(0), done
        if save > 0.0 and done == safe and left > _MANY * interval:
            # Of many checkpoints all but the last are stepped over at once.
            period = interval / life.rate + save
            whole = min(np.floor(left / period), np.ceil((job.duration - safe) / interval)) - 2.0
            if whole > 0.0:
                safe += whole * interval
                done = safe
                worked += whole * (interval / life.rate)
                spent += whole * save
                left -= whole * period
        until = (safe + interval - done) / life.rate
        if save == 0.0 or left < until or safe + interval >= job.duration:
            done += left * life.rate
            worked += left
            if save == 0.0:
                safe = _saved(safe, interval, min(done, job.duration))
            break
        worked += until
        done = safe + interval
        left -= until
        saving, overhead = wide(1), save
    return Standing(done, safe, overhead, saving, spent, worked)


@compiled
def seconds_left(lives: Lives, jobs: Records, j: int, work: float) -> float:
    """Return how long the job that runs takes for `work` more, with its overhead and the checkpoints on the way, s."""
    life, interval = lives.records[j], lives.costs[INTERVAL]
    seconds = life.overhead + work / life.rate
    if lives.costs[SAVE] > 0.0 and interval < np.inf:
        to_first = interval if life.saving != 0 else life.safe + interval - jobs[j].done
        if work > to_first:
            seconds += np.ceil((work - to_first) / interval) * lives.costs[SAVE]
    return seconds


@compiled
def log_segment(lives: Lives, jobs: Records, slots: Records, instances: int, j: int, now: float, why: int) -> None:
    """Write down the segment of job j that ends now."""
    counts, job = lives.counts, jobs[j]
    segment = lives.segments[counts[SEGMENTS]]
    segment.job, segment.start, segment.end, segment.why = j, job.start, now, why
    segment.rate = lives.records[j].rate
    segment.by = counts[FOR] if why == BY_PREEMPTION else -1
    segment.first_spot, segment.spots = counts[SPOTS], instances
    for i in range(instances):
        spot, slot = lives.spots[counts[SPOTS] + i], slots[job.first_slot + i]
        spot.node, spot.devices, spot.request = slot.node, slot.devices, slot.request
    counts[SEGMENTS] += 1
    counts[SPOTS] += instances
