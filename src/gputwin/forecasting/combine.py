"""Ensembles and `auto`: what past walk-forward forecasts say about which model, or which mix, to use.

Everything here is fitted on rows whose targets were known at the origin it is used for. Members and weights of ensembles
are found anew at every refit of the models, also in the test part; `auto` is the walk of `evidence` over all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gputwin.forecasting.backtest import Backtest
from gputwin.forecasting.evidence import walk
from gputwin.forecasting.models._model import MODELS
from gputwin.forecasting.series import Floats, Integers

ENSEMBLES = ("ensemble-mean", "ensemble-median", "ensemble-stack")
AUTO = "auto"
OBVIOUS = ("zero", "mean", "naive", "seasonal-naive")
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
    """What `auto` stands at for one series and lead after the last bin, and the weights of every ensemble then."""

    series: str
    lead: int
    model: str
    """The model it goes towards; `naive` where it stays with the last value."""
    share: float
    """How much of the way from the last value to the model's forecast it goes; 0 for the last value."""
    left: float
    """Share of the test part's bins in which it left the last value."""
    best: str
    """The one with the least error before the test part, by `block_scores`."""
    past_ratio: float
    """RMSE of `auto` over the last value's, before the test part."""
    weights: Mapping[str, Mapping[str, float]]

    def last_value(self) -> Choice:
        """Return the choice to stay with the last value."""
        return replace(self, model="naive", share=0.0)


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
    folds = [*(r - plan.first for r in plan.refits), plan.end - plan.first]
    known = np.isfinite(actual)
    made = {name: np.full(len(actual), np.nan) for name in ENSEMBLES}
    for start, stop in pairwise(folds[1:]):
        # A row is evidence at `start` only if its target is known by then.
        rows = np.flatnonzero(known[: max(0, start - lead + 1)])
        for name, share in _weights(table[rows], actual[rows], names).items():
            made[name][start:stop] = _mixed(table[start:stop], names, name, share)
    order = sorted(range(len(names)), key=lambda k: MODELS.get(names[k]).complexity)
    # A mix depends least on one model, so it comes first among those that gain about as much.
    mixes = tuple(reversed(ENSEMBLES))
    every = (*mixes, *(names[k] for k in order))
    everything = np.concatenate([np.stack([made[n] for n in mixes], axis=1), table[:, order]], axis=1)
    last = tested.series.values[plan.origins - 1, tested.series.names.index(series)]
    walked = walk(everything, actual, last, lead)
    made[AUTO] = walked.forecast
    before, test = tested.rows(lead, test=False), tested.rows(lead, test=True)
    choice = Choice(
        series,
        lead,
        every[walked.now.column] if walked.now.column >= 0 else "naive",
        walked.now.share,
        float((walked.share[test] > 0).mean()),
        names[int(np.argmin(block_scores(table[before], actual[before]).mean(axis=0)))] if len(before) else "naive",
        _ratio(actual[before] - walked.forecast[before], actual[before] - last[before]),
        _weights(table[known], actual[known], names),
    )
    return made, choice


def _ratio(errors: Floats, reference: Floats) -> float:
    """Return RMSE over the reference's; 1 where there is nothing to compare."""
    base = float((reference**2).sum())
    return float(np.sqrt((errors**2).sum() / base)) if base > 0 else 1.0


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
