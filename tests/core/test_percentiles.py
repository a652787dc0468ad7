"""One definition of a percentile: the one NumPy and Polars call linear, also where jobs wait for ever."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputwin.core.percentiles import percentile

SHARES = st.floats(0.0, 1.0)
TIMES = st.lists(st.floats(0.0, 1e7), min_size=1, max_size=50)


@given(TIMES, SHARES)
def test_it_is_the_linear_quantile_of_numpy_and_polars(times: list[float], share: float) -> None:
    values = np.array(times)
    found = percentile(values, share)
    assert found == pytest.approx(float(np.quantile(values, share)), rel=1e-9, abs=1e-9)
    assert found == pytest.approx(pl.Series(times).quantile(share, "linear"), rel=1e-9, abs=1e-9)


@given(TIMES, SHARES, st.data())
def test_it_never_falls_where_a_value_grows(times: list[float], share: float, data: st.DataObject) -> None:
    grown = np.array(times)
    grown[data.draw(st.integers(0, grown.size - 1))] += data.draw(st.floats(0.0, math.inf))
    assert percentile(grown, share) >= percentile(np.array(times), share) - 1e-6


def test_values_without_end() -> None:
    waits = np.array([math.inf, 1.0, 0.0, math.inf, 2.0])
    assert percentile(waits, 0.5) == 2.0
    assert percentile(waits, 0.6) == math.inf
    assert percentile(waits, 1.0) == math.inf
    assert math.isnan(percentile(np.array([]), 0.5))
