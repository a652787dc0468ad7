"""Totals that are counted node by node, in columns: the entries of one kind lie side by side.

When a node changes, the room it had and has is worked out for every entry of a kind that its GPUs can take: hundreds of
entries per change on a busy cluster. In columns, and with multiplications instead of divisions, the processor works on
several at a time. An entry is looked at again only when its total has left the span between the thresholds next to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.simulation.engine.compiled import compiled, inlined, vectorized
from gputwin.simulation.engine.fit.thresholds import Thresholds, above, below
from gputwin.simulation.engine.state.records import Floats, Ints, Records, SmallInts, wide

PER_CPU, PER_MEMORY, MOST, TOTAL, LOW, HIGH, FIELDS = range(7)
"""Columns: one divided by the CPU and by the memory that an instance asks for; the most instances anybody asks for; the
total; it passes a threshold below LOW or from HIGH on."""
_NOTHING = 1e-9
"""Instead of asking for none of a resource, which cannot be divided by."""


class Rows(NamedTuple):
    """Columns of all kinds: those of kind k begin at its `first_row`, and `rows` of them are in use."""

    columns: Floats  # [FIELDS, row]
    entry_at: SmallInts  # [row]


def make_rows(kind_of: Ints, kinds: Records) -> Rows:
    """Return columns with place for all entries, whose kinds are `kind_of`; none is in use."""
    kinds["first_row"] = np.searchsorted(np.sort(kind_of), np.arange(kinds.size))
    return Rows(np.zeros((FIELDS, kind_of.size)), np.zeros(kind_of.size, np.int32))


@compiled
def add_row(rows: Rows, thresholds: Thresholds, entries: Records, kinds: Records, t: int, total: int) -> None:
    """Let entry t be counted from now on; `total`: its room now."""
    entry = entries[t]
    kind = kinds[entry.kind]
    i = wide(kind.first_row + kind.rows)
    entry.row, rows.entry_at[i] = i, t
    kind.rows += 1
    kind.more += entry.more
    kind.least_cpu, kind.least_memory = min(kind.least_cpu, entry.cpu), min(kind.least_memory, entry.memory)
    rows.columns[PER_CPU, i] = 1.0 / max(float(entry.cpu), _NOTHING)
    rows.columns[PER_MEMORY, i] = 1.0 / max(float(entry.memory), _NOTHING)
    rows.columns[MOST, i], rows.columns[TOTAL, i] = entry.most, total
    set_limits(rows, thresholds, entries, t)


@compiled
def remove_row(rows: Rows, entries: Records, kinds: Records, t: int) -> None:
    """Count entry t no more; the last of its kind takes its row."""
    entry = entries[t]
    kind = kinds[entry.kind]
    kind.rows -= 1
    kind.more -= entry.more
    i, last = wide(entry.row), wide(kind.first_row + kind.rows)
    for f in range(FIELDS):
        rows.columns[f, i] = rows.columns[f, last]
    rows.entry_at[i] = rows.entry_at[last]
    entries[rows.entry_at[i]].row = i
    entry.row = -1


@compiled
def set_limits(rows: Rows, thresholds: Thresholds, entries: Records, t: int) -> None:
    """Note between which thresholds the mark of entry t stands."""
    i = wide(entries[t].row)
    if i >= 0:
        rows.columns[LOW, i] = below(thresholds, t, wide(-1))
        rows.columns[HIGH, i] = above(thresholds, t)


@inlined
def lift_limits(rows: Rows, i: int) -> None:
    """Let row i pass no threshold until its limits are set again: it is known to have passed one."""
    rows.columns[LOW, i], rows.columns[HIGH, i] = -np.inf, np.inf


@inlined
def total_in(rows: Rows, i: int) -> int:
    """Return the total of row i."""
    return int(rows.columns[TOTAL, i])


@inlined
def is_outside(rows: Rows, i: int) -> bool:
    """Return whether the total of row i has passed a threshold."""
    total = rows.columns[TOTAL, i]
    return total < rows.columns[LOW, i] or total >= rows.columns[HIGH, i]


@inlined
def _fits(by_cpu: float, by_memory: float, most: float, by_gpus: float) -> float:
    """Return how many instances fit, at least none."""
    room = np.floor(by_memory if by_memory < by_cpu else by_cpu)
    room = most if most < room else room
    room = by_gpus if by_gpus < room else room
    return 0.0 if room < 0.0 else room


@vectorized("b1(f8[:, ::1], i8, i8, i8, i8, i8, i8, i8, i8)")
def add_changes(
    columns: Floats, first: int, count: int, cpu: int, memory: int, now: int, had_cpu: int, had_memory: int, had: int
) -> bool:
    """Add to `count` totals what a node has room for less what it had; return whether one has passed a threshold.

    It has so much CPU and memory free, and GPUs for `now` instances; before, it had so much, and GPUs for `had`.
    """
    # Half a unit more keeps products from being rounded below whole quotients, and changes no quotient.
    c, m, most_now = cpu + 0.5, memory + 0.5, float(now)
    c_before, m_before, most_before = had_cpu + 0.5, had_memory + 0.5, float(had)
    per_cpu, per_memory, most = columns[PER_CPU], columns[PER_MEMORY], columns[MOST]
    totals, low, high = columns[TOTAL], columns[LOW], columns[HIGH]
    passed = 0
    for k in range(count):
        # A number without sign cannot count from the end of an array, which would keep the loop from being vectorized.
        i = np.uint64(first + k)
        room = _fits(c * per_cpu[i], m * per_memory[i], most[i], most_now)
        before = _fits(c_before * per_cpu[i], m_before * per_memory[i], most[i], most_before)
        total = totals[i] + (room - before)
        totals[i] = total
        passed |= int((total < low[i]) | (total >= high[i]))
    return passed != 0
