"""Sections as plain data carry hostile names as text, also where Plotly would read them as HTML."""

from __future__ import annotations

import json

import polars as pl
from plotly import graph_objects as go

from gputwin.report.document import document_of, themes
from gputwin.report.page import Card, Cards, FigurePart, Kind, Section, Statement, TablePart
from gputwin.server.work import without_commands

EVIL = "<a href='https://evil.example'>win</a><img src=x onerror=alert(1)><b>bold</b>"


def test_tags_in_labels_are_text_but_for_those_that_set_type() -> None:
    figure = go.Figure(go.Bar(x=[EVIL, "a<br>b"], y=[1, 2], name=EVIL, hovertemplate="%{x}<extra></extra>"))
    figure.update_layout(title=EVIL, height=300)
    part = FigurePart("f", EVIL, figure, EVIL, pl.DataFrame({"name": [EVIL]}))
    table = TablePart("t", {"name": Kind.TEXT}, ((EVIL,),))
    made = document_of(EVIL, [Section("s", "S", (Statement(EVIL), Cards((Card("a", EVIL),)), part, table))])
    drawn = json.dumps(made["answer"]["chart"]["figure"])
    assert "<a" not in drawn
    assert "<img" not in drawn
    assert "<b>bold</b>" in drawn
    assert "a<br>b" in drawn
    assert "<extra></extra>" in drawn
    assert made["sections"][0]["parts"][0]["rows"] == [[EVIL]]


def test_themes_are_plain_data() -> None:
    assert set(json.loads(json.dumps(themes()))) == {"light", "dark"}


def test_a_page_says_what_to_do_next_but_nothing_to_type() -> None:
    document = {"answer": {"question": "Why?", "next_steps": ["Keep the rules.", "Or see `gputwin plan TRACE`."]}}
    assert without_commands(document)["answer"] == {"question": "Why?", "next_steps": ["Keep the rules."]}
