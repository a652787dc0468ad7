"""What an analysis gives: named tables, what they say in words, and how they were made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl


class Remark(NamedTuple):
    """A sentence computed from the tables; a warning where a figure misleads or a claim does not hold."""

    text: str
    is_warning: bool = False
    matters: int = 1
    """2: calls for a change; 1: worth knowing; 0: a detail, a matter of method, or said by the verdict already."""


@dataclass(frozen=True)
class Topic:
    """One subject of the analysis. A table that the trace cannot fill is absent."""

    name: str
    title: str
    tables: Mapping[str, pl.DataFrame]
    remarks: tuple[Remark, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def table(self, name: str) -> pl.DataFrame | None:
        """Return a table, or None where the trace cannot fill it."""
        return self.tables.get(name)
