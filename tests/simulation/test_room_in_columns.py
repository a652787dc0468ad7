"""Room counted in columns, with multiplications, is what whole-number division says."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gputwin.simulation.engine.fit.rows import FIELDS, HIGH, LOW, MOST, PER_CPU, PER_MEMORY, TOTAL, add_changes

amounts = st.integers(0, 2_000) | st.integers(0, 1 << 41)
free = amounts | st.integers(-2_000, -1)


def _fits(asked_cpu: int, asked_memory: int, cpu: int, memory: int, most: int) -> int:
    room = most
    for asked, left in ((asked_cpu, cpu), (asked_memory, memory)):
        room = 0 if asked > left else room if asked == 0 else min(room, left // asked)
    return room


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(amounts, amounts, st.integers(1, 5_000)), min_size=1, max_size=40),
    st.tuples(free, free, st.integers(0, 9)),
    st.tuples(free, free, st.integers(0, 9)),
    st.booleans(),
)
def test_room_in_columns(
    asked: list[tuple[int, int, int]], had: tuple[int, int, int], now: tuple[int, int, int], exact: bool
) -> None:
    if exact:
        # Whole multiples are where a product may be rounded below the quotient.
        cpu, memory, _ = asked[0]
        now = (cpu * now[2], memory * now[2], now[2])
    columns = np.zeros((FIELDS, len(asked)))
    columns[PER_CPU] = [1.0 / max(float(a[0]), 1e-9) for a in asked]
    columns[PER_MEMORY] = [1.0 / max(float(a[1]), 1e-9) for a in asked]
    columns[MOST], columns[TOTAL] = [a[2] for a in asked], 100.0
    columns[LOW], columns[HIGH] = 98.0, 103.0
    passed = add_changes(columns, 0, len(asked), *now, *had)
    totals = [
        100 + _fits(*a[:2], now[0], now[1], min(a[2], now[2])) - _fits(*a[:2], had[0], had[1], min(a[2], had[2]))
        for a in asked
    ]
    assert columns[TOTAL].tolist() == totals
    assert passed == any(total < 98 or total >= 103 for total in totals)
