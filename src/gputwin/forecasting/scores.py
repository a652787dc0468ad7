"""The backtest as a table: one row per series, lead and model, every model next to naive, mean and zero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from gputwin.core.units import percent
from gputwin.forecasting.backtest import Backtest
from gputwin.forecasting.combine import AUTO, Choice
from gputwin.forecasting.conformal import band, rolling_quantiles
from gputwin.forecasting.metrics import (
    Interval,
    concentration,
    diebold_mariano,
    mase,
    pinball,
    relative_rmse,
    rmse,
    skill,
    skill_interval,
)
from gputwin.forecasting.models._model import floor_of
from gputwin.forecasting.series import Floats

COVERAGE = 0.8
_LEVELS = (0.1, 0.5, 0.9)
_CALIBRATION = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


def score(tested: Backtest, *, seed: int = 0) -> pl.DataFrame:
    """Return the test part's scores.

    Columns: `series`, `lead`, `horizon_seconds`, `model`, `rmse`, `relative_rmse` (over the mean of actual values), `mase`,
    `pinball` (mean over 0.1, 0.5, 0.9), `coverage` of 80 % intervals and their mean `width`, `skill_naive` with its
    95 % interval, `skill_mean`, `skill_zero`, `p_naive` (Diebold–Mariano against the last value), `worst_share` (of the
    squared error in the worst 1 % of bins), `cpu_seconds`.
    """
    rows = []
    history = tested.series.head(tested.schedule.test)
    floor = floor_of(history)
    for i, lead in enumerate(tested.leads):
        at = tested.rows(lead, test=True)
        season = lead if tested.series.is_level else 1
        for j, series in enumerate(tested.series.names):
            actual = tested.actuals[at, i, j]
            references = _references(tested, at, i, j)
            for model, made in tested.forecasts.items():
                point = made[:, i, j]
                errors = actual - point[at]
                held = band(point, tested.actuals[:, i, j], lead, int(at[0]), COVERAGE, floor[j])
                after = at - at[0]
                quantiles = rolling_quantiles(point, tested.actuals[:, i, j], lead, int(at[0]), _LEVELS, floor[j])
                gained = skill_interval(errors, references["naive"], lead, seed=seed)
                rows.append(
                    {
                        "series": series,
                        "lead": lead,
                        "horizon_seconds": lead * tested.series.bin_seconds,
                        "model": model,
                        "rmse": float(rmse(errors)),
                        "relative_rmse": float(relative_rmse(actual, point[at])),
                        "mase": float(mase(actual, point[at], history.values[:, j], season)),
                        "pinball": float(
                            np.mean([pinball(actual, quantiles[after, k], q) for k, q in enumerate(_LEVELS)])
                        ),
                        "coverage": held.coverage,
                        "width": float((held.high - held.low)[after].mean()),
                        "skill_naive": gained.value,
                        "skill_naive_low": gained.low,
                        "skill_naive_high": gained.high,
                        "skill_mean": float(skill(errors, references["mean"])),
                        "skill_zero": float(skill(errors, references["zero"])),
                        "p_naive": diebold_mariano(errors, references["naive"], lead).p_value,
                        "worst_share": float(concentration(errors)),
                        "cpu_seconds": tested.cpu_seconds.get(model),
                    }
                )
    return pl.DataFrame(rows)


def _references(tested: Backtest, at: np.ndarray, i: int, j: int) -> dict[str, Floats]:
    """Return the errors of last value, mean of the history and zero, whatever models were tested."""
    actual = tested.actuals[at, i, j]
    origins = tested.schedule.origins[at]
    values = tested.series.values[:, j]
    return {
        "naive": actual - values[origins - 1],
        "mean": actual - values[: tested.schedule.test].mean(),
        "zero": actual,
    }


def calibration(tested: Backtest, models: Sequence[str] = (AUTO,)) -> pl.DataFrame:
    """Return nominal `level` against the share of actual values at or below that quantile, per series, lead, model."""
    floor = floor_of(tested.series.head(tested.schedule.test))
    rows = []
    for i, lead in enumerate(tested.leads):
        at = tested.rows(lead, test=True)
        for j, series in enumerate(tested.series.names):
            for model in models:
                point = tested.forecasts[model][:, i, j]
                made = rolling_quantiles(point, tested.actuals[:, i, j], lead, int(at[0]), _CALIBRATION, floor[j])
                below = (tested.actuals[at, i, j][:, None] <= made[at - at[0]]).mean(axis=0)
                rows += [
                    {"series": series, "lead": lead, "model": model, "level": level, "share": float(share)}
                    for level, share in zip(_CALIBRATION, below, strict=True)
                ]
    return pl.DataFrame(rows)


def verdicts(scores: pl.DataFrame, choices: Sequence[Choice], span: dict[int, str]) -> tuple[str, ...]:
    """Return one plain sentence per series and lead: what `auto` took, and whether anything beat the last value."""
    said = []
    for choice in choices:
        here = scores.filter(series=choice.series, lead=choice.lead)
        auto = here.row(by_predicate=pl.col("model") == AUTO, named=True)
        gained = Interval(auto["skill_naive"], auto["skill_naive_low"], auto["skill_naive_high"])
        singles = here.filter(pl.col("model") != AUTO).sort("rmse")
        best = singles.row(0, named=True)
        said.append(f"{choice.series}, {span[choice.lead]} ahead: {_sentence(choice, gained, best)}")
    return tuple(said)


def _sentence(choice: Choice, gained: Interval, best: dict[str, object]) -> str:
    margin = f"(95 %: {percent(gained.low, 1, signed=True)} to {percent(gained.high, 1, signed=True)})"
    lead = float(str(best["skill_naive"]))
    taken = f"auto took {choice.model}"
    if choice.share < 1:
        taken += f" for {percent(choice.share)} and the last value for the rest"
    if choice.left == 0:
        after = "nothing beat it" if lead < 0.01 else f"in hindsight {best['model']} was {percent(lead, 1)} better"
        now = "" if choice.model == "naive" else f"; since then {taken}"
        return f"auto kept the last value; on the test part {after}{now}"
    if choice.model == "naive":
        taken = (
            f"auto took other models than the last value in {percent(choice.left)} of the test part, now the last value"
        )
    if gained.value == 0.0:
        return f"{taken}, exactly as good as the last value"
    if gained.low > 0:
        return f"{taken}, {percent(gained.value, 1)} better than the last value {margin}"
    if gained.value >= 0:
        return f"{taken}, {percent(gained.value, 1)} better than the last value, which may be chance {margin}"
    return f"{taken}, {percent(-gained.value, 1)} worse than the last value {margin}"
