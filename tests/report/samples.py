"""Small traces to report on, and a page taken apart."""

from __future__ import annotations

import base64
import json
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl

from gputwin.report import ReportInput, sections_of
from gputwin.report.page import FigurePart, Section
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.schema import TABLES

VOID = {"meta", "link", "br", "img", "input", "hr"}


def trace_of(tables: dict[str, list[dict[str, Any]]], **meta: Any) -> Trace:
    """Return a trace of rows given as plain records."""
    frames = {
        name: pl.DataFrame(rows, infer_schema_length=None) if rows else TABLES[name].empty()
        for name, rows in tables.items()
    }
    return Trace.from_frames(frames, TraceMeta(**({"source": "test", "title": "a test"} | meta)))


def sections(trace: Trace, **options: Any) -> dict[str, Section]:
    return {section.id: section for section in sections_of(ReportInput.of(trace, **options))}


def figures(trace: Trace, **options: Any) -> dict[str, FigurePart]:
    return {f.id: f for section in sections(trace, **options).values() for f in section.figures}


class Page(HTMLParser):
    """A page taken apart: elements with their attributes, visible text, and what scripts hold."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.source = path.read_text(encoding="utf-8")
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif not self.open or self.open[-1] != "style":
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def data(self) -> dict[str, Any]:
        (text,) = [
            script
            for script, attributes in zip(self.scripts, self.all("script"), strict=True)
            if attributes.get("id") == "report-data"
        ]
        return json.loads(zlib.decompress(base64.b64decode(text)))


def strings_of(value: Any) -> list[str]:
    """Return every string in plain data, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [s for item in value.items() for s in strings_of(list(item))]
    if isinstance(value, list):
        return [s for item in value for s in strings_of(item)]
    return []
