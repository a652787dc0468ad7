from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputwin.core.errors import GputwinError, InputError, UserError, shorten
from gputwin.core.extras import require


def test_the_line_says_where_what_and_what_to_do() -> None:
    error = InputError("'x' is not a number", file=Path("a.csv"), row=7, field="cpu", remedy="fix the cell")
    assert str(error) == "a.csv, row 7, field 'cpu': 'x' is not a number; fix the cell"
    assert (error.file, error.row, error.field, error.remedy) == ("a.csv", 7, "cpu", "fix the cell")


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({}, "broken"),
        ({"file": "a.csv"}, "a.csv: broken"),
        ({"row": 2}, "row 2: broken"),
        ({"field": "cpu", "remedy": "mend it"}, "field 'cpu': broken; mend it"),
    ],
)
def test_what_is_not_known_is_left_out(given: dict[str, str], line: str) -> None:
    assert str(InputError("broken", **given)) == line  # type: ignore[arg-type]


def test_an_input_error_is_a_users_mistake() -> None:
    assert issubclass(InputError, UserError)
    assert issubclass(UserError, GputwinError)


@given(st.text(), st.text(), st.text(), st.text())
def test_the_message_is_one_line_whatever_it_quotes(problem: str, file: str, field: str, remedy: str) -> None:
    assert len(str(InputError(problem, file=file, field=field, remedy=remedy)).splitlines()) <= 1


@given(st.text(), st.integers(2, 80))
def test_shortened_text_is_printable_and_short(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= limit
    assert short.isprintable()
    if text.isprintable() and len(text) <= limit:
        assert short == text


def test_a_missing_extra_is_one_line_that_says_how_to_get_it() -> None:
    assert require("json", extra="web").__name__ == "json"
    with pytest.raises(UserError, match=r"needs the 'no_such_package' package; .*pip install 'gputwin\[web\]'"):
        require("no_such_package", extra="web")
