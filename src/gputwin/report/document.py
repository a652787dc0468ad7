"""Sections as plain data, for pages other than the report: text as it is to be read, figures as Plotly takes them.

Whoever shows the data escapes the texts. Plotly reads a dialect of HTML in labels, so what is not one of the few tags
that figures are made with is written as text here, whichever figure a hostile name got into.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from gputwin.core.errors import shorten
from gputwin.report.answer import Answer, answer_of
from gputwin.report.html import as_csv
from gputwin.report.page import Bullets, Cards, FigurePart, Findings, Part, Prose, Section, Statement, TablePart
from gputwin.report.theme import THEMES, template

_MOST_TEXT = 4000
_MOST_CELL = 240
_NO_TAG = re.compile(r"<(?!/?(?:b|i|br|sub|sup|extra)\s*/?>)", re.IGNORECASE)


def document_of(title: str, sections: Sequence[Section]) -> dict[str, Any]:
    """Return a page as plain data: its title, the answer in the first section, and all else as sections."""
    answer, evidence = answer_of(sections[0])
    others = [*([evidence] if evidence else []), *sections[1:]]
    return {"title": shorten(title, 200), "answer": _answer(answer), "sections": [section_data(s) for s in others]}


def themes() -> dict[str, Any]:
    """Return the Plotly templates, light and dark, by name."""
    return {theme.name: template(theme).to_plotly_json() for theme in THEMES}


def section_data(section: Section) -> dict[str, Any]:
    """Return one section as plain data."""
    return {
        "id": section.id,
        "title": _text(section.title),
        "gist": _text(section.gist),
        "parts": [part_data(part) for part in section.parts],
        "notes": [_text(note) for note in section.notes],
    }


def part_data(part: Part) -> dict[str, Any]:
    """Return one part of a section as plain data; `kind` says which."""
    if isinstance(part, Prose):
        return {"kind": "prose", "text": _text(part.text)}
    if isinstance(part, Statement):
        return {"kind": "statement", "text": _text(part.text), "tone": part.tone.value}
    if isinstance(part, Cards):
        return {"kind": "cards", "cards": [_card(c.label, c.value, c.note) for c in part.cards]}
    if isinstance(part, Bullets):
        return {"kind": "bullets", "items": [_text(item) for item in part.items]}
    if isinstance(part, Findings):
        remarks = [{"text": _text(r.text), "warning": r.is_warning} for r in part.remarks]
        return {"kind": "findings", "title": _text(part.title), "remarks": remarks}
    if isinstance(part, TablePart):
        return table_data(part)
    return figure_data(part)


def table_data(part: TablePart) -> dict[str, Any]:
    """Return a table as plain data."""
    return {
        "kind": "table",
        "title": _text(part.title),
        "columns": [{"name": _text(name), "kind": kind.value} for name, kind in part.columns.items()],
        "rows": [[shorten(cell, _MOST_CELL) for cell in row] for row in part.rows],
        "note": _text(part.note),
    }


def figure_data(part: FigurePart) -> dict[str, Any]:
    """Return a figure as plain data: what Plotly draws, its caption, and the data behind it as CSV."""
    drawn = _harmless(json.loads(part.figure.to_json()))
    drawn["layout"].pop("template", None)
    return {
        "kind": "figure",
        "id": part.id,
        "title": _text(part.title),
        "caption": _text(part.caption),
        "half": part.half,
        "height": int(part.figure.layout.height or 320),
        "figure": drawn,
        "csv": as_csv(part.data),
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "id": answer.id,
        "question": _text(answer.question),
        "verdict": None if answer.verdict is None else part_data(answer.verdict),
        "cards": [_card(c.label, c.value, c.note) for c in answer.cards],
        "summary": None if answer.summary is None else table_data(answer.summary),
        "chart": None if answer.chart is None else figure_data(answer.chart),
        "findings": None if answer.findings is None else part_data(answer.findings),
        "next_steps": [_text(step) for step in answer.next_steps],
    }


def _card(label: str, value: str, note: str) -> dict[str, str]:
    return {"label": _text(label), "value": shorten(value, _MOST_CELL), "note": shorten(note, _MOST_CELL)}


def _text(text: object) -> str:
    return shorten(text, _MOST_TEXT)


def _harmless(value: Any) -> Any:
    """Return figure data in which a tag is text, but for those that only set type."""
    if isinstance(value, str):
        return _NO_TAG.sub("&lt;", value)
    if isinstance(value, list):
        return [_harmless(item) for item in value]
    if isinstance(value, dict):
        return {key: _harmless(item) for key, item in value.items()}
    return value
