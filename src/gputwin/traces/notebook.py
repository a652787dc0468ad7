"""A trace as a notebook shows it: what it is, its tables, and how waits and runtimes spread."""

from __future__ import annotations

import html
from collections.abc import Iterable

from gputwin.core.errors import shorten
from gputwin.core.units import format_count, format_duration, percent
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
    parts = [
        f"<p><b>{html_text(d.title or d.source)}</b> ({html_text(d.source)})<br>{html_text(span)}<br>{html_text(words)}</p>"
    ]
    rows = [(name, f"{count:,}", TABLES[name].row) for name, count in d.tables.items()]
    parts.append(html_table(("table", "rows", "a row is"), rows))
    names = ("mean", "p50", "p95", "p99", "max")
    spreads = [
        (
            name,
            f"{spread['count']:,.0f}",
            *(format_duration(spread[n]) for n in names),
            percent(spread["zero_share"], 1),
        )
        for name, spread in (("wait", d.wait_seconds), ("runtime", d.runtime_seconds))
        if spread
    ]
    if spreads:
        parts.append(html_table(("", "tasks", *names, "zero"), spreads))
    return f"<div>{''.join(parts)}</div>"


def html_table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table; every text is escaped."""
    cells = "".join(f"<th>{html_text(name)}</th>" for name in head)
    body = "".join("<tr>" + "".join(f"<td>{html_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def html_text(value: object) -> str:
    """Return a value as escaped text, shortened."""
    return html.escape(shorten(value, 200))
