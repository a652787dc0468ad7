"""Signs of differences, singular and plural, and where a section's one sentence ends, as a report shows them."""

from __future__ import annotations

import pytest

from gputwin.report.page import _cut
from gputwin.report.sections.comparison import _signed
from gputwin.report.sections.forecast import in_unit


@pytest.mark.parametrize("value", [-1e-6, 0.0, 1e-6])
def test_what_rounds_to_zero_has_no_sign(value: float) -> None:
    assert _signed("GPU allocation", value) == "0.00 pt"
    assert _signed("fairness", value) == "0.000"
    assert _signed("mean wait", 0.0) == "0 s"


def test_other_differences_have_one() -> None:
    assert (_signed("GPU allocation", -0.01), _signed("fairness", 0.25)) == ("−1.00 pt", "+0.250")


def test_what_is_too_long_ends_after_a_clause() -> None:
    text = "Five nodes meet the target: the wait is 0 s on the record, and 30 of 30 drawn records meet it too"
    assert _cut(text, 80) == "Five nodes meet the target: the wait is 0 s on the record."
    assert _cut("one two three four", 10) == "one two …"


def test_one_of_a_unit_is_singular() -> None:
    assert [in_unit(1.0, "GPUs"), in_unit(1.004, "RNICs"), in_unit(17.0, "GPUs")] == ["1 GPU", "1 RNIC", "17 GPUs"]
    assert [in_unit(1.0, "GiB"), in_unit(1.0, "1/s")] == ["1 GiB", "1/s"]
