"""Compiled code that is given a named tuple by its address reads and changes the same arrays."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numba import types

from gputwin.core.machine_code import config
from gputwin.simulation.engine.by_address import Placed, handed_over
from gputwin.simulation.engine.compiled import compiled_as, only_version
from tests.simulation.address_samples import Inner, Outer, loop, rule

VALUE = np.dtype([("number", np.int32), ("value", np.float64)], align=True)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="without compilation nothing is handed over by its address")
def test_arrays_are_read_and_changed_where_they_are() -> None:
    def make() -> Outer:
        records = np.zeros(4, VALUE)
        records["value"] = [1, 2, 3, 4]
        return Outer(np.zeros(4), Inner(records, np.arange(8.0).reshape(2, 4)))

    kind = numba.typeof(make())
    inner = handed_over(kind.types[kind.fields.index("inner")])
    signature = types.float64(inner, types.int64)
    policy = compiled_as(rule, signature)
    run = only_version(compiled_as(loop, types.int64(handed_over(kind), types.FunctionType(signature)))).entry_point
    # Two at once: each address leads to its own arrays.
    outers = [make(), make()]
    placed = [Placed(outer) for outer in outers]
    outers[1].inner.table[1] = 0.0
    assert [run(p.address, policy) for p in placed] == [4, 4]
    for outer, beside in zip(outers, ([4, 5, 6, 7], [0, 0, 0, 0]), strict=True):
        assert outer.inner.records["value"].tolist() == [2, 3, 4, 5]
        assert outer.numbers.tolist() == [2 * value + more for value, more in zip((2, 3, 4, 5), beside, strict=True)]


def test_only_named_tuples_are_handed_over_by_their_address() -> None:
    numbers = numba.typeof(np.zeros(3))
    assert handed_over(numbers) is numbers
    kinds = {
        handed_over(numba.typeof(Inner(np.zeros(1, VALUE), np.zeros(shape)))).name for shape in ((2, 2), (3, 1), 4)
    }
    assert len(kinds) == 2, "one type for tables of two dimensions, another for one dimension"
