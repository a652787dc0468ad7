"""Long names and titles of figures are whole on a phone, and legends stand above their figures after printing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from gputwin.report import charts, figures, matrices
from gputwin.report.html import render
from gputwin.report.page import FigurePart, Kind, Section, TablePart
from tests.report.browser import PHONE, open_all, page_of

CUT = """() => [...document.querySelectorAll("[data-figure] text")].filter((text) => {
  const own = text.getBoundingClientRect(), all = text.closest(".svg-container").getBoundingClientRect();
  return own.width && (own.right > all.right + 1 || own.left < all.left - 1 || own.bottom > all.bottom + 1);
  }).map((text) => text.textContent)"""
ALL = """() => [...document.querySelectorAll("[data-figure] text")].map((text) => text.textContent).join(" ")"""
LEGENDS = """() => [...document.querySelectorAll("[data-figure]")].map((figure) =>
  Math.round(figure.querySelector(".legend").getBoundingClientRect().bottom
    - figure.querySelector(".xlines-above, .plot .gridlayer, .gridlayer").getBoundingClientRect().top))"""
WIDER = """() => [...document.querySelectorAll(".table")].map((box) => {
  const title = box.querySelector("caption span").getBoundingClientRect();
  return [box.scrollWidth > box.clientWidth, title.right <= box.getBoundingClientRect().right + 1]; })"""
"""Of each table: it is wider than its box, and its title is not."""
COLUMNS = """() => [...document.querySelectorAll("[data-figure] .xtick text")].map((text) => text.textContent)"""
SCROLLED = """() => [...document.querySelectorAll("[data-figure] .legend .scrollbar")].map((bar) =>
  Number(bar.getAttribute("height")))"""
NAMES = ("first come first served", "shortest job first, by predictions", "least attained service")


def page(path: Path, **drawn: Any) -> Path:
    parts = [FigurePart(name.replace("_", "-"), name, figure, "", pl.DataFrame()) for name, figure in drawn.items()]
    path.write_bytes(render("Figures", [Section("answer", "The answer", ()), Section("all", "All", tuple(parts))]))
    return path


def test_names_and_titles_of_figures_are_whole_on_a_phone(browser: Any, tmp_path: Path) -> None:
    metrics = [f"pending_gpus_of_{size}_jobs_of_one_tenant" for size in ("small", "large", "whole_node")]
    series = pl.DataFrame([{"metric": m, "at": t, "value": float(t)} for m in metrics for t in range(3)])
    waits = pl.DataFrame({"rule": NAMES, "wait": [3.0, 1.0, 2.0]})
    path = page(
        tmp_path / "figures.html",
        panels=figures.small_multiples(series, "hours since the trace began"),
        rows=charts.bar_rows(waits, "rule", {"wait": "wait"}, "change of the mean wait against the first, days"),
    )
    with page_of(browser, path) as shown:
        shown.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        shown.reload()
        open_all(shown)
        shown.wait_for_timeout(500)
        assert shown.evaluate(CUT) == []
        assert "Click to enter" not in shown.evaluate(ALL)


def test_titles_of_wide_tables_are_whole_on_a_phone(browser: Any, tmp_path: Path) -> None:
    columns = {"user": Kind.TEXT} | {f"column {k}": Kind.NUMBER for k in range(9)}
    title = "How bursty arrivals are, at several scales, and how long the longest run without any is"
    table = TablePart(title, columns, tuple((f"u{i}", *("123,456.7 s",) * 9) for i in range(3)))
    path = tmp_path / "table.html"
    path.write_bytes(render("Tables", [Section("answer", "The answer", ()), Section("all", "All", (table,))]))
    with page_of(browser, path) as shown:
        shown.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        open_all(shown)
        assert shown.evaluate(WIDER) == [[True, True]]


def test_columns_of_a_wide_matrix_are_numbered_on_a_phone(browser: Any, tmp_path: Path) -> None:
    names = [f"time to load model {k} (ms)" for k in range(13)]
    figure = matrices.matrix(names, {(a, b): 0.5 for a in names for b in names if a < b}, "Spearman", str)
    with page_of(browser, page(tmp_path / "matrix.html", together=figure)) as shown:
        shown.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        shown.reload()
        open_all(shown)
        shown.wait_for_timeout(500)
        assert shown.evaluate(COLUMNS) == [str(k + 1) for k in range(13)]
        assert shown.evaluate(CUT) == []
        assert "13 time to load" in shown.evaluate(ALL)


def test_a_long_legend_does_not_scroll_on_a_phone(browser: Any, tmp_path: Path) -> None:
    models = [f"model with a long name {k}" for k in range(7)]
    frame = pl.DataFrame({"at": [0.0, 1.0], **{name: [1.0, 2.0] for name in models}})
    figure = charts.over_time(frame, {name: name for name in models}, "hours", "GPUs")
    figure.update_layout(height=230)
    figure.for_each_trace(lambda trace: trace.update(name=f"{trace.name}<br>of two lines"))
    with page_of(browser, page(tmp_path / "legend.html", curves=figure)) as shown:
        shown.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        shown.reload()
        open_all(shown)
        shown.wait_for_timeout(500)
        assert shown.evaluate(SCROLLED) == [0]


def test_after_printing_legends_stand_above_their_figures(browser: Any, tmp_path: Path) -> None:
    frame = pl.DataFrame({"at": [0.0, 1.0], **{f"{name} {k}": [1.0, 2.0] for name in NAMES for k in range(2)}})
    columns = {name: name for name in frame.columns[1:]}
    path = page(tmp_path / "figures.html", curves=charts.over_time(frame, columns, "hours", "GPUs"))
    with page_of(browser, path) as shown:
        open_all(shown)
        before = shown.evaluate(LEGENDS)
        shown.pdf(prefer_css_page_size=True)
        shown.wait_for_timeout(1000)
        assert shown.evaluate(LEGENDS) == before
