"""Cluster, classify, predict: durations of the classes a job probably belongs to.

The way of PolarisProfiler (Morichetta et al., CLOUD 2023), without start, end and duration among the features, and with
the class recognised from what is known at submit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from gputwin.profiling.classes.classes import Classifier, learn_classifier, profile_rows
from gputwin.profiling.classes.clustering import NOISE, Scaling, Settings, cluster, stratified
from gputwin.profiling.distribution import MASS, Grid, Mass
from gputwin.profiling.jobs import Submitted
from gputwin.profiling.model import MODELS, DurationModel, Lesson, ModelKind

_SETTINGS = Settings("yeo-johnson", "euclidean", 0.01)
_PRIOR = 1.0
_ROWS = 12_000
"""Rows clustered, of larger histories a sample: a test fits many models, and classes of requests change little with more."""


@dataclass(frozen=True)
class ByClass(DurationModel):
    """A classifier and how durations are distributed in each class it knows."""

    grid: Grid
    classifier: Classifier
    by_class: Mass

    def distributions(self, jobs: Submitted) -> Mass:
        """Return the classes' distributions, each as likely as the class."""
        mixed: Mass = (self.classifier.probabilities(jobs).astype(MASS)) @ self.by_class
        return mixed

    def explain(self, jobs: Submitted) -> pl.DataFrame:
        """Return each job's likeliest class, its probability, and the class's median over the typical duration."""
        likely = self.classifier.probabilities(jobs)
        best = likely.argmax(axis=1)
        median = self.grid.quantiles(self.by_class, np.array([0.5]))[:, 0]
        names = ["no class" if k == NOISE else f"class {k}" for k in self.classifier.outcomes]
        return pl.DataFrame(
            {
                "row": np.arange(jobs.size),
                "reason": [names[k] for k in best],
                "value": likely[np.arange(jobs.size), best],
                "factor": median[best] / self.grid.price,
            }
        )


def fit(lesson: Lesson, seed: int) -> ByClass:
    """Return classes of a lesson's requests with their durations."""
    jobs = lesson.past.jobs
    _, rows = profile_rows(jobs, None)
    sample = stratified(np.zeros(jobs.size, np.int64), _ROWS, seed)
    labels = cluster(Scaling.of(rows[sample], _SETTINGS.transform).apply(rows[sample]), _SETTINGS)
    values, weights = np.log(lesson.past.outcomes.duration)[sample], lesson.weights[sample]
    classifier = learn_classifier(jobs.take(sample), labels, seed)
    overall = lesson.grid.histogram(values, weights)
    tables = []
    for outcome in classifier.outcomes:
        members = labels == outcome
        own = lesson.grid.histogram(values[members], weights[members]) if weights[members].sum() > 0 else overall
        count = float(weights[members].sum())
        tables.append((own * count + overall * _PRIOR) / (count + _PRIOR))
    return ByClass(lesson.grid, classifier, np.concatenate(tables).astype(MASS))


KIND = MODELS.add(
    ModelKind(
        "cluster",
        "the durations of the classes (HDBSCAN of requests) a job probably belongs to",
        fit,
        "Morichetta et al., PolarisProfiler, CLOUD 2023; Campello, Moulavi and Sander, PAKDD 2013",
    )
)
