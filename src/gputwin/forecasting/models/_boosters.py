"""What models of LightGBM trees have in common: boosters by name, saved in LightGBM's own text format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from gputwin.forecasting.models._model import Model
from gputwin.forecasting.series import DemandSeries

REPRODUCIBLE: Mapping[str, Any] = {"num_threads": 1, "deterministic": True, "force_col_wise": True, "verbose": -1}
"""Settings under which the same data and seed give the same trees on every machine, by columns in half the time."""
FEW_BINS: Mapping[str, Any] = {"max_bin": 63, "verbose": -1}


class BoosterModel(Model):
    """A model whose `boosters_` are LightGBM's."""

    boosters_: dict[str, Any]

    def state(self) -> dict[str, Any]:
        """Return what was learned; trees in LightGBM's own text format."""
        return {**super().state(), "boosters_": {k: b.model_to_string() for k, b in self.boosters_.items()}}

    def restore(self, state: Mapping[str, Any], series: DemandSeries) -> Self:
        """Take over a saved state."""
        import lightgbm

        super().restore(state, series)
        self.boosters_ = {k: lightgbm.Booster(model_str=text) for k, text in state["boosters_"].items()}
        return self
