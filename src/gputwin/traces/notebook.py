"""A trace as a notebook shows it: what it is, its tables, and how waits and runtimes spread."""

from __future__ import annotations

import html
from collections.abc import Iterable

from gputwin.core.errors import shorten
from gputwin.core.units import format_count, format_duration
from gputwin.traces.dataset import Trace
from gputwin.traces.describe import describe
from gputwin.traces.schema import TABLES


def trace_html(trace: Trace) -> str:
    """Return the trace as a small piece of HTML without script or style sheet; every text of the trace is escaped."""
    d = describe(trace)
    counts = {"tasks": d.tasks, "users": d.users, "applications": d.applications, "requests": d.requests}
    counts |= {"nodes": d.nodes, "GPUs": d.gpus, "findings": len(d.findings)}
    words = ", ".join(f"{format_count(n)} {name}" for name, n in counts.items() if n)
    span = f"{format_duration(d.span_seconds)} on a clock that is {d.clock}, zone {d.zone}"
    parts = [f"<p><b>{_text(d.title or d.source)}</b> ({_text(d.source)})<br>{_text(span)}<br>{_text(words)}</p>"]
    rows = [(name, f"{count:,}", TABLES[name].row) for name, count in d.tables.items()]
    parts.append(_table(("table", "rows", "a row is"), rows))
    names = ("mean", "p50", "p95", "p99", "max")
    spreads = [
        (name, f"{spread['count']:,.0f}", *(format_duration(spread[n]) for n in names), f"{spread['zero_share']:.1%}")
        for name, spread in (("wait", d.wait_seconds), ("runtime", d.runtime_seconds))
        if spread
    ]
    if spreads:
        parts.append(_table(("", "tasks", *names, "zero"), spreads))
    return f"<div>{''.join(parts)}</div>"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = "".join(f"<th>{_text(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: object) -> str:
    return html.escape(shorten(value, 200))
