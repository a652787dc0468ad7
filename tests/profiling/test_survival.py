"""Censored jobs: the product-limit estimate against SciPy's, and what weighting by it repairs."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import CensoredData, ecdf

from gputwin.profiling.survival import censoring_weights, kaplan_meier


def test_product_limit_by_hand() -> None:
    """Of 5 at risk one dies at 1, of 3 one at 3, of 1 one at 5: 4/5, 4/5 · 2/3, 0."""
    time = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    event = np.array([True, False, True, False, True])
    times, survival = kaplan_meier(time, event)
    assert times.tolist() == [1.0, 3.0, 5.0]
    assert survival == pytest.approx([0.8, 0.8 * 2 / 3, 0.0])


def test_product_limit_as_scipy_has_it() -> None:
    rng = np.random.default_rng(1)
    time = np.round(rng.exponential(10, 300), 1)
    event = rng.random(300) < 0.6
    times, survival = kaplan_meier(time, event)
    theirs = ecdf(CensoredData(uncensored=time[event], right=time[~event])).sf
    assert survival == pytest.approx(theirs.evaluate(times))


def test_weights_undo_the_shortness_of_finished_jobs() -> None:
    rng = np.random.default_rng(2)
    true, cut = rng.exponential(1000, 20_000), rng.exponential(2000, 20_000)
    finished = true <= cut
    seen = np.minimum(true, cut)
    weights = censoring_weights(seen, finished)
    assert weights[~finished].sum() == 0
    assert weights.sum() == pytest.approx(finished.size)
    plain = seen[finished].mean()
    weighted = np.average(seen, weights=weights)
    assert plain < 720
    assert weighted == pytest.approx(1000, rel=0.05)


def test_without_censoring_all_count_alike() -> None:
    assert censoring_weights(np.array([1.0, 2.0]), np.array([True, True])).tolist() == [1.0, 1.0]
