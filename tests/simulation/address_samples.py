"""Functions and a named tuple for the test of what compiled code is handed by its address: it must be importable."""

from __future__ import annotations

from typing import Any, NamedTuple

from gputwin.simulation.engine.compiled import compiled


class Inner(NamedTuple):
    """A part of a world."""

    records: Any
    table: Any


class Outer(NamedTuple):
    """A world."""

    numbers: Any
    inner: Inner


def rule(inner: Inner, i: int) -> float:
    """Return what a policy would, handed a part."""
    return 2.0 * inner.records[i].value


@compiled
def _change(outer: Outer, i: int) -> None:
    outer.inner.records[i].value += 1.0
    outer.numbers[i] += outer.inner.table[1, i]


def loop(outer: Outer, policy: Any) -> int:
    """Change each record, then add what the policy says of it."""
    for i in range(outer.numbers.size):
        _change(outer, i)
        outer.numbers[i] += policy(outer.inner, i)
    return outer.inner.table.shape[1]
