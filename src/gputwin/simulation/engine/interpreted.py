"""The engine without compilation, for stepping through it and for tests of its logic: NUMBA_DISABLE_JIT=1.

Compiled code reads a record's fields as attributes. NumPy's own records have attributes of the same names (`shape`,
`size`), so each array of records is handed over in a thin wrapper.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Record:
    """One record; its fields are attributes."""

    __slots__ = ("_record",)

    def __init__(self, record: Any) -> None:
        object.__setattr__(self, "_record", record)

    def __getattr__(self, name: str) -> Any:
        return self._record[name].item()

    def __setattr__(self, name: str, value: Any) -> None:
        self._record[name] = value


class RecordArray:
    """An array of records."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, key: Any) -> Any:
        found = self.array[key]
        return Record(found) if isinstance(found, np.void) else found

    @property
    def size(self) -> int:
        """Return how many records there are."""
        return int(self.array.size)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the array's shape."""
        return tuple(self.array.shape)


def wrapped(part: Any) -> Any:
    """Return a world, or a part of it, as code that is not compiled reads it."""
    if isinstance(part, tuple):
        return type(part)(*(wrapped(p) for p in part))
    return RecordArray(part) if part.dtype.names else part
