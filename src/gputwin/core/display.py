"""Results as a Python prompt and a notebook show them: a title and a few lines, never more than a screen."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable

WIDTH = 100
_MOST_LINES = 20


def card(title: str, lines: Iterable[str]) -> str:
    """Return the title and the lines below it, wrapped, at most a screen of them."""
    wrapped = [part for line in lines for part in textwrap.wrap(line, WIDTH - 2, subsequent_indent="  ") or [""]]
    more = ["…"] if len(wrapped) > _MOST_LINES else []
    return "\n".join([title, *(f"  {line}" for line in [*wrapped[:_MOST_LINES], *more])])


class Shown:
    """A result that shows itself by its `_title` and `_lines`."""

    def _title(self) -> str:
        return type(self).__name__

    def _lines(self) -> Iterable[str]:
        return ()

    def __repr__(self) -> str:
        return card(self._title(), self._lines())

    def _repr_html_(self) -> str:
        """Return the result as a notebook shows it; every text is escaped."""
        lines = "".join(f"<li>{html.escape(line)}</li>" for line in list(self._lines())[:_MOST_LINES])
        return f"<div><p><b>{html.escape(self._title())}</b></p><ul>{lines}</ul></div>"
