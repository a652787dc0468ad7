"""Job classes: clusters with names, medoids and ranges, and a classifier that knows them at submit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.rng import stream
from gputwin.profiling.classes.clustering import (
    MOST_ROWS,
    NOISE,
    Scaling,
    Settings,
    Trial,
    assign,
    cluster,
    search,
    stratified,
)
from gputwin.profiling.classes.description import JobClass, describe
from gputwin.profiling.features import request_features
from gputwin.profiling.jobs import USE_COLUMNS, Floats, Ints, Submitted, life_use
from gputwin.profiling.keys import KeyTable
from gputwin.profiling.trees import enough
from gputwin.traces.dataset import Trace

NAMED = ("user", "tenant", "workload", "role", "qos")
OTHER = "other"
_REACH = 0.98
"""A cluster reaches as far as this share of its members."""


@dataclass(frozen=True)
class Classes:
    """The classes of a trace, each task's class, the classifier, and how they were found."""

    classes: tuple[JobClass, ...]
    labels: Ints
    columns: tuple[str, ...]
    trials: tuple[Trial, ...]
    settings: Settings
    rows_clustered: int
    rows: int
    accuracy: float
    """Share of tasks of unseen jobs put into their class from submit-time facts alone."""
    map: pl.DataFrame
    """A sample of tasks in two principal components: `x`, `y`, `label`."""
    classifier: Classifier

    def name_of(self, number: int) -> str:
        """Return the name of a class; tasks of none are called other."""
        return OTHER if number == NOISE else self.classes[number].name


@dataclass(frozen=True)
class Classifier:
    """A booster from submit-time facts to classes, in LightGBM's text form."""

    text: str
    tables: dict[str, KeyTable]
    outcomes: Ints
    """The class each output of the booster stands for."""

    def probabilities(self, jobs: Submitted) -> Floats:
        """Return how likely each class is, for each job; columns in the order of `outcomes`."""
        if self.outcomes.size == 1:
            return np.ones((jobs.size, 1))
        rows = _submit_rows(jobs, self.tables)
        return np.asarray(self._booster.predict(rows, num_threads=1)).reshape(jobs.size, -1)

    def classify(self, jobs: Submitted) -> Ints:
        """Return the likeliest class of each job."""
        found: Ints = self.outcomes[self.probabilities(jobs).argmax(axis=1)]
        return found

    @cached_property
    def _booster(self) -> Any:
        import lightgbm

        return lightgbm.Booster(model_str=self.text)


def find_classes(trace: Trace, jobs: Submitted, *, seed: int = 0) -> Classes:
    """Return the classes of these tasks, by what they ask for and, where measured, what they used."""
    columns, rows = profile_rows(jobs, life_use(trace, jobs) if trace.has("usage") else None)
    sample = stratified(_strata(jobs), MOST_ROWS, seed)
    trials = tuple(search(rows[sample], seed))
    settings = trials[0].settings
    scaling = Scaling.of(rows[sample], settings.transform)
    scaled = scaling.apply(rows)
    labels = np.full(jobs.size, NOISE)
    labels[sample] = found = cluster(scaled[sample], settings)
    medoids, radii, typical = _centres(scaled[sample], found)
    rest = np.setdiff1d(np.arange(jobs.size), sample)
    if rest.size and len(medoids):
        labels[rest] = assign(scaled[rest], medoids, radii)
    accuracy, classifier = _learn(jobs, labels, seed)
    described = describe(jobs, labels, columns, rows, scaled, sample[typical])
    return Classes(
        described,
        labels,
        columns,
        trials,
        settings,
        sample.size,
        jobs.size,
        accuracy,
        _map(scaled, labels, seed),
        classifier,
    )


def profile_rows(jobs: Submitted, use: pl.DataFrame | None) -> tuple[tuple[str, ...], Floats]:
    """Return the columns that differ between tasks, and one row per task: requests and use on a logarithmic scale."""
    frame = request_features(jobs)
    if use is not None:
        used = use.select(pl.col(c).clip(0).log1p().alias(f"log_used_{c}") for c in USE_COLUMNS)
        frame = pl.concat([frame, used.fill_null(-1.0)], how="horizontal")
    kept = [c for c in frame.columns if frame[c].n_unique() > 1]
    return tuple(kept), frame.select(kept).to_numpy() if kept else np.zeros((jobs.size, 1))


