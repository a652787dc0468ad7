"""A report in a real browser, opened once: closed and with every section open, on a desktop and a phone, light and dark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import AXE

DESKTOP, PHONE = (1400, 900), (390, 844)
PROBE = (Path(__file__).parent / "probe.js").read_text(encoding="utf-8")
_DRAWN = """() => {
  const shown = [...document.querySelectorAll("[data-figure]")].filter((f) => !f.closest("details:not([open])"));
  return document.documentElement.dataset.failed || shown.every((figure) => figure.querySelector(".main-svg")); }"""
_OPEN = "() => { for (const part of document.querySelectorAll('section > details')) part.open = true; }"
_RULES = """axe.run(document, { resultTypes: ["violations"] }).then((found) => ({
  rules: found.passes.length + found.violations.length,
  violations: found.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target}: ${n.failureSummary}`)) }))"""

_LONGEST_SECONDS, _RESIZED_SECONDS, _SETTLED_MS = 120.0, 10.0, 300

Measures = dict[str, Any]


class Look(NamedTuple):
    """What the probe finds: as the page opens and on a phone; all sections open, there on a phone and in the other theme."""

    desktop: Measures
    phone: Measures
    opened: Measures
    opened_on_phone: Measures
    other_theme: Measures


@contextmanager
def page_of(browser: Any, path: Path, theme: str = "light") -> Iterator[Any]:
    """Yield the report in a window; the console must stay silent and nobody else be asked."""
    context = browser.new_context(viewport=_size(DESKTOP), color_scheme=theme)
    page = context.new_page()
    page.set_default_timeout(120_000)
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else wrong.append(r.url))
    page.goto(path.as_uri())
    _wait(page, _DRAWN)
    yield page
    context.close()
    assert wrong == []


def look_at(page: Any) -> Look:
    """Return what the probe finds as the page is opened further."""
    desktop = page.evaluate(PROBE)
    _resize(page, PHONE)
    phone = page.evaluate(PROBE)
    _resize(page, DESKTOP)
    open_all(page)
    opened = page.evaluate(PROBE)
    _resize(page, PHONE)
    opened_on_phone = page.evaluate(PROBE)
    _resize(page, DESKTOP)
    other = "dark" if opened["theme"] == "light" else "light"
    page.emulate_media(color_scheme=other)
    _wait(page, f"() => document.documentElement.dataset.theme === '{other}'")
    page.wait_for_timeout(_SETTLED_MS)
    return Look(desktop, phone, opened, opened_on_phone, page.evaluate(PROBE))


def open_all(page: Any) -> None:
    """Open every section and wait until its figures are drawn."""
    page.evaluate(_OPEN)
    _wait(page, _DRAWN)


def axe(page: Any) -> Measures:
    """Return the rules that axe-core checked (WCAG 2.2 A and AA, good practice) and what breaks them."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: Measures = page.evaluate(_RULES)
    return found


def _wait(page: Any, until: str) -> None:
    """Wait for a condition; the driver's own way of waiting is forbidden by the page's policy."""
    last = time.monotonic() + _LONGEST_SECONDS
    while not page.evaluate(until):
        assert time.monotonic() < last, until
        page.wait_for_timeout(50)


def _resize(page: Any, to: tuple[int, int]) -> None:
    """Give the window another size, and its figures a moment to follow: until nothing is wider, or some seconds."""
    page.set_viewport_size(_size(to))
    last = time.monotonic() + _RESIZED_SECONDS
    while page.evaluate("document.documentElement.scrollWidth > innerWidth") and time.monotonic() < last:
        page.wait_for_timeout(50)


def _size(of: tuple[int, int]) -> dict[str, int]:
    return dict(zip(("width", "height"), of, strict=True))
