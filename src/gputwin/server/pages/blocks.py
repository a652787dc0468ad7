"""What pages are made of: plain data that the page component shows. Nothing here is markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from gputwin.core.units import format_duration
from gputwin.core.units import percent as as_percent
from gputwin.server.tasks import Task

Block = dict[str, Any]
Cell = str | dict[str, str]


@dataclass
class Page:
    """One page: its address, title, where it stands, views beside it, and its blocks from top to bottom."""

    path: str
    title: str
    blocks: list[Block] = field(default_factory=list)
    lead: str = ""
    crumbs: list[dict[str, str]] = field(default_factory=list)
    tabs: list[dict[str, str]] = field(default_factory=list)
    status: int = 200

    def to_json(self, signed: bool) -> dict[str, Any]:
        """Return the page as the component takes it."""
        return {
            "path": self.path,
            "title": self.title,
            "lead": self.lead,
            "crumbs": self.crumbs,
            "tabs": self.tabs,
            "blocks": self.blocks,
            "signed": signed,
        }


def link(text: str, href: str, *, primary: bool = False, download: bool = False) -> dict[str, Any]:
    """Return a link; in a row of links it is a button."""
    return {"text": text, "href": href, "primary": primary, "download": download}


def remove(text: str, action: str, question: str) -> dict[str, Any]:
    """Return a button that removes something after asking."""
    return {"text": text, "action": action, "question": question, "then": "/"}


def links(*found: dict[str, Any]) -> Block:
    """Return a row of links."""
    return {"kind": "links", "links": list(found)}


def address(path: str, **query: Any) -> str:
    """Return an address with a query; what is empty is left out."""
    text = urlencode({k: v for k, v in query.items() if v not in ("", None, False)}, quote_via=quote)
    return f"{path}?{text}" if text else path


def column(name: str, kind: str = "text", **more: Any) -> dict[str, Any]:
    """Return a column of a table: text, number or code."""
    return {"name": name, "kind": kind, **more}


def table(
    title: str,
    columns: Sequence[dict[str, Any]],
    rows: Sequence[Sequence[Cell]],
    *,
    note: str = "",
    empty: str = "",
    choose: dict[str, Any] | None = None,
    stacks: bool = False,
) -> Block:
    """Return a table; a cell is text, or text with a link; one that `stacks` shows rows one below the other on a phone."""
    made = {"kind": "table", "title": title, "columns": list(columns), "rows": [list(row) for row in rows]}
    return {**made, "note": note, "empty": empty, "choose": choose, "stacks": stacks}


def prose(text: str) -> Block:
    """Return a paragraph."""
    return {"kind": "prose", "text": text}


def statement(text: str, tone: str = "neutral") -> Block:
    """Return a sentence set apart: neutral, good or warning."""
    return {"kind": "statement", "text": text, "tone": tone}


def cards(*found: tuple[str, str, str]) -> Block:
    """Return key figures side by side: label, value, note."""
    return {"kind": "cards", "cards": [{"label": a, "value": b, "note": c} for a, b, c in found]}


def shown(found: Task | dict[str, Any]) -> Block:
    """Return a document, or the work that makes it."""
    if isinstance(found, Task):
        return {"kind": "task", "task": found.to_json()}
    return {"kind": "document", "document": found}


def form(
    id_: str, title: str, action: str, submit: str, groups: list[Block], method: str = "json", **more: Any
) -> Block:
    """Return a form: groups of fields, sent as JSON, as files, or as a query."""
    made = {"kind": "form", "id": id_, "title": title, "action": action, "submit": submit, "groups": groups}
    return {**made, "method": method, "text": "", **more}


def group(fields: list[Block], title: str = "", *, closed: bool = False, text: str = "") -> Block:
    """Return fields that belong together."""
    return {"title": title, "fields": fields, "closed": closed, "text": text}


def input_field(name: str, label: str, kind: str = "text", value: Any = "", help: str = "", **more: Any) -> Block:
    """Return a field of a form."""
    return {"name": name, "label": label, "type": kind, "value": value, "help": help, **more}


def select(name: str, label: str, options: Sequence[tuple[str, str]], value: str = "", **more: Any) -> Block:
    """Return a choice: value and label of each option."""
    made = [{"value": v, "label": text} for v, text in options]
    return {"name": name, "label": label, "type": "select", "value": value, "options": made, **more}


def duration(seconds: float | None) -> str:
    """Return a duration as people read it; "–" for none."""
    return "–" if seconds is None else format_duration(seconds)


def percent(share: float | None) -> str:
    """Return a share as people read it; "–" for none."""
    return "–" if share is None else as_percent(share, 1)


def when(seconds: float) -> str:
    """Return a time of the server's clock, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