def _strata(jobs: Submitted) -> Ints:
    kinds = jobs.frame.select(
        pl.concat_str(pl.col("workload").fill_null(""), pl.col("role"), separator="/").alias("kind")
    )
    return (kinds["kind"].rank("dense").cast(pl.Int64) - 1).to_numpy()


def _centres(scaled: Floats, labels: Ints) -> tuple[Floats, Floats, Ints]:
    """Return each cluster's medoid, the distance from it that most members keep, and the medoid's row."""
    medoids, radii, rows = [], [], []
    for k in range(int(labels.max()) + 1):
        members = np.flatnonzero(labels == k)
        middle = np.median(scaled[members], axis=0)
        row = members[np.abs(scaled[members] - middle).sum(axis=1).argmin()]
        apart = np.sqrt(((scaled[members] - scaled[row]) ** 2).sum(axis=1))
        medoids.append(scaled[row])
        radii.append(max(float(np.quantile(apart, _REACH)), 1e-3))
        rows.append(row)
    width = scaled.shape[1]
    return np.array(medoids).reshape(-1, width), np.array(radii), np.array(rows, np.int64)


def _submit_rows(jobs: Submitted, tables: dict[str, KeyTable]) -> Floats:
    codes = [table.codes(jobs.frame[name].cast(pl.String)).astype(np.float64) for name, table in tables.items()]
    return np.column_stack([request_features(jobs).to_numpy(), *codes])


def learn_classifier(jobs: Submitted, labels: Ints, seed: int) -> Classifier:
    """Return a booster that predicts these labels from submit-time facts."""
    import lightgbm

    outcomes = np.unique(labels)
    tables = {name: KeyTable.of(name, jobs.frame[name].cast(pl.String)) for name in NAMED}
    if outcomes.size == 1:
        return Classifier("", tables, outcomes)
    rows, target, _ = enough(
        _submit_rows(jobs, tables), np.searchsorted(outcomes, labels).astype(np.float64), np.ones(jobs.size)
    )
    settings: dict[str, Any] = {
        "objective": "multiclass",
        "num_class": outcomes.size,
        "num_leaves": 15,
        "min_data_in_leaf": 5,
        "learning_rate": 0.15,
        # Without it, steps towards classes that are told apart exactly grow without bound, and the others are lost.
        "lambda_l2": 1.0,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": 1,
        "seed": int(stream(seed, "classifier").integers(1 << 31)),
        "verbose": -1,
    }
    rounds = max(10, min(60, 1500 // int(outcomes.size)))
    booster = lightgbm.train(settings, lightgbm.Dataset(rows, target, params=settings), rounds)
    return Classifier(str(booster.model_to_string()), tables, outcomes)


def _learn(jobs: Submitted, labels: Ints, seed: int) -> tuple[float, Classifier]:
    """Return the accuracy on a fifth of the jobs learned from the others, and the classifier of all."""
    job = jobs.job
    held = stream(seed, "held out").permutation(int(job.max()) + 1)[job] % 5 == 0
    accuracy = float("nan")
    if held.any() and not held.all():
        part = learn_classifier(jobs.take(~held), labels[~held], seed)
        accuracy = float((part.classify(jobs.take(held)) == labels[held]).mean())
    return accuracy, learn_classifier(jobs, labels, seed)


def _map(scaled: Floats, labels: Ints, seed: int) -> pl.DataFrame:
    """Return up to 3,000 tasks in the plane of their first two principal components."""
    rows = np.sort(stream(seed, "map").choice(len(scaled), min(len(scaled), 3000), replace=False))
    centred = scaled[rows] - scaled[rows].mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    flat = centred @ axes[:2].T
    if flat.shape[1] < 2:
        flat = np.column_stack([flat, np.zeros(len(flat))])
    return pl.DataFrame({"x": flat[:, 0], "y": flat[:, 1], "label": labels[rows]})
