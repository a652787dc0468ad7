"""A table as it is read: defined once, shown in a terminal, in a report and as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from enum import StrEnum

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Kind(StrEnum):
    """What a column holds, which is how it is set."""

    TEXT = "text"
    NUMBER = "number"
    CODE = "code"


@dataclass(frozen=True)
class Table:
    """A table: columns (name → what they hold), the most telling first, and cells as they are to be read."""

    title: str
    columns: dict[str, Kind]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def to_csv(self) -> str:
        """Return header and cells as CSV; text that a spreadsheet would run as a formula is quoted with an apostrophe."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        kinds = list(self.columns.values())
        for row in self.rows:
            pairs = zip(row, kinds, strict=True)
            writer.writerow(
                f"'{cell}" if kind != Kind.NUMBER and cell.startswith(_FORMULA) else cell for cell, kind in pairs
            )
        return out.getvalue()
