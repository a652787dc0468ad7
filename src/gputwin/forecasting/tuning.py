"""Hyper-parameters: random search inside the training window, with a budget; everything tried is recorded.

Bergstra and Bengio, "Random search for hyper-parameter optimization", 2012. A setting is scored by a walk-forward
backtest on the history alone; the test part is never seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.forecasting.backtest import Schedule, backtest
from gputwin.forecasting.metrics import rmse
from gputwin.forecasting.series import DemandSeries

SPACES: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "trees": {
        "rounds": (60, 120, 240),
        "rate": (0.015, 0.03, 0.06),
        "leaves": (7, 15, 31),
        "rows_per_leaf": (20, 40, 80, 160),
        "penalty": (1.0, 5.0, 50.0),
    },
    "rollout": {"rounds": (60, 120, 240), "rate": (0.02, 0.03, 0.05), "leaves": (7, 15, 31)},
    "neural": {
        "lookback": (12, 24, 48, 96),
        "units": (16, 32, 64),
        "layers": (1, 2),
        "rate": (5e-4, 1e-3, 2e-3, 5e-3),
        "dropout": (0.0, 0.1, 0.2, 0.4),
        "weight_decay": (0.0, 1e-3, 1e-2),
    },
}


@dataclass(frozen=True)
class Trial:
    """One setting, its score (RMSE over the last value's, mean over series and leads) and what it cost."""

    parameters: Mapping[str, Any]
    score: float
    cpu_seconds: float


@dataclass(frozen=True)
class Tuning:
    """All trials of one model, in the order tried; the first is the default setting."""

    model: str
    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """Return the trial with the least score; the earlier of equals."""
        return min(self.trials, key=lambda t: t.score)


def space_of(model: str) -> Mapping[str, Sequence[Any]]:
    """Return the values each parameter of a model may take."""
    if model.startswith("lightgbm"):
        return SPACES["trees"]
    if model == "rollout":
        return SPACES["rollout"]
    if model in ("lstm", "lstm-stacked", "gru", "transformer"):
        return SPACES["neural"]
    raise UserError(f"'{model}' has nothing to tune; try one of the lightgbm models, rollout, lstm, gru, transformer")


def tune(
    model: str,
    history: DemandSeries,
    leads: Sequence[int],
    *,
    trials: int = 8,
    cpu_seconds: float = 120.0,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> Tuning:
    """Return the trials of a random search that ends after so many trials or CPU seconds, whichever comes first.

    `history` is the training window; its last quarter, before which models are fitted, scores the settings.
    """
    space = space_of(model)
    draw = stream(seed, "tuning", model)
    cut = int(len(history) * 0.75)
    if len(history) - cut <= max(leads):
        raise UserError(f"a history of {len(history)} bins is too short to tune for {max(leads)} steps ahead")
    plan = Schedule(cut, cut, len(history), (cut,), (cut,))
    done: list[Trial] = []
    spent = 0.0
    for number in range(trials):
        setting = {} if number == 0 else {k: v[int(draw.integers(len(v)))] for k, v in space.items()}
        if any(setting == t.parameters for t in done):
            continue
        progress(f"tuning {model}: trial {number + 1} of {trials}" + _so_far(done))
        began = time.process_time()
        tested = backtest(history, leads, [model, "naive"], plan=plan, parameters={model: setting})
        taken = time.process_time() - began
        spent += taken
        done.append(Trial(setting, _score(tested.forecasts[model], tested.forecasts["naive"], tested.actuals), taken))
        if spent >= cpu_seconds:
            break
    return Tuning(model, tuple(done))


def _so_far(done: Sequence[Trial]) -> str:
    return f", best {min(t.score for t in done):.3f} of the last value's error" if done else ""


def _score(made: Any, naive: Any, actual: Any) -> float:
    """Return RMSE over the last value's, as a geometric mean over leads and series."""
    ratios = []
    for i in range(actual.shape[1]):
        for j in range(actual.shape[2]):
            known = np.isfinite(actual[:, i, j])
            base = float(rmse(actual[known, i, j] - naive[known, i, j]))
            ours = float(rmse(actual[known, i, j] - made[known, i, j]))
            if base > 0:
                ratios.append(max(ours / base, 1e-9))
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else 1.0
