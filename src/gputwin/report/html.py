"""Sections to one HTML page that needs nothing else: style, script, Plotly and data are inside it.

Whatever comes from a trace is untrusted. It is escaped as text, and again in data, where `<` is written as `\\u003c`
so that no value can end a script element; and the page's policy lets only the two scripts written here run and
nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from importlib import resources
from itertools import groupby

import polars as pl
from plotly.offline import get_plotlyjs

from gputwin import __version__
from gputwin.analysis.topic import Remark
from gputwin.core.errors import shorten
from gputwin.report.page import (
    Bullets,
    Card,
    Cards,
    FigurePart,
    Findings,
    Kind,
    Part,
    Prose,
    Section,
    Statement,
    TablePart,
)
from gputwin.report.theme import THEMES, template

_MOST_TEXT = 4000
_MOST_CELL = 240
_UNSAFE_IN_SCRIPT = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_FORMULA = r"^[=+\-@\t\r]"


def render(title: str, sections: Sequence[Section]) -> bytes:
    """Return the page as UTF-8."""
    script, plotly = _asset("report.js"), get_plotlyjs()
    figures = [figure for section in sections for figure in section.figures]
    contents = "\n".join(f'<li><a href="#{_text(s.id)}">{_text(s.title)}</a></li>' for s in sections)
    page = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(script, plotly)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="gputwin {__version__}">
<title>{_text(title, 200)}</title>
<link rel="icon" href="data:,">
<style>
{_asset("report.css")}</style>
<script>{script}</script>
</head>
<body>
<a class="skip" href="#content">Skip to the report</a>
<header>
<div><p class="kind">Trace report · gputwin {__version__}</p><h1>{_text(title, 200)}</h1></div>
<button type="button" id="theme" aria-label="Switch between light and dark">Dark</button>
</header>
<nav aria-label="Contents"><p>Contents</p><ol>
{contents}
</ol></nav>
<main id="content">
<noscript><p class="statement warning">Figures need JavaScript; captions, tables and text do not.</p></noscript>
{"".join(_section(section) for section in sections)}</main>
<script type="application/json" id="report-data">{_data(figures)}</script>
<script>{plotly}</script>
</body>
</html>
"""
    return page.encode("utf-8", "replace")


def _section(section: Section) -> str:
    parts = "".join(_run(is_half, list(run)) for is_half, run in groupby(section.parts, _is_half))
    id_ = _text(section.id)
    return f"""<section id="{id_}" aria-labelledby="{id_}-title">
<h2 id="{id_}-title">{_text(section.title)}</h2>
{parts}</section>
"""


def _is_half(part: Part) -> bool:
    return isinstance(part, FigurePart) and part.half


def _run(is_half: bool, parts: list[Part]) -> str:
    inner = "".join(_part(part) for part in parts)
    return f'<div class="halves">\n{inner}</div>\n' if is_half else inner


def _part(part: Part) -> str:
    match part:
        case Prose(text):
            return f"<p>{_text(text)}</p>\n"
        case Statement(text, tone):
            return f'<p class="statement {tone.value}">{_text(text)}</p>\n'
        case Cards(cards):
            return f'<dl class="cards">\n{"".join(_card(card) for card in cards)}</dl>\n'
        case Bullets(items):
            return f"<ul>\n{''.join(f'<li>{_text(item)}</li>' for item in items)}\n</ul>\n"
        case Findings(remarks, title):
            return _findings(remarks, title)
        case TablePart():
            return _table(part)
        case FigurePart():
            return _figure(part)


def _findings(remarks: tuple[Remark, ...], title: str) -> str:
    items = "".join(f'<li class="{"warning" if r.is_warning else "plain"}">{_text(r.text)}</li>\n' for r in remarks)
    return f'<div class="findings"><h3>{_text(title)}</h3>\n<ul>\n{items}</ul></div>\n'


def _card(card: Card) -> str:
    note = f'<dd class="note">{_text(card.note, _MOST_CELL)}</dd>' if card.note else ""
    return f"<div><dt>{_text(card.label)}</dt><dd>{_text(card.value, _MOST_CELL)}</dd>{note}</div>\n"


def _table(table: TablePart) -> str:
    kinds = list(table.columns.values())
    head = "".join(f'<th scope="col" class="{k.value}">{_text(n)}</th>' for n, k in table.columns.items())
    body = "\n".join(
        "<tr>" + "".join(_cell(cell, kind) for cell, kind in zip(row, kinds, strict=True)) + "</tr>"
        for row in table.rows
    )
    note = f'<p class="note">{_text(table.note)}</p>' if table.note else ""
    return (
        f'<div class="table"><table>\n<caption>{_text(table.title)}</caption>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table>{note}</div>\n"
    )


def _cell(cell: str, kind: Kind) -> str:
    return f'<td class="{kind.value}">{_text(cell, _MOST_CELL)}</td>'


def _figure(part: FigurePart) -> str:
    id_, title = _text(part.id), _text(part.title)
    height = int(part.figure.layout.height)
    save = f'<button type="button" data-csv="{id_}" title="Download the data of this figure">Data (CSV)</button>'
    return f"""<figure id="figure-{id_}">
<h3>{title}</h3>
<div class="plot" data-figure="{id_}" role="img" aria-label="{title}" style="height:{height}px"></div>
<figcaption>{_text(part.caption)} {save}</figcaption>
</figure>
"""


def _data(figures: Iterable[FigurePart]) -> str:
    """Return figures, their data and the themes as JSON that is safe inside a script element."""
    shown, tables = {}, {}
    for part in figures:
        if part.id in shown:
            raise ValueError(f"two figures are called '{part.id}'")
        figure = json.loads(part.figure.to_json())
        figure["layout"].pop("template", None)
        shown[part.id] = figure
        tables[part.id] = as_csv(part.data)
    themes = {theme.name: template(theme).to_plotly_json() for theme in THEMES}
    data = {"figures": shown, "tables": tables, "themes": themes}
    return json.dumps(data, separators=(",", ":"), sort_keys=True).translate(_UNSAFE_IN_SCRIPT)


def as_csv(frame: pl.DataFrame) -> str:
    """Return the frame as CSV; text that a spreadsheet would run as a formula is quoted with an apostrophe."""
    text = pl.col(pl.String)
    safe = pl.when(text.str.contains(_FORMULA)).then(pl.lit("'") + text).otherwise(text).name.keep()
    return frame.with_columns(safe).write_csv()


def _policy(*scripts: str) -> str:
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _asset(name: str) -> str:
    return resources.files("gputwin.report").joinpath("assets", name).read_text(encoding="utf-8")


def _text(value: object, limit: int = _MOST_TEXT) -> str:
    return html.escape(shorten(value, limit))
