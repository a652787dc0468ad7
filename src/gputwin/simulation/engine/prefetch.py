"""Telling the processor which record is needed next, so that it is fetched from memory while something else is done.

Running jobs lie scattered over all jobs, and waiting for their records to come from memory takes a large part of a run.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gputwin.core.machine_code import config
from gputwin.simulation.engine.state.records import Records

_LINE = 64
"""Bytes that the processor fetches at once."""


def _lowered(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Ask for every line of the record; LLVM's `prefetch` with: to be read, kept in the cache, data."""
    records, number = signature.args[0], ir.IntType(32)
    array = context.make_array(records)(context, builder, arguments[0])
    size = context.get_abi_sizeof(context.get_data_type(records.dtype))
    first = builder.ptrtoint(array.data, ir.IntType(64))
    first = builder.add(first, builder.mul(arguments[1], ir.IntType(64)(size)))
    kind = ir.FunctionType(ir.VoidType(), [ir.PointerType(), number, number, number])
    function = builder.module.declare_intrinsic("llvm.prefetch", [ir.PointerType()], kind)
    for offset in range(0, size + _LINE - 1, _LINE):
        at = builder.inttoptr(builder.add(first, ir.IntType(64)(min(offset, size - 1))), ir.PointerType())
        builder.call(function, [at, number(0), number(3), number(1)])
    return context.get_dummy_value()


def _typed(typing: Any, records: Any, i: Any) -> Any:
    return types.void(records, types.int64), _lowered


def _nothing(records: Records, i: int) -> None:
    """Do nothing: without compilation there is nothing to gain."""


prefetch: Any = _nothing if config.DISABLE_JIT else intrinsic(_typed)
"""prefetch(records, i): have record i fetched; nothing waits for it, and nothing changes."""
