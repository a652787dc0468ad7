"""A forest of distributions, updated by the job's own repetitions: the model to use unless another does better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from gputwin.core.rng import stream
from gputwin.profiling.blending import blend
from gputwin.profiling.contributions import contributions
from gputwin.profiling.distribution import Grid, Mass
from gputwin.profiling.features import Features, learn_features, training_rows
from gputwin.profiling.jobs import Floats, History, Ints, Submitted
from gputwin.profiling.keys import REPEAT
from gputwin.profiling.memory import OutcomesByKey
from gputwin.profiling.model import MODELS, DurationModel, Lesson, ModelKind
from gputwin.profiling.trees import Trees, enough

STRENGTH = 1.0
"""How many repetitions of a job the forest's opinion is worth."""
_SMALL = 20_000


class Grove(NamedTuple):
    """Trees grown alike: the fewest jobs in a leaf, the share of features each split may look at, how many, how deep."""

    least: int
    share: float
    trees: int
    depth: int = -1


def groves(jobs: int) -> tuple[Grove, ...]:
    """Return what is grown for a history of so many jobs, with at most some 2,000 leaves a tree.

    Which leaf size and share suit a small history best cannot be separated from luck, so it gets a range of them.
    """
    least = jobs // 2000
    if jobs >= _SMALL:
        return (Grove(least, 0.4, 20, 13),)
    return tuple(Grove(max(few, least), share, 8) for few in (2, 3, 5, 8) for share in (0.25, 0.4, 0.6))


@dataclass(frozen=True)
class Forest(DurationModel):
    """Groves in LightGBM's text form, the distribution in each leaf, and the features they read."""

    grid: Grid
    features: Features
    texts: tuple[str, ...]
    leaves: Mass

    def distributions(self, jobs: Submitted) -> Mass:
        """Return the mean of the leaves each job falls into, updated by the outcomes of its repetitions."""
        codes = self.features.memory.codes(jobs)
        mass = self._trees.mixture(self.features.matrix(jobs, codes), self.leaves)
        if REPEAT in codes:
            outcomes, bins = self._repetitions
            blend(mass, outcomes, bins, codes[REPEAT], jobs.arrival, strength=STRENGTH)
        return mass

    def explain(self, jobs: Submitted) -> pl.DataFrame:
        """Return what each feature does to the forest's log duration (SHAP values, Lundberg et al. 2020)."""
        return contributions(self.texts, self.features, jobs)

    def observing(self, known: History) -> Forest:
        """Return the forest as it stands once it learns how further jobs end."""
        return replace(self, features=self.features.observing(known))

    @cached_property
    def _trees(self) -> Trees:
        return Trees.of(self.texts)

    @cached_property
    def _repetitions(self) -> tuple[OutcomesByKey, Ints]:
        outcomes = self.features.memory.settled[REPEAT]
        return outcomes, self.grid.bins(outcomes.value)


def fit(lesson: Lesson, seed: int) -> Forest:
    """Return the forest grown on a lesson, each grove from a draw of encodings of its own."""
    features = learn_features(lesson.past, lesson.weights)
    values = np.log(lesson.past.outcomes.duration)
    bins = lesson.grid.bins(values)
    texts, leaves = [], []
    for k, grove in enumerate(groves(lesson.past.size)):
        rows = training_rows(features, lesson.past, lesson.weights, seed, draw=k)
        texts.append(grow(grove, rows, values, lesson.weights, int(stream(seed, "forest", k).integers(1 << 31))))
        leaves.append(Trees.of(texts[-1:]).distributions(rows, bins, lesson.weights))
    return Forest(lesson.grid, features, tuple(texts), np.concatenate(leaves))


def grow(grove: Grove, rows: Floats, values: Floats, weights: Floats, seed: int) -> str:
    """Return a random forest (Breiman 2001) of `values`, as LightGBM's text."""
    import lightgbm

    rows, values, weights = enough(rows, values, weights)
    settings: dict[str, Any] = {
        "boosting": "rf",
        "objective": "l2",
        "bagging_freq": 1,
        "bagging_fraction": 0.632,
        "feature_fraction_bynode": grove.share,
        "min_data_in_leaf": grove.least,
        "min_data_in_bin": 1,
        "num_leaves": max(len(rows) // grove.least, 2),
        "max_depth": grove.depth,
        "use_missing": False,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": 1,
        "seed": seed,
        "verbose": -1,
    }
    data = lightgbm.Dataset(rows, values, weight=weights, params=settings)
    return str(lightgbm.train(settings, data, grove.trees).model_to_string())


KIND = MODELS.add(
    ModelKind(
        "forest",
        "a forest whose leaves hold distributions, updated by outcomes of the job's own repetitions",
        fit,
        "Meinshausen, Quantile Regression Forests, JMLR 2006; Ferguson, Annals of Statistics 1973",
    )
)
