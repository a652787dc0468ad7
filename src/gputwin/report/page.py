"""What a report is made of: sections, and the parts a section can have. Texts are plain; rendering escapes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import polars as pl

from gputwin.analysis.topic import Remark
from gputwin.core.table import Kind
from gputwin.core.table import Table as TablePart

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


_MOST_GIST = 180


def number(value: float | None) -> str:
    """Return a number at the precision it is read with; "–" for none."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.4g}"


class Tone(StrEnum):
    """How a statement is meant."""

    NEUTRAL = "neutral"
    GOOD = "good"
    WARNING = "warning"


@dataclass(frozen=True)
class Prose:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Statement:
    """The sentence a section exists for, set apart from the rest."""

    text: str
    tone: Tone = Tone.NEUTRAL


@dataclass(frozen=True)
class Card:
    """One key figure: what, how much, and what to know about it."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Cards:
    """Key figures side by side."""

    cards: tuple[Card, ...]


@dataclass(frozen=True)
class FigurePart:
    """A figure, what it shows in words and numbers, and the data behind it for download."""

    id: str
    title: str
    figure: Figure
    caption: str
    data: pl.DataFrame
    half: bool = False
    """Two halves stand side by side where there is room."""


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Findings:
    """What a section's numbers say: sentences, the warnings among them marked."""

    remarks: tuple[Remark, ...]
    title: str = "What this shows"


Part = Prose | Statement | Cards | TablePart | FigurePart | Bullets | Findings


def _cut(text: str, most: int) -> str:
    """Return the text with at most so many signs: whole sentences or clauses where they fill a third, else whole words."""
    if len(text) <= most:
        return text
    head = text[:most]
    sentences = head.rpartition(". ")[0]
    if len(sentences) > most / 3:
        return f"{sentences}."
    clauses = max(head.rpartition("; ")[0], head.rpartition(", and ")[0], key=len)
    if len(clauses) > most / 3:
        return f"{clauses}."
    return f"{head.rpartition(' ')[0] or head} …"


@dataclass(frozen=True)
class Section:
    """One section of the report. `notes` say how its numbers were made; the method section gathers them.

    `conclusion` is what it says while it is closed, where it has no statement. The first section of a report is its
    answer: it opens with its `question`, may have a small table (`summary`), and ends with what to do next.
    """

    id: str
    title: str
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = field(default=())
    question: str = ""
    next_steps: tuple[str, ...] = field(default=())
    summary: TablePart | None = None
    conclusion: str = ""

    @property
    def figures(self) -> tuple[FigurePart, ...]:
        """Return the section's figures."""
        return tuple(part for part in self.parts if isinstance(part, FigurePart))

    @property
    def gist(self) -> str:
        """Return the sentence shown while the section is closed, cut between words where it is long."""
        return _cut(self._first_words(), _MOST_GIST)

    def _first_words(self) -> str:
        """Return the section's statement, else its conclusion, a finding, figure, sentence, or a chart's caption."""
        for part in self.parts:
            if isinstance(part, Statement):
                return part.text
        if self.conclusion:
            return self.conclusion
        for part in self.parts:
            if isinstance(part, Findings) and part.remarks:
                return part.remarks[0].text
        for part in self.parts:
            if isinstance(part, Cards):
                first = part.cards[0]
                return f"{first.label}: {first.value}" + (f" ({first.note})" if first.note else "")
        for part in self.parts:
            if isinstance(part, Prose):
                return part.text
            if isinstance(part, Bullets) and part.items:
                return part.items[0]
        return next((figure.caption for figure in self.figures), "")


__all__ = [
    "Bullets",
    "Card",
    "Cards",
    "FigurePart",
    "Findings",
    "Kind",
    "Part",
    "Prose",
    "Section",
    "Statement",
    "TablePart",
    "Tone",
    "number",
]
