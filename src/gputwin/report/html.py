"""Sections to one HTML page that needs nothing else: style, script, Plotly and data (compressed) are inside it.

Whatever comes from a trace is untrusted. The templates escape it as text; data are base64 in the page, and `<` is
written as `\\u003c` in them, so that no value can end a script element; and the page's policy lets only the two scripts
written here run and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING

import polars as pl
from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

from gputwin.core.errors import shorten
from gputwin.core.version import VERSION
from gputwin.report.answer import answer_of
from gputwin.report.page import FigurePart, Part, Section
from gputwin.report.theme import THEMES, template

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_TEXT = 4000
_UNSAFE_IN_SCRIPT = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_FORMULA = r"^[=+\-@\t\r]"


def render(title: str, sections: Sequence[Section], *, brief: bool = False) -> bytes:
    """Return the page as UTF-8: the first section as its answer, the others closed until they are asked for.

    A brief page is the answer alone, which prints on one page.
    """
    answer, evidence = answer_of(sections[0])
    others = [] if brief else [*([evidence] if evidence else []), *sections[1:]]
    figures = [figure for figure in (answer.chart,) if figure is not None]
    figures += [figure for section in others for figure in section.figures]
    script = _asset("phone.js") + _asset("report.js")
    plotly, digest = _plotly()
    page = (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            version=VERSION,
            policy=_policy(_digest(script), digest),
            style=Markup(_asset("report.css")),
            script=Markup(script),
            answer=answer,
            sections=others,
            brief=brief,
            brief_note="This page is the answer alone; the full report has the figures behind it and how they were made.",
            data=Markup(_packed(_data(figures))),
            plotly=Markup(plotly),
        )
    )
    return (page.strip() + "\n").encode("utf-8", "replace")


@cache
def _environment() -> Environment:
    """Return the templates, which escape whatever they are given."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("gputwin.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "cut": _cut,
        "kind": lambda part: type(part).__name__,
        "runs": _runs,
        "commands": _commands,
    }
    return made


def _cut(value: object, limit: int = _MOST_TEXT) -> str:
    return shorten(value, limit)


def _commands(text: str) -> Markup:
    """Return a sentence in which what stands between backticks is set as a command."""
    parts = re.split(r"`([^`]*)`", shorten(text, _MOST_TEXT))
    return Markup("").join(
        Markup("<code>{}</code>").format(_options(part)) if i % 2 else escape(part) for i, part in enumerate(parts)
    )


def _options(command: str) -> Markup:
    """Return a command in which no line breaks after the hyphens of an option."""
    words = command.split(" ")
    option = Markup('<span class="option">{}</span>')
    return Markup(" ").join(option.format(word) if word.startswith("-") else escape(word) for word in words)


def _runs(parts: Iterable[Part]) -> Iterator[tuple[bool, list[Part]]]:
    """Yield parts in runs: figures that stand side by side (True), and the others."""
    for is_half, run in groupby(parts, lambda part: isinstance(part, FigurePart) and part.half):
        yield is_half, list(run)


def _data(figures: Iterable[FigurePart]) -> str:
    """Return figures, their data and the themes as JSON, without signs that mean something in HTML."""
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


@cache
def _plotly() -> tuple[str, str]:
    """Return Plotly's script compressed, as base64, and the digest of the script by which the page lets it run."""
    script = get_plotlyjs()
    return _packed(script), _digest(script)


def _packed(text: str) -> str:
    """Return a text compressed, as base64."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def _policy(*digests: str) -> str:
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _asset(name: str) -> str:
    return resources.files("gputwin.report").joinpath("assets", name).read_text(encoding="utf-8")
