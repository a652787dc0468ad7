"""Ensembles and `auto`: what past walk-forward forecasts say about which model, or which mix, to use.

Everything here is fitted on rows whose targets lie before the row it is used for, fold by fold: the past is cut at the
refits, and what is used on a fold comes from the folds before it. The test part is the last fold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gputwin.forecasting.backtest import Backtest
from gputwin.forecasting.metrics import loss_standard_error
from gputwin.forecasting.models._model import MODELS
from gputwin.forecasting.series import Floats, Integers

ENSEMBLES = {"ensemble-mean": 20, "ensemble-median": 20, "ensemble-stack": 21}
"""Ensemble → how complex it counts."""
AUTO = "auto"
MEMBERS = 4
"""Models in a mean or median: those with the least squared error so far, as long as they are nearly as good."""
_NEARLY = 1.1
"""Mean squared error over the best one's, up to which a model is a member."""
_PENALTY = 0.05


@dataclass(frozen=True)
class Choice:
    """What `auto` took for one series and lead, what did best, and the weights of every ensemble."""

    series: str
    lead: int
    model: str
    best: str
    past_ratio: float
    """RMSE of the chosen one over the last value's, on past folds."""
    weights: Mapping[str, Mapping[str, float]]


def combine(tested: Backtest) -> tuple[Backtest, tuple[Choice, ...]]:
    """Return the backtest with the ensembles and `auto` in it, and what was chosen for the test part."""
    names = tuple(tested.forecasts)
    shape = tested.actuals.shape
    made = {name: np.full(shape, np.nan) for name in (*ENSEMBLES, AUTO)}
    choices = []
    for i, lead in enumerate(tested.leads):
        for j, series in enumerate(tested.series.names):
            table = np.stack([tested.forecasts[n][:, i, j] for n in names], axis=1)
            column, choice = _combine_one(tested, table, tested.actuals[:, i, j], names, lead, series)
            for name, values in column.items():
                made[name][:, i, j] = values
            choices.append(choice)
    return tested.with_forecasts(made), tuple(choices)


def _combine_one(
    tested: Backtest, table: Floats, actual: Floats, names: Sequence[str], lead: int, series: str
) -> tuple[dict[str, Floats], Choice]:
    plan = tested.schedule
    folds = [r - plan.first for r in plan.refits if r <= plan.test] + [plan.end - plan.first]
    made = {name: np.full(len(actual), np.nan) for name in ENSEMBLES}
    weights: dict[str, dict[str, float]] = {}
    for start, stop in pairwise(folds[1:]):
        # A row is evidence at `start` only if its target is known by then.
        known = np.arange(max(0, start - lead + 1))
        weights = _weights(table[known], actual[known], names)
        for name, share in weights.items():
            made[name][start:stop] = _mixed(table[start:stop], names, name, share)
    everything = np.concatenate([table, np.stack(list(made.values()), axis=1)], axis=1)
    rows = np.arange(folds[1], max(folds[1], folds[-2] - lead + 1))
    if len(folds) < 3 or len(rows) < 2:
        rows = np.arange(max(1, folds[-2] - lead + 1))
        everything = table
    every = (*names, *made)[: everything.shape[1]]
    chosen, best = choose(everything[rows], actual[rows], every, lead)
    # Before the test there is no honest choice; the chosen one's own forecasts stand in for its past errors.
    made[AUTO] = everything[:, every.index(chosen)]
    naive = everything[rows, every.index("naive")] if "naive" in every else table[rows, 0]
    base = float(np.sqrt(np.mean((actual[rows] - naive) ** 2)))
    ratio = float(np.sqrt(np.mean((actual[rows] - made[AUTO][rows]) ** 2))) / base if base > 0 else 1.0
    return made, Choice(series, lead, chosen, best, ratio, weights)


def complexity(name: str) -> int:
    """Return how complex a model or ensemble counts."""
    return ENSEMBLES[name] if name in ENSEMBLES else MODELS.get(name).complexity


def choose(table: Floats, actual: Floats, names: Sequence[str], lead: int) -> tuple[str, str]:
    """Return the simplest model that is within one standard error of the best, and the best, by squared error.

    The standard error is that of the difference to the best, row by row, and knows that errors of neighbouring rows
    are alike (Newey and West). Breiman et al., "Classification and Regression Trees", 1984, section 3.4.3.
    """
    loss = (table - actual[:, None]) ** 2
    means = loss.mean(axis=0)
    best = int(np.argmin(means))
    close = [
        k for k in range(len(names)) if means[k] - means[best] <= loss_standard_error(loss[:, k] - loss[:, best], lead)
    ]
    chosen = min(close, key=lambda k: (complexity(names[k]), means[k]))
    return names[chosen], names[best]


def _weights(table: Floats, actual: Floats, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return, per ensemble, its members and their weights, from rows that are known."""
    if len(actual) < 2:
        equal = dict.fromkeys(names, 1.0 / len(names))
        return dict.fromkeys(ENSEMBLES, equal)
    error = ((table - actual[:, None]) ** 2).mean(axis=0)
    order = [k for k in np.argsort(error, kind="stable")[:MEMBERS] if error[k] <= _NEARLY * error.min()]
    members = {names[k]: 1.0 / len(order) for k in order}
    stacked = stack(table, actual)
    return {
        "ensemble-mean": members,
        "ensemble-median": members,
        "ensemble-stack": {n: float(w) for n, w in zip(names, stacked, strict=True) if w > 1e-4},
    }


def stack(table: Floats, actual: Floats) -> Floats:
    """Return weights, none negative, summing to one, with the least squared error and a pull towards equal ones.

    Breiman, "Stacked regressions", 1996.
    """
    from scipy.optimize import nnls

    count, wide = table.shape
    # Weights sum to one, so a common shift of everything changes nothing but the conditioning.
    base = table.mean(axis=1)
    left, right = table - base[:, None], actual - base
    scale = float(np.sqrt(np.mean(left**2))) or 1.0
    pull = np.sqrt(_PENALTY * count)
    heavy = 1e3 * np.sqrt(count)
    rows = np.concatenate([left / scale, pull * np.eye(wide), np.full((1, wide), heavy)])
    wanted = np.concatenate([right / scale, np.full(wide, pull / wide), [heavy]])
    weights, _ = nnls(rows, wanted)
    return np.asarray(weights / weights.sum())


def _mixed(table: Floats, names: Sequence[str], ensemble: str, weights: Mapping[str, float]) -> Floats:
    at: Integers = np.array([names.index(n) for n in weights])
    if ensemble == "ensemble-median":
        return np.asarray(np.median(table[:, at], axis=1))
    return np.asarray(table[:, at] @ np.array(list(weights.values())))
