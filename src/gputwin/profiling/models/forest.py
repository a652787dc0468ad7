"""A forest of distributions, updated by the job's own repetitions: the model to use unless another does better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.rng import stream
from gputwin.profiling.blending import blend
from gputwin.profiling.contributions import contributions
from gputwin.profiling.distribution import Grid, Mass
from gputwin.profiling.features import Features, learn_features
from gputwin.profiling.jobs import Floats, History, Ints, Submitted
from gputwin.profiling.keys import REPEAT
from gputwin.profiling.memory import Ledger
from gputwin.profiling.model import MODELS, DurationModel, Lesson, ModelKind
from gputwin.profiling.trees import Trees, enough

STRENGTH = 1.0
"""How many repetitions of a job the forest's opinion is worth."""
_SMALL, _MANY_TREES, _FEW_TREES = 20_000, 100, 20
_LEAST_IN_LEAF, _LEAVES, _DEPTH = 3, 2000, 13


@dataclass(frozen=True)
class Forest(DurationModel):
    """Trees in LightGBM's text form, the distribution in each leaf, and the features they read."""

    grid: Grid
    features: Features
    text: str
    leaves: Mass

    def distributions(self, jobs: Submitted) -> Mass:
        """Return the mean of the leaves each job falls into, updated by the outcomes of its repetitions."""
        codes = self.features.memory.codes(jobs)
        mass = self._trees.mixture(self.features.matrix(jobs, codes), self.leaves)
        if REPEAT in codes:
            ledger, bins = self._repetitions
            blend(mass, ledger, bins, codes[REPEAT], jobs.arrival, strength=STRENGTH)
        return mass

    def explain(self, jobs: Submitted) -> pl.DataFrame:
        """Return what each feature does to the forest's log duration (SHAP values, Lundberg et al. 2020)."""
        return contributions(self.text, self.features, jobs)

    def observing(self, known: History) -> Forest:
        """Return the forest as it stands when it is told how further jobs end."""
        return replace(self, features=self.features.observing(known))

    @cached_property
    def _trees(self) -> Trees:
        return Trees.of(self.text)

    @cached_property
    def _repetitions(self) -> tuple[Ledger, Ints]:
        ledger = self.features.memory.settled[REPEAT]
        return ledger, self.grid.bins(ledger.value)


def fit(lesson: Lesson, seed: int) -> Forest:
    """Return the forest grown on a lesson."""
    features, rows = learn_features(lesson.past, lesson.weights, seed)
    values = np.log(lesson.past.outcomes.duration)
    text = grow(rows, values, lesson.weights, seed)
    leaves = Trees.of(text).distributions(rows, lesson.grid.bins(values), lesson.weights)
    return Forest(lesson.grid, features, text, leaves)


def grow(rows: Floats, values: Floats, weights: Floats, seed: int) -> str:
    """Return a random forest (Breiman 2001) of `values`, as LightGBM's text."""
    import lightgbm

    rows, values, weights = enough(rows, values, weights)
    small = len(rows) < _SMALL
    least = max(_LEAST_IN_LEAF, len(rows) // _LEAVES)
    settings: dict[str, Any] = {
        "boosting": "rf",
        "objective": "l2",
        "bagging_freq": 1,
        "bagging_fraction": 0.632,
        "feature_fraction_bynode": 0.4,
        "min_data_in_leaf": least,
        "min_data_in_bin": 1,
        "num_leaves": max(len(rows) // least, 2),
        "max_depth": -1 if small else _DEPTH,
        "use_missing": False,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": 1,
        "seed": int(stream(seed, "forest").integers(1 << 31)),
        "verbose": -1,
    }
    data = lightgbm.Dataset(rows, values, weight=weights, params=settings)
    booster = lightgbm.train(settings, data, _MANY_TREES if small else _FEW_TREES)
    return str(booster.model_to_string())


KIND = MODELS.add(
    ModelKind(
        "forest",
        "a forest whose leaves hold distributions, updated by outcomes of the job's own repetitions",
        fit,
        "Meinshausen, Quantile Regression Forests, JMLR 2006; Ferguson, Annals of Statistics 1973",
    )
)
