"""An analysis as a notebook shows it: each topic's sentences, and its tables folded away."""

from __future__ import annotations

import html
from collections.abc import Iterable

import polars as pl

from gputwin.analysis.topic import Topic
from gputwin.core.errors import shorten

_MOST_ROWS = 20


def topics_html(topics: Iterable[Topic]) -> str:
    """Return the topics as HTML without script or style sheet; every text of the trace is escaped."""
    return f"<div>{''.join(_topic(topic) for topic in topics)}</div>"


def _topic(topic: Topic) -> str:
    items = "".join(f"<li>{'⚠ ' if r.is_warning else ''}{_text(r.text, 2000)}</li>" for r in topic.remarks)
    tables = "".join(
        f"<details><summary>{_text(name.replace('_', ' '))} ({table.height:,} rows)</summary>{_table(table)}</details>"
        for name, table in topic.tables.items()
    )
    return f"<h4>{_text(topic.title)}</h4><ul>{items}</ul>{tables}"


def _table(frame: pl.DataFrame) -> str:
    head = "".join(f"<th>{_text(name)}</th>" for name in frame.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_text(_cell(v))}</td>" for v in row) + "</tr>" for row in frame.head(_MOST_ROWS).rows()
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _text(value: object, limit: int = 120) -> str:
    return html.escape(shorten(value, limit))
