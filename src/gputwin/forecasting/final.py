"""The forecast from the series' end: what `auto` stands at, fitted on the whole history, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from gputwin.forecasting.backtest import Backtest
from gputwin.forecasting.combine import AUTO, ENSEMBLES, OBVIOUS, Choice
from gputwin.forecasting.conformal import residual_quantiles
from gputwin.forecasting.evidence import proven
from gputwin.forecasting.frame import Forecast, forecast_frame
from gputwin.forecasting.models._model import MODELS, Model, Spec, floor_of, lead_grid
from gputwin.forecasting.series import Floats

_COSTLY_LEADS = 6


def final_forecast(
    tested: Backtest,
    choices: Sequence[Choice],
    horizon: int,
    levels: Sequence[float],
    parameters: Mapping[str, Mapping[str, object]],
    progress: Callable[[str], None],
) -> tuple[Forecast, dict[str, Model]]:
    """Return the forecast of the chosen models fitted on the whole history, and these models."""
    series, steps = tested.series, tuple(range(1, horizon + 1))
    fitted: dict[str, Model] = {}
    at = np.array([len(series)])

    @cache
    def predicted(name: str) -> Floats:
        made: Floats = fitted[name].predict_at(series, at, steps)[0]
        return made

    def steps_of(name: str) -> Floats:
        if name not in fitted:
            progress(f"fitting {name} on the whole history")
            spec = MODELS.get(name)
            fitted[name] = spec.make(**parameters.get(name, {})).fit(series, _grid(spec, horizon))
        return predicted(name)

    @cache
    def obvious_at(step: int) -> tuple[Choice, ...]:
        return _obvious_at(tested, choices, step)

    mean = np.empty((horizon, len(series.names)))
    used: list[str] = []
    by_lead = {(c.series, c.lead): c for c in choices}
    for j, name in enumerate(series.names):
        taken = []
        for step in steps:
            lead = min(tested.leads, key=lambda known: (abs(np.log(known / step)), known))
            choice = by_lead[name, lead]
            base = choice.last_value() if step in tested.leads else obvious_at(step)[j]
            # At a whole day the last value and that of a day ago are one; half a day ahead they are not.
            parts = (base,) if choice.model in OBVIOUS and step not in tested.leads else (base, choice)
            taken.append(parts[-1].model)
            mean[step - 1, j] = _value(parts, steps_of, step, j)
        used.append(", ".join(dict.fromkeys(taken)))
    floor = floor_of(series)
    mean = np.maximum(mean, floor)
    errors = tested.actuals - tested.forecasts[AUTO]
    quantiles = residual_quantiles(mean, errors, tested.leads, steps, levels, floor)
    frame = forecast_frame(series, steps, used, mean, quantiles)
    origin = series.start_seconds + series.bin_seconds * len(series)
    made = Forecast(series.target, series.bin_seconds, origin, tuple(sorted(levels)), frame, series.notes)
    return made, fitted


def _obvious_at(tested: Backtest, choices: Sequence[Choice], step: int) -> tuple[Choice, ...]:
    """Return the obvious forecast that past rows prove at this very step, per series; they cost little."""
    series = tested.series
    stay = [next(c for c in choices if c.series == name).last_value() for name in series.names]
    names = [n for n in OBVIOUS if n in tested.forecasts]
    origins = np.arange(tested.schedule.first, len(series) - step + 1, dtype=np.int64)
    if len(origins) == 0 or not names:
        return tuple(stay)
    history = series.head(tested.schedule.first)
    made = [MODELS.get(n).make().fit(history, (step,)).predict_at(series, origins, (step,))[:, 0] for n in names]
    last, known = series.values[origins - 1], series.known()[origins + step - 1]
    steps, errors = np.stack(made, axis=2) - last[:, :, None], series.values[origins + step - 1] - last
    found = [proven(steps[known, j], errors[known, j], step) for j in range(len(series.names))]
    return tuple(
        replace(c, model=names[f.column], share=f.share) if f.share > 0 else c for c, f in zip(stay, found, strict=True)
    )


def _grid(spec: Spec, horizon: int) -> tuple[int, ...]:
    """Return the leads to fit for a whole fan; costly models learn fewer and lie on lines between."""
    grid = lead_grid(horizon)
    if spec.costly == 1 and len(grid) > _COSTLY_LEADS:
        at = np.unique(np.round(np.linspace(0, len(grid) - 1, _COSTLY_LEADS)).astype(int))
        return tuple(grid[k] for k in at)
    return grid


def _value(parts: Sequence[Choice], steps_of: Callable[[str], Floats], step: int, column: int) -> float:
    """Return the last value, moved by each choice in turn by its share towards its model's forecast."""
    value = float(steps_of("naive")[step - 1, column])
    for choice in parts:
        if choice.share > 0:
            value += choice.share * (_towards(choice, steps_of, step, column) - value)
    return value


def _towards(choice: Choice, steps_of: Callable[[str], Floats], step: int, column: int) -> float:
    if choice.model not in ENSEMBLES:
        return float(steps_of(choice.model)[step - 1, column])
    weights = choice.weights[choice.model]
    values = np.array([steps_of(name)[step - 1, column] for name in weights])
    if choice.model == "ensemble-median":
        return float(np.median(values))
    return float(values @ np.array(list(weights.values())))
