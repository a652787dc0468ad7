"""Why a tree model says what it says: LightGBM's `pred_contrib`, which are SHAP values (Lundberg et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from gputwin.profiling.features import Features
from gputwin.profiling.jobs import Submitted


def contributions(texts: Sequence[str], features: Features, jobs: Submitted) -> pl.DataFrame:
    """Return reasons of the mean of some models of log durations: `row`, `reason`, `value`, `factor`, strongest first.

    The product of a row's factors is the model's geometric mean; the one called "typical job" is where it starts from.
    """
    import lightgbm

    rows = features.matrix(jobs)
    if not features.names:
        rows = np.zeros((jobs.size, 1))
    names = [*features.names, "typical job"] if features.names else ["nothing", "typical job"]
    effects = np.zeros((jobs.size, len(names)))
    for text in texts:
        booster = lightgbm.Booster(model_str=text)
        # A forest is the mean of its trees, and LightGBM sums their contributions.
        parts = booster.num_trees() if "\naverage_output\n" in text else 1
        effects += np.asarray(booster.predict(rows, pred_contrib=True, num_threads=1)) / (parts * len(texts))
    values = np.column_stack([rows, np.full(jobs.size, np.nan)])
    frame = pl.DataFrame(
        {
            "row": np.repeat(np.arange(jobs.size), len(names)),
            "reason": names * jobs.size,
            "value": values.ravel(),
            "factor": np.exp(effects.ravel()),
        }
    )
    return frame.with_columns(pl.col("value").fill_nan(None)).sort(
        "row", pl.col("factor").log().abs(), descending=[False, True], maintain_order=True
    )
