"""A table in a terminal: as wide as it is, whole cells only. What does not fit is left out, last columns first."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence

from gputwin.core.table import Kind, Table

PIPED_WIDTH = 120
MOST_ROWS = 20
_PROSE = 20
"""Cells of at least so many signs with blanks in them may be wrapped between words."""
_FRAME = 3
"""Signs a column takes besides its cells; the last edge takes one more."""


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
            line, width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, tabsize=4
        )
        for line in text.split("\n")
    ]
    return "\n".join(lines)


def print_table(shown: Table, *, full: bool = False) -> None:
    """Print the table; without `full` its first rows only."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table as Grid

    wide = width()
    kept = fitting_columns(shown, wide)
    names = [list(shown.columns)[i] for i in kept]
    rows = shown.rows if full else shown.rows[:MOST_ROWS]
    grid = Grid(
        title=escape(shown.title), title_justify="left", title_style="bold", header_style="bold", box=SIMPLE_HEAD,
        padding=(0, 1), pad_edge=False, show_edge=False,
    )  # fmt: skip
    for i, name in zip(kept, names, strict=True):
        is_number = shown.columns[name] == Kind.NUMBER
        grid.add_column(
            escape(_header(shown, i)),
            justify="right" if is_number else "left",
            no_wrap=not _is_prose(shown, i),
            overflow="ellipsis" if not _is_prose(shown, i) else "fold",
            min_width=_least_width(shown, i) if len(kept) > 1 else None,
        )
    for row in rows:
        grid.add_row(*(escape(row[i]) for i in kept))
    Console(file=sys.stdout, soft_wrap=False, width=wide, force_terminal=is_terminal()).print(grid)
    for text in _left_out(shown, names, len(rows)):
        sys.stdout.write(f"{wrapped(text)}\n")


def fitting_columns(shown: Table, wide: int) -> list[int]:
    """Return the columns that fit `wide` signs without a broken cell: the first always, the last ones go first."""
    kept = list(range(len(shown.columns)))
    while len(kept) > 1 and sum(_least_width(shown, i) + _FRAME for i in kept) > wide + _FRAME:
        kept.pop()
    return kept


def _cells(shown: Table, column: int) -> Sequence[str]:
    return [row[column] for row in shown.rows]


def _is_prose(shown: Table, column: int) -> bool:
    kind = list(shown.columns.values())[column]
    return kind == Kind.TEXT and any(len(c) >= _PROSE and " " in c for c in _cells(shown, column))


def _least_width(shown: Table, column: int) -> int:
    """Return the signs a column cannot do without: its longest cell, or word where it may be wrapped between words."""
    header = max((len(word) for word in list(shown.columns)[column].split()), default=0)
    texts = _cells(shown, column)
    if _is_prose(shown, column):
        longest = max((len(word) for text in texts for word in text.split()), default=0)
        return max(header, longest, min(_PROSE, max(map(len, texts), default=0)))
    return max([header, *map(len, texts)])


def _header(shown: Table, column: int) -> str:
    """Return the column's name, on several lines where its cells are narrower."""
    name = list(shown.columns)[column]
    return "\n".join(textwrap.wrap(name, _least_width(shown, column), break_long_words=False)) or name


def _left_out(shown: Table, names: Sequence[str], rows: int) -> list[str]:
    """Return what the table does not show, and its note."""
    found = [shown.note] if shown.note else []
    if rows < len(shown.rows):
        found.append(f"… {len(shown.rows) - rows:,} more rows: --full")
    missing = [name for name in shown.columns if name not in names and name]
    if missing:
        found.append(f"not shown, for want of width: {', '.join(missing)}")
    return found
