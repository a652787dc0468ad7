"""Intervals hold what they promise on later jobs: levels are corrected by where outcomes fell, running jobs counted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputwin.profiling.calibration import AS_IS, FEWEST, Calibrated, Calibration, PastPredictions, reached_levels
from gputwin.profiling.distribution import BINS, MASS, Grid, Mass
from gputwin.profiling.jobs import History, Outcomes, Submitted
from gputwin.profiling.model import DurationModel, fit
from gputwin.profiling.predict import HERE, PROMISED, predict_trace
from gputwin.profiling.profile import profile
from gputwin.traces.slicing import before, cut_time, since
from gputwin.traces.synthetic.generator import generate
from tests.profiling.workloads import history

# The median is left as it is, so levels are of the lower or of the upper end.
ENDS = st.floats(0.02, 0.499) | st.floats(0.501, 0.98)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10_000), cautious=st.booleans(), level=ENDS)
def test_reached_levels_are_those_at_which_quantiles_pass_the_duration(seed: int, cautious: bool, level: float) -> None:
    rng = np.random.default_rng(seed)
    duration = np.exp(rng.uniform(0, 10, 200))
    grid = Grid.of(duration, np.ones(200))
    mass = rng.dirichlet(np.full(BINS, 0.05), 20) * (rng.random((20, BINS)) < 0.5)
    mass[:, 40] += 1e-3
    mass = (mass / mass.sum(axis=1, keepdims=True)).astype(MASS)
    actual = duration[:20]
    reached = reached_levels(grid, mass, actual, cautious=cautious)
    side = int(level > 0.5)
    clear = np.abs(reached[:, side] - level) > 1e-4
    bound = grid.quantiles(mass, np.array([level]), cautious=cautious)[:, 0]
    if level > 0.5:
        # An upper quantile is never below the median's bin, a lower one never above it.
        held, expected = actual <= bound * (1 + 1e-9), reached[:, 1] <= level
        clear &= ~held | expected | (actual > grid.quantiles(mass, np.array([0.501]), cautious=cautious)[:, 0])
    else:
        held, expected = actual >= bound * (1 - 1e-9), reached[:, 0] >= level
        clear &= ~held | expected | (actual < grid.quantiles(mass, np.array([0.499]), cautious=cautious)[:, 0])
    assert (held == expected)[clear].all()


@dataclass(frozen=True)
class TooSure(DurationModel):
    """A model whose distributions are narrower than what they were learned from."""

    model: DurationModel

    @property
    def grid(self) -> Grid:  # type: ignore[override]
        return self.model.grid

    def distributions(self, jobs: Submitted) -> Mass:
        mass = self.model.distributions(jobs)
        # Away from the median, each further bin counts for less.
        middle = np.argmax(np.cumsum(mass, axis=1) >= 0.5, axis=1)
        mass = mass * np.exp(-0.15 * np.abs(np.arange(BINS) - middle[:, None]))
        return (mass / mass.sum(axis=1, keepdims=True)).astype(MASS)

    def explain(self, jobs: Submitted) -> pl.DataFrame:
        return self.model.explain(jobs)


def held(model: DurationModel, whole: History) -> float:
    low, _, high = model.predict_quantiles(whole.jobs).T
    return float(((whole.outcomes.duration >= low) & (whole.outcomes.duration <= high)).mean())


@pytest.mark.parametrize("is_record_short", [False, True])
def test_a_model_that_is_too_sure_is_corrected(is_record_short: bool) -> None:
    whole = history(3000, noise=1.0)
    model = TooSure(fit("median", whole))
    known, duration = whole, whole.outcomes.duration
    if is_record_short:
        limit = np.random.default_rng(0).exponential(3 * np.median(duration), whole.size)
        ended = duration <= limit
        known = History(whole.jobs, Outcomes(whole.outcomes.start, np.minimum(duration, limit), ended))
        assert 0.4 < ended.mean() < 0.8
    tested = PastPredictions(known)
    tested.add(model, np.arange(whole.size))
    calibrated = Calibrated(model, tested.calibration())
    assert held(model, whole) < 0.7
    assert 0.77 <= held(calibrated, whole) <= 0.84
    assert calibrated.predict(whole.jobs).tolist() == model.predict(whole.jobs).tolist()


def test_few_outcomes_correct_nothing() -> None:
    past = history(FEWEST // 4)
    tested = PastPredictions(past)
    tested.add(fit("median", past), np.arange(past.size))
    assert tested.calibration() is AS_IS


def test_levels_are_taken_from_the_calibration_and_the_median_stays() -> None:
    wide = Calibration(np.linspace(0.0, 1.0, 99))
    assert wide.of([0.01, 0.5, 0.99]) == [0.0, 0.5, 1.0]
    assert AS_IS.of([0.1, 0.9]) == pytest.approx([0.1, 0.9])


def test_the_interval_holds_on_later_jobs_of_a_short_record() -> None:
    """A synthetic record of half a day, in which the long jobs of each group have not ended yet."""
    whole = generate("pai2020", jobs=8000, seed=5).to_trace()
    cut = cut_time(whole, first="70%")
    found = profile(before(whole, cut), models=["online"])
    scores = predict_trace(found.saved(), since(whole, cut)).scores
    assert 0.74 <= scores[HERE].coverage <= 0.86
    assert 0.74 <= scores[PROMISED].coverage <= 0.86
