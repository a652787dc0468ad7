"""Gradient boosting of quantiles of the log duration (LightGBM, pinball loss) with out-of-part target encoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.rng import stream
from gputwin.profiling.contributions import contributions
from gputwin.profiling.distribution import MASS, Grid, Mass
from gputwin.profiling.features import Features, learn_features, training_rows
from gputwin.profiling.jobs import Floats, History, Submitted
from gputwin.profiling.model import MODELS, DurationModel, Lesson, ModelKind
from gputwin.profiling.trees import enough

LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
_MIDDLE = LEVELS.index(0.5)


@dataclass(frozen=True)
class Boosted(DurationModel):
    """One booster per quantile, in LightGBM's text form."""

    grid: Grid
    features: Features
    texts: tuple[str, ...]

    def distributions(self, jobs: Submitted) -> Mass:
        """Return the quantiles as a distribution: linear in between, as steep outside as next to the ends.

        Quantiles that cross are sorted (Chernozhukov, Fernández-Val and Galichon, Econometrica 2010).
        """
        quantiles = self._quantiles(jobs)
        low = 2 * quantiles[:, :1] - quantiles[:, 1:2]
        high = 2 * quantiles[:, -1:] - quantiles[:, -2:-1]
        ends = np.column_stack([low, quantiles, high])
        shares = np.diff([0.0, *LEVELS, 1.0])
        below = np.zeros((jobs.size, self.grid.edges.size + 2))
        below[:, -1] = 1.0
        for k, share in enumerate(shares):
            # Quantiles that coincide make a step.
            width = np.maximum(ends[:, k + 1] - ends[:, k], 1e-9)[:, None]
            below[:, 1:-1] += share * np.clip((self.grid.edges - ends[:, k, None]) / width, 0.0, 1.0)
        return np.diff(below, axis=1).astype(MASS)

    def _quantiles(self, jobs: Submitted) -> Floats:
        rows = self.features.matrix(jobs)
        if not self.features.names:
            rows = np.zeros((jobs.size, 1))
        found = [np.asarray(b.predict(rows, num_threads=1)) for b in self._boosters]
        return np.sort(np.column_stack(found), axis=1)

    def observing(self, known: History) -> Boosted:
        """Return the model with further outcomes among its recent ones."""
        return replace(self, features=self.features.observing(known))

    def explain(self, jobs: Submitted) -> pl.DataFrame:
        """Return what each feature does to the median."""
        return contributions([self.texts[_MIDDLE]], self.features, jobs)

    @cached_property
    def _boosters(self) -> Sequence[Any]:
        import lightgbm

        return [lightgbm.Booster(model_str=text) for text in self.texts]


def fit(lesson: Lesson, seed: int) -> Boosted:
    """Return the boosters grown on a lesson."""
    import lightgbm

    features = learn_features(lesson.past, lesson.weights)
    rows = training_rows(features, lesson.past, lesson.weights, seed)
    rows, values, weights = enough(rows, np.log(lesson.past.outcomes.duration), lesson.weights)
    settings: dict[str, Any] = {
        "objective": "quantile",
        "learning_rate": 0.05,
        "num_leaves": 31,
        "min_data_in_leaf": 10,
        "feature_fraction": 0.6,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "use_missing": False,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": 1,
        "seed": int(stream(seed, "boosted").integers(1 << 31)),
        "verbose": -1,
    }
    data = lightgbm.Dataset(rows, values, weight=weights, params=settings, free_raw_data=False)
    texts = []
    for level in LEVELS:
        booster = lightgbm.train({**settings, "alpha": level}, data, 150)
        texts.append(str(booster.model_to_string()))
    return Boosted(lesson.grid, features, tuple(texts))


KIND = MODELS.add(
    ModelKind(
        "boosted",
        "gradient-boosted quantiles of the log duration, keys encoded out of part",
        fit,
        "Ke et al., LightGBM, NeurIPS 2017; Koenker and Bassett, Econometrica 1978 (pinball loss)",
    )
)
