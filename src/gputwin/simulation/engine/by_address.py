"""Handing the world over by its address: compiled functions are given one number instead of every array.

Numba hands a named tuple on field by field. The world has more than a hundred arrays, each of seven numbers, so that each
call of a function that is given the world would copy twelve kilobytes, and compiling a call would take as long as the
function. So the named tuple is written to memory once (`Placed`), and compiled code is given where it lies: an attribute
that is a named tuple is the address of a part of it, one that is an array is read from there when it is asked for.

What lies there does not change while compiled code runs, only what the arrays hold; LLVM is told so (`invariant.load`),
and reads each array once.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.datamodel.models import OpaqueModel
from numba.core.extending import NativeValue, infer_getattr, lower_getattr_generic, register_model, unbox
from numba.core.typing.templates import AttributeTemplate


class AddressType(types.Type):  # type: ignore[misc]
    """The address of a named tuple."""

    def __init__(self, value: Any) -> None:
        self.value = value
        digest = hashlib.sha256(str(value).encode()).hexdigest()[:12]
        super().__init__(name=f"{value.instance_class.__name__}At{digest}")


register_model(AddressType)(OpaqueModel)


@cache
def handed_over(kind: Any) -> Any:
    """Return the type as which compiled code is given something of this type: a named tuple by its address."""
    return AddressType(kind) if isinstance(kind, types.BaseNamedTuple) else kind


class Placed:
    """A named tuple of arrays written to memory; `address` is what compiled code is given."""

    def __init__(self, value: Any) -> None:
        words: list[int] = []
        _describe(value, words)
        self._memory = np.array(words, np.int64)
        # Whoever keeps the address keeps the arrays alive.
        self.value = value
        self.address = int(self._memory.ctypes.data)


def _describe(part: Any, words: list[int]) -> None:
    """Append what Numba knows of each array: owner and parent (none), length, bytes an item, address, shape, strides."""
    if isinstance(part, tuple):
        for inner in part:
            _describe(inner, words)
    else:
        words += [0, 0, part.size, part.itemsize, part.ctypes.data, *part.shape, *part.strides]


def _part(builder: Any, pointer: Any, whole: Any, i: int) -> Any:
    """Return the address of part i of a structure."""
    number = ir.IntType(32)
    return builder.gep(pointer, [number(0), number(i)], inbounds=True, source_etype=whole)


@unbox(AddressType)  # type: ignore[untyped-decorator]
def _unbox(kind: Any, given: Any, c: Any) -> Any:
    """Return the address handed in from Python as a whole number."""
    return NativeValue(c.pyapi.long_as_voidptr(given))


@infer_getattr
class _Attributes(AttributeTemplate):  # type: ignore[misc]
    key = AddressType

    def generic_resolve(self, kind: Any, name: str) -> Any:
        fields = kind.value.fields
        return handed_over(kind.value.types[fields.index(name)]) if name in fields else None


@lower_getattr_generic(AddressType)  # type: ignore[untyped-decorator]
def _read(context: Any, builder: Any, kind: Any, pointer: Any, name: str) -> Any:
    """Return the address of a part that is a named tuple, or read an array."""
    i = kind.value.fields.index(name)
    whole = context.get_value_type(kind.value)
    opaque = builder.bitcast(pointer, ir.PointerType())
    at = _part(builder, opaque, whole, i)
    if isinstance(kind.value.types[i], types.BaseNamedTuple):
        return builder.bitcast(at, pointer.type)
    return _loaded(builder, at, whole.elements[i])


def _loaded(builder: Any, pointer: Any, kind: Any) -> Any:
    """Return a structure, each number read by itself: those that are not used are not read."""
    if not isinstance(kind, ir.Aggregate):
        number = builder.load(pointer, typ=kind)
        number.set_metadata("invariant.load", builder.module.add_metadata([]))
        return number
    value = ir.Constant(kind, ir.Undefined)
    for i, part in enumerate(kind.elements):
        value = builder.insert_value(value, _loaded(builder, _part(builder, pointer, kind, i), part), i)
    return value
