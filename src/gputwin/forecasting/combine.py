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
from gputwin.forecasting.models._model import MODELS
from gputwin.forecasting.series import Floats, Integers

ENSEMBLES = {"ensemble-mean": 20, "ensemble-median": 20, "ensemble-stack": 21}
"""Ensemble → how complex it counts."""
AUTO = "auto"
OBVIOUS = ("zero", "mean", "naive", "seasonal-naive")
INDEPENDENT = 30
"""Forecasts that do not overlap, below which there is too little evidence to leave the obvious ones."""
MEMBERS = 4
"""Models in a mean or median: the best so far, as long as they are nearly as good."""
_NEARLY = 1.1
"""Squared error over the best one's, up to which a model is a member."""
_STACKED = 1.5
"""The same for stacking, which gives small weights by itself."""
_PENALTY = 0.05
_BLOCKS = 12
_SMOOTHING = 0.05
"""Share of the mean squared error added to every block's, so that quiet blocks decide nothing."""


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
    everything, every = np.concatenate([table, np.stack(list(made.values()), axis=1)], axis=1), (*names, *made)
    rows = np.arange(folds[1], max(folds[1], folds[-2] - lead + 1))
    if len(rows) < INDEPENDENT * lead:
        everything, every = _obvious(table, names)
        rows = np.arange(max(1, folds[-2] - lead + 1))
    chosen, best = choose(everything[rows], actual[rows], every)
    # Before the test there is no honest choice; the chosen one's own forecasts stand in for its past errors.
    made[AUTO] = everything[:, every.index(chosen)]
    naive = everything[rows, every.index("naive")] if "naive" in every else table[rows, 0]
    base = float(np.sqrt(np.mean((actual[rows] - naive) ** 2)))
    ratio = float(np.sqrt(np.mean((actual[rows] - made[AUTO][rows]) ** 2))) / base if base > 0 else 1.0
    return made, Choice(series, lead, chosen, best, ratio, weights)


def _obvious(table: Floats, names: Sequence[str]) -> tuple[Floats, tuple[str, ...]]:
    """Return the columns of the obvious forecasts; all, where there is none of them."""
    at = [k for k, name in enumerate(names) if name in OBVIOUS] or list(range(len(names)))
    return table[:, at], tuple(names[k] for k in at)


def complexity(name: str) -> int:
    """Return how complex a model or ensemble counts."""
    return ENSEMBLES[name] if name in ENSEMBLES else MODELS.get(name).complexity


def block_scores(table: Floats, actual: Floats) -> Floats:
    """Return blocks × models: the logarithm of the squared error of each block over the models' least mean one.

    Demand is bursty: one roll-out can carry most of a month's squared error, and the sum would choose by that one event.
    The mean of these logarithms is a geometric mean over blocks of time, in which every block has the same say.
    """
    loss = (table - actual[:, None]) ** 2
    blocks = np.array_split(loss, max(1, min(_BLOCKS, len(loss))))
    means = np.stack([block.mean(axis=0) for block in blocks])
    overall = float(loss.mean(axis=0).min())
    return np.log(means + _SMOOTHING * overall + np.finfo(np.float64).tiny)


def choose(table: Floats, actual: Floats, names: Sequence[str]) -> tuple[str, str]:
    """Return the simplest model that is within one standard error of the best, and the best, by `block_scores`.

    The standard error is that of the difference to the best over blocks of time. Breiman et al., "Classification and
    Regression Trees", 1984, section 3.4.3.
    """
    scores = block_scores(table, actual)
    means = scores.mean(axis=0)
    best = int(np.argmin(means))
    gaps = scores - scores[:, [best]]
    spread = gaps.std(axis=0, ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.full(len(names), np.inf)
    close = np.flatnonzero(gaps.mean(axis=0) <= spread)
    chosen = min((int(k) for k in close), key=lambda k: (complexity(names[k]), float(means[k])))
    return names[chosen], names[best]


def _weights(table: Floats, actual: Floats, names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return, per ensemble, its members and their weights, from rows that are known."""
    if len(actual) < 2:
        return dict.fromkeys(ENSEMBLES, dict.fromkeys(names, 1.0 / len(names)))
    score = block_scores(table, actual).mean(axis=0)
    order = np.argsort(score, kind="stable")
    members = [k for k in order[:MEMBERS] if score[k] <= score.min() + np.log(_NEARLY)]
    able = np.array([k for k in order if score[k] <= score.min() + np.log(_STACKED)])
    equal = {names[k]: 1.0 / len(members) for k in members}
    stacked = stack(table[:, able], actual)
    return {
        "ensemble-mean": equal,
        "ensemble-median": equal,
        "ensemble-stack": {names[int(k)]: float(w) for k, w in zip(able, stacked, strict=True) if w > 1e-4},
    }


def stack(table: Floats, actual: Floats) -> Floats:
    """Return weights, none negative, summing to one, with the least squared error and a pull towards equal ones.

    Breiman, "Stacked regressions", 1996. Every block of time has the same say, as in `block_scores`.
    """
    from scipy.optimize import nnls

    count, wide = table.shape
    least = ((table - actual[:, None]) ** 2).mean(axis=1)
    parts = np.array_split(least, max(1, min(_BLOCKS, count)))
    size = np.concatenate([np.full(len(p), p.mean()) for p in parts])
    weight = 1 / np.sqrt(size + _SMOOTHING * size.mean() + np.finfo(np.float64).tiny)
    # Weights sum to one, so a common shift of everything changes nothing but the conditioning.
    base = table.mean(axis=1)
    left, right = (table - base[:, None]) * weight[:, None], (actual - base) * weight
    scale = float(np.sqrt(np.mean(left**2))) or 1.0
    pull, heavy = np.sqrt(_PENALTY * count), 1e3 * np.sqrt(count)
    rows = np.concatenate([left / scale, pull * np.eye(wide), np.full((1, wide), heavy)])
    wanted = np.concatenate([right / scale, np.full(wide, pull / wide), [heavy]])
    weights, _ = nnls(rows, wanted)
    return np.asarray(weights / weights.sum())


def _mixed(table: Floats, names: Sequence[str], ensemble: str, weights: Mapping[str, float]) -> Floats:
    at: Integers = np.array([names.index(n) for n in weights])
    if ensemble == "ensemble-median":
        return np.asarray(np.median(table[:, at], axis=1))
    return np.asarray(table[:, at] @ np.array(list(weights.values())))
