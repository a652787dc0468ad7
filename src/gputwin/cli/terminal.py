"""A table in a terminal: as wide as it is, cells and headers whole; what does not fit is left out, last columns first."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from unicodedata import combining, east_asian_width

from gputwin.core.table import Kind, Table
from gputwin.core.units import NO_BREAK, together

PIPED_WIDTH = 120
MOST_ROWS = 20
_PROSE = 20
"""Cells of at least so many signs with blanks in them may be wrapped between words."""
_FRAME = 3
"""Blanks between columns."""


def cell_len(text: str) -> int:
    """Return the columns a text takes in a terminal; signs of East Asia take two."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(sign) in "WF" else 0 if combining(sign) else 1 for sign in text)


def is_terminal() -> bool:
    """Return whether results go to a terminal."""
    return bool(sys.__stdout__ and sys.__stdout__.isatty())


def width() -> int:
    """Return the columns there are: those of the terminal, of $COLUMNS, or 120 for a pipe."""
    if not is_terminal() and "COLUMNS" not in os.environ:
        return PIPED_WIDTH
    return max(shutil.get_terminal_size((PIPED_WIDTH, 40)).columns, 20)


def wrapped(text: str) -> str:
    """Return a text wrapped between words to the terminal's width; as it is where there is no terminal."""
    if not is_terminal() and "COLUMNS" not in os.environ:
        return text
    indent = "  " if text[:2] in ("- ", "· ", "! ") else ""
    lines = [
        textwrap.fill(
            together(line), width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, tabsize=4
        ).replace(NO_BREAK, " ")
        for line in text.split("\n")
    ]
    return "\n".join(lines)


def print_table(shown: Table, *, full: bool = False) -> None:
    """Print the table; without `full` its first rows only."""
    kept = fitting_columns(shown, width())
    names = [list(shown.columns)[i] for i in kept]
    rows = shown.rows if full else shown.rows[:MOST_ROWS]
    widths = _widths(shown, kept, width())
    numbers = [shown.columns[name] == Kind.NUMBER for name in names]
    lines = [
        _bold(wrapped(shown.title)),
        *(_bold(line) for line in _drawn(names, widths, numbers)),
        "─" * _total(widths),
    ]
    for row in rows:
        lines += _drawn([row[i] for i in kept], widths, numbers)
    lines += [wrapped(text) for text in _left_out(shown, names, len(rows))]
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _bold(line: str) -> str:
    return f"\x1b[1m{line}\x1b[0m" if is_terminal() else line


def _drawn(cells: Sequence[str], widths: Sequence[int], numbers: Sequence[bool]) -> list[str]:
    """Return the lines of a row; cells longer than their column are wrapped between words."""
    parts = [
        _clean(cell).splitlines() if cell_len(cell) <= wide else _folded(_clean(cell), wide)
        for cell, wide in zip(cells, widths, strict=True)
    ]
    lines = []
    for i in range(max(map(len, parts), default=0) or 1):
        texts = [part[i] if i < len(part) else "" for part in parts]
        blanks = [" " * max(wide - cell_len(text), 0) for text, wide in zip(texts, widths, strict=True)]
        placed = [b + text if right else text + b for text, b, right in zip(texts, blanks, numbers, strict=True)]
        lines.append((" " * _FRAME).join(placed).rstrip())
    return lines


def _folded(cell: str, wide: int) -> list[str]:
    return textwrap.wrap(cell, wide, break_long_words=False, break_on_hyphens=False)


def _clean(cell: str) -> str:
    """Return a cell without signs that move the cursor."""
    return "".join(c if c.isprintable() else "�" for c in cell)


def _widths(shown: Table, columns: Sequence[int], wide: int) -> list[int]:
    """Return the width of each column: what it needs, and for prose a share of what is left."""
    widths = [_least_width(shown, i) for i in columns]
    whole = [max([cell_len(list(shown.columns)[i]), *map(cell_len, _cells(shown, i))]) for i in columns]
    left = wide - _total(widths)
    while left > 0 and (narrow := [i for i, w in enumerate(widths) if w < whole[i]]):
        for i in narrow:
            share = min(max(left // len(narrow), 1), whole[i] - widths[i], left)
            widths[i] += share
            left -= share
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _FRAME * (len(widths) - 1)


def fitting_columns(shown: Table, wide: int) -> list[int]:
    """Return the columns that fit `wide` signs without a broken cell: the first always, the last ones go first."""
    kept = list(range(len(shown.columns)))
    while len(kept) > 1 and _total([_least_width(shown, i) for i in kept]) > wide:
        kept.pop()
    return kept


def _cells(shown: Table, column: int) -> Sequence[str]:
    return [row[column] for row in shown.rows]


def _is_prose(shown: Table, column: int) -> bool:
    kind = list(shown.columns.values())[column]
    return kind == Kind.TEXT and any(len(c) >= _PROSE and " " in c for c in _cells(shown, column))


def _least_width(shown: Table, column: int) -> int:
    """Return the signs a column cannot do without: its name or longest cell, or word where cells may be wrapped."""
    header, texts = cell_len(list(shown.columns)[column]), _cells(shown, column)
    if _is_prose(shown, column):
        longest = max((cell_len(word) for text in texts for word in text.split()), default=0)
        return max(header, longest, min(_PROSE, max(map(cell_len, texts), default=0)))
    return max([header, *map(cell_len, texts)])


def _left_out(shown: Table, names: Sequence[str], rows: int) -> list[str]:
    """Return what the table does not show, and its note."""
    found = [shown.note] if shown.note else []
    if rows < len(shown.rows):
        found.append(f"… {len(shown.rows) - rows:,} more rows: --full")
    missing = [name for name in shown.columns if name not in names and name]
    if missing:
        found.append(f"not shown, the terminal is too narrow: {', '.join(missing)}")
    return found
