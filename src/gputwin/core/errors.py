"""Errors written for the person who made the mistake: what, where, what to do."""

from __future__ import annotations

import os


class GputwinError(Exception):
    """Base of every error gputwin raises on purpose."""


class UserError(GputwinError):
    """A mistake of the person at the keyboard: one line, exit code 2."""


class InputError(UserError):
    """Something wrong with a file, reported in one line: where (file, row, field), what, and the remedy."""

    def __init__(
        self,
        problem: str,
        *,
        file: str | os.PathLike[str] | None = None,
        row: int | None = None,
        field: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.problem = problem
        self.file = None if file is None else os.fspath(file)
        self.row = row
        self.field = field
        self.remedy = remedy
        super().__init__(self._line())

    def _line(self) -> str:
        where = []
        if self.file is not None:
            where.append(self.file)
        if self.row is not None:
            where.append(f"row {self.row}")
        if self.field is not None:
            where.append(f"field '{self.field}'")
        line = f"{', '.join(where)}: {self.problem}" if where else self.problem
        if self.remedy:
            line = f"{line}; {self.remedy}"
        return " ".join(line.split())


def shorten(value: object, limit: int = 60) -> str:
    """Return `value` as printable text of at most `limit` characters, safe to put in a one-line message."""
    text = str(value)[: limit + 1]
    text = "".join(c if c.isprintable() else "�" for c in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"
