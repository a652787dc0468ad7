"""Gradient-boosted trees on lags, rolling, seasonal and calendar features: one model per series and lead (direct).

Ke et al., "LightGBM", NeurIPS 2017; direct multi-horizon forecasting after Ben Taieb and Hyndman, "A gradient boosting
approach to the Kaggle load forecasting competition", 2014. Between the leads that were learned, forecasts lie on lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from gputwin.core.processors import processors
from gputwin.forecasting.features import Features, features
from gputwin.forecasting.models._boosters import FEW_BINS, REPRODUCIBLE, BoosterModel
from gputwin.forecasting.models._model import MODELS, Spec, floor_of, interpolated
from gputwin.forecasting.series import DemandSeries, Floats, Integers


class Trees(BoosterModel):
    """LightGBM. `relative`: learn the change from the last value, else the level itself.

    `objective` is one of LightGBM's: l2, l1, huber, tweedie, quantile (with `alpha`).
    """

    shortest = 60

    def __init__(
        self,
        relative: bool = False,
        objective: str = "l2",
        rounds: int = 120,
        rate: float = 0.03,
        leaves: int = 15,
        rows_per_leaf: int = 80,
        penalty: float = 5.0,
        alpha: float = 0.9,
        recent_bins: int = 0,
        seed: int = 0,
    ) -> None:
        self.relative = relative
        self.objective = objective
        self.rounds = rounds
        self.rate = rate
        self.leaves = leaves
        self.rows_per_leaf = rows_per_leaf
        self.penalty = penalty
        self.alpha = alpha
        self.recent_bins = recent_bins
        self.seed = seed

    def _learn(self, series: DemandSeries, leads: Sequence[int]) -> None:
        self.scale_ = np.ones((len(leads), len(series.names)))
        self.boosters_ = {}
        self.floor_ = floor_of(series)
        pairs = [(i, j) for i in range(len(leads)) for j in range(len(series.names))]
        # Each booster is made by one thread, so that their number changes no tree; LightGBM lets go of Python meanwhile.
        with ThreadPoolExecutor(min(processors(), len(pairs))) as threads:
            learned = threads.map(lambda pair: self._learn_one(series, leads[pair[0]], pair[1]), pairs)
            for (i, j), found in zip(pairs, learned, strict=True):
                if found is not None:
                    self.scale_[i, j], self.boosters_[f"{leads[i]}/{j}"] = found

    def _learn_one(self, series: DemandSeries, lead: int, column: int) -> tuple[float, Any] | None:
        """Return the scale of what is learned and the booster; None where there is nothing to learn."""
        import lightgbm

        made = features(series, column, lead, self.relative)
        target, usable = self._target(series, made, lead, column)
        spread = float(target[usable].std()) if usable.any() else 0.0
        if usable.sum() < self.shortest // 2 or spread == 0.0:
            return None
        scale = spread if self.objective != "tweedie" else float(target[usable].mean()) or 1.0
        data = lightgbm.Dataset(made.matrix[usable], target[usable] / scale, params={**FEW_BINS})
        return scale, lightgbm.train(self._settings(int(usable.sum())), data, self.rounds)

    def _target(self, series: DemandSeries, made: Features, lead: int, column: int) -> tuple[Floats, Any]:
        """Return what to learn per origin, and where it is known and features are not mostly missing."""
        target = np.full(len(series) + 1, np.nan)
        target[: len(series) + 1 - lead] = series.values[lead - 1 :, column]
        if series.missing is not None:
            # A held value would teach that nothing changes.
            target[: len(series) + 1 - lead][series.missing[lead - 1 :, column]] = np.nan
        if self.relative:
            target = target - made.last
        usable = np.isfinite(target)
        usable[: min(12, len(series) // 4)] = False
        if self.recent_bins:
            usable[: max(0, len(series) - self.recent_bins)] = False
        return target, usable

    def _settings(self, rows: int) -> dict[str, Any]:
        return {
            "objective": self.objective,
            "alpha": self.alpha,
            "tweedie_variance_power": 1.3,
            "learning_rate": self.rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": max(3, min(self.rows_per_leaf, rows // 10)),
            "lambda_l2": self.penalty,
            "feature_fraction": 0.5,
            "bagging_fraction": 0.7,
            "bagging_freq": 1,
            "seed": self.seed,
            **FEW_BINS,
            **REPRODUCIBLE,
        }

    def predict_at(self, series: DemandSeries, origins: Integers, leads: Sequence[int]) -> Floats:
        """Return the trees' forecast at each origin; the last value (or the mean) where there was nothing to learn."""
        result = np.empty((len(origins), len(self.leads_), len(series.names)))
        for i, lead in enumerate(self.leads_):
            for j in range(len(series.names)):
                made = features(series, j, lead, self.relative)
                booster = self.boosters_.get(f"{lead}/{j}")
                if booster is None:
                    result[:, i, j] = made.last[origins]
                    continue
                change = booster.predict(made.matrix[origins]) * self.scale_[i, j]
                result[:, i, j] = made.last[origins] + change if self.relative else change
        return np.maximum(interpolated(result, self.leads_, leads), self.floor_)


def _counts(series: DemandSeries) -> bool:
    return not series.is_level and bool((series.values >= 0).all())


def _returns(series: DemandSeries) -> bool:
    """Return whether the values come back: trees cannot say a level they have not seen, only changes of it."""
    steps = np.diff(series.values, axis=0).std(axis=0)
    return not series.is_level or bool((steps > 0.05 * series.values.std(axis=0)).all())


def change_trees(**parameters: Any) -> Trees:
    """Return trees on changes from the last value."""
    return Trees(**{"relative": True, "rows_per_leaf": 40, **parameters})


def robust_trees(**parameters: Any) -> Trees:
    """Return trees on changes, robust to outliers: most changes of a level are small, some are roll-outs."""
    return Trees(**{"relative": True, "objective": "huber", "rate": 0.02, "rows_per_leaf": 100, **parameters})


def tweedie_trees(**parameters: Any) -> Trees:
    """Return trees for amounts of which many are zero."""
    return Trees(**{"objective": "tweedie", **parameters})


def median_trees(**parameters: Any) -> Trees:
    """Return trees for the median of changes."""
    return Trees(**{"relative": True, "objective": "quantile", "alpha": 0.5, **parameters})


MODELS.add(Spec("lightgbm", Trees, "trees on lags, seasons and calendar; squared error", 10, suits=_returns))
MODELS.add(Spec("lightgbm-change", change_trees, "the same for changes from the last value", 10))
MODELS.add(Spec("lightgbm-huber", robust_trees, "for changes, Huber loss", 10, suits=lambda s: s.is_level))
MODELS.add(Spec("lightgbm-tweedie", tweedie_trees, "Tweedie loss, for amounts with many zeros", 10, suits=_counts))
MODELS.add(Spec("lightgbm-median", median_trees, "for changes, quantile loss at the median", 10, is_default=False))
