"""Percentages have one format in all that people read."""

from __future__ import annotations

import re
from pathlib import Path

import gputwin
from gputwin.core.units import percent, signed_duration

SOURCES = sorted(Path(gputwin.__file__).parent.rglob("*.py"))
PYTHONS_OWN = re.compile(r"(?<!%)\{[^{}]+:[+,]*\.\dX\}".replace("X", "%"))
"""Python's format, "97%", in an f-string; plotly's templates begin with %."""


def test_a_blank_stands_before_the_sign() -> None:
    assert (percent(0.97), percent(0.0254, 1, signed=True), percent(None)) == ("97 %", "+2.5 %", "–")
    assert percent(12.5) == "1,250 %"


def test_what_rounds_to_zero_is_neither_above_nor_below_it() -> None:
    assert (percent(-0.0004), percent(-0.00004, 1), percent(-0.0004, 1, signed=True)) == ("0 %", "0.0 %", "0.0 %")


def test_differences_of_time_have_a_sign() -> None:
    assert (signed_duration(70.0), signed_duration(-55.9)) == ("+1 min 10 s", "-55.9 s")


def test_no_sentence_or_table_formats_percentages_otherwise() -> None:
    found = [path.name for path in SOURCES if PYTHONS_OWN.search(path.read_text(encoding="utf-8"))]
    assert found == []
