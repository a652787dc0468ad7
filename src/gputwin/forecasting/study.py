"""From a trace to a judged forecast: series, backtest of every model, `auto`, the forecast itself and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.units import DAY, HOUR, MINUTE, format_duration
from gputwin.forecasting.backtest import Backtest, backtest, schedule
from gputwin.forecasting.combine import AUTO, ENSEMBLES, OBVIOUS, Choice, choose, combine
from gputwin.forecasting.conformal import residual_quantiles
from gputwin.forecasting.demand import demand
from gputwin.forecasting.frame import DEFAULT_LEVELS, Forecast, forecast_frame
from gputwin.forecasting.models._model import MODELS, Model, Spec, floor_of, lead_grid
from gputwin.forecasting.scores import calibration, score, verdicts
from gputwin.forecasting.series import DemandSeries, Floats, Target
from gputwin.forecasting.tuning import Tuning, tune
from gputwin.traces.dataset import Trace

_REFERENCES = ("naive", "mean", "zero")
_MOST_LEADS = 3
_COSTLY_LEADS = 6


@dataclass(frozen=True)
class ForecastStudy:
    """A forecast and what speaks for it."""

    series: DemandSeries
    tested: Backtest
    choices: tuple[Choice, ...]
    scores: pl.DataFrame
    calibration: pl.DataFrame
    forecast: Forecast
    models: Mapping[str, Model]
    """The fitted models behind the forecast."""
    verdicts: tuple[str, ...]
    tunings: tuple[Tuning, ...] = ()
    curves: Mapping[str, Any] = field(default_factory=dict)
    """Neural model → its learning curve when it was fitted for the test part."""

    def spans(self) -> dict[int, str]:
        """Return each tested lead as people say it."""
        return {lead: span_words(lead * self.series.bin_seconds) for lead in self.tested.leads}

    def record(self) -> dict[str, Any]:
        """Return what was chosen, tuned and left out, as plain data."""
        return {
            "target": str(self.series.target),
            "bin_seconds": self.series.bin_seconds,
            "bins": len(self.series),
            "test_bins": self.tested.schedule.end - self.tested.schedule.test,
            "missing_bins": int((~self.series.known()).sum()),
            "notes": list(self.series.notes),
            "verdicts": list(self.verdicts),
            "choices": [
                {
                    "series": c.series,
                    "horizon_seconds": c.lead * self.series.bin_seconds,
                    "model": c.model,
                    "best_on_the_past": c.best,
                    "past_rmse_over_naive": c.past_ratio,
                    "weights": dict(c.weights.get(c.model, {})),
                }
                for c in self.choices
            ],
            "tuning": [
                {
                    "model": t.model,
                    "best": dict(t.best.parameters),
                    "trials": [
                        {"parameters": dict(x.parameters), "score": x.score, "cpu_seconds": x.cpu_seconds}
                        for x in t.trials
                    ],
                }
                for t in self.tunings
            ],
            "left_out": dict(self.tested.skipped),
            "cpu_seconds": dict(self.tested.cpu_seconds),
        }

    def to_json(self) -> dict[str, Any]:
        """Return record, scores and forecast as plain data."""
        return {**self.record(), "scores": self.scores.to_dicts(), "forecast": self.forecast.frame.to_dicts()}


def forecast(
    trace: Trace,
    target: Target | str = Target.ARRIVALS,
    *,
    horizon_seconds: float = HOUR,
    bin_seconds: float = 5 * MINUTE,
    resources: Sequence[str] = (),
    by: str | None = None,
    metric: str | None = None,
    models: Sequence[str] = (),
    neural: bool = False,
    test_share: float = 0.2,
    levels: Sequence[float] = DEFAULT_LEVELS,
    tune_models: Sequence[str] = (),
    tune_cpu_seconds: float = 120.0,
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> ForecastStudy:
    """Return the forecast of a trace's demand over the next `horizon_seconds`, with its backtest.

    Without `models`, all that suit the series take part; neural ones only with `neural`, since they take minutes.
    """
    progress("reading the demand")
    series = demand(trace, target, bin_seconds=bin_seconds, resources=resources, by=by, metric=metric)
    return forecast_series(
        series,
        horizon=series.steps(horizon_seconds),
        models=models,
        neural=neural,
        test_share=test_share,
        levels=levels,
        tune_models=tune_models,
        tune_cpu_seconds=tune_cpu_seconds,
        seed=seed,
        progress=progress,
    )


def forecast_series(
    series: DemandSeries,
    *,
    horizon: int,
    models: Sequence[str] = (),
    neural: bool = False,
    test_share: float = 0.2,
    levels: Sequence[float] = DEFAULT_LEVELS,
    tune_models: Sequence[str] = (),
    tune_cpu_seconds: float = 120.0,
    leads: Sequence[int] = (),
    seed: int = 0,
    progress: Callable[[str], None] = lambda step: None,
) -> ForecastStudy:
    """Return the forecast of the next `horizon` bins of a series, with its backtest at a few leads."""
    plan = schedule(len(series), test_share)
    leads = tuple(leads) or backtest_leads(horizon)
    if leads[-1] >= plan.end - plan.test:
        raise UserError(
            f"a horizon of {horizon} bins needs a test part of more; the last {test_share:.0%} have {plan.end - plan.test}"
        )
    history = series.head(plan.test)
    names = _names(series.head(plan.first), models, neural)
    tunings = tuple(
        tune(m, history, leads, cpu_seconds=tune_cpu_seconds, seed=seed, progress=progress) for m in tune_models
    )
    parameters: dict[str, dict[str, Any]] = {n: {"seed": seed} for n in names if _takes_seed(n)}
    for found in tunings:
        parameters.setdefault(found.model, {}).update(found.best.parameters)
    curves: dict[str, Any] = {}
    settings: dict[str, Any] = {"plan": plan, "parameters": parameters, "curves": curves, "skip": not models}
    tested = backtest(series, leads, names, progress=progress, **settings)
    tested, choices = combine(tested)
    progress("scoring")
    scores = score(tested, seed=seed)
    made, fitted = _final(tested, choices, horizon, levels, parameters, progress)
    spans = {lead: span_words(lead * series.bin_seconds) for lead in leads}
    return ForecastStudy(
        series=series,
        tested=tested,
        choices=choices,
        scores=scores,
        calibration=calibration(tested),
        forecast=made,
        models=fitted,
        verdicts=verdicts(scores, choices, spans),
        tunings=tunings,
        curves=curves,
    )


def backtest_leads(horizon: int) -> tuple[int, ...]:
    """Return the leads to backtest: the next step, the horizon, and their geometric middle."""
    middle = round(float(np.sqrt(horizon)))
    return tuple(sorted({1, middle, horizon}))[-_MOST_LEADS:]


def span_words(seconds: float) -> str:
    """Return a span as people say it: "5 min", "1 h", "1 day"."""
    for unit, word in ((DAY, "day"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= unit and seconds % unit == 0:
            count = round(seconds / unit)
            return f"{count} {word}{'s' if word == 'day' and count > 1 else ''}"
    return format_duration(seconds)


def _takes_seed(name: str) -> bool:
    return "seed" in MODELS.get(name).make().parameters()


def _names(history: DemandSeries, models: Sequence[str], neural: bool) -> list[str]:
    """Return the models to test, with the references always among them."""
    if models:
        specs = [MODELS.get(m) for m in dict.fromkeys((*models, *_REFERENCES))]
        return [s.name for s in specs if s.name in models or s.suits(history)]
    chosen = [s for s in MODELS if s.is_default and s.suits(history) and (neural or s.extra != "neural")]
    return [s.name for s in chosen]


def _final(
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
    def obvious_at(step: int) -> tuple[str, ...]:
        return _obvious_at(tested, step)

    mean = np.empty((horizon, len(series.names)))
    used: list[str] = []
    by_lead = {(c.series, c.lead): c for c in choices}
    for j, name in enumerate(series.names):
        taken = []
        for step in steps:
            lead = min(tested.leads, key=lambda known: (abs(np.log(known / step)), known))
            choice = by_lead[name, lead]
            if choice.model in OBVIOUS and step not in tested.leads:
                # At a whole day the last value and that of a day ago are one; half a day ahead they are not.
                choice = replace(choice, model=obvious_at(step)[j])
            taken.append(choice.model)
            mean[step - 1, j] = _mix(choice, steps_of, step, j)
        used.append(", ".join(dict.fromkeys(taken)))
    floor = floor_of(series)
    mean = np.maximum(mean, floor)
    errors = tested.actuals - tested.forecasts[AUTO]
    quantiles = residual_quantiles(mean, errors, tested.leads, steps, levels, floor)
    frame = forecast_frame(series, steps, used, mean, quantiles)
    origin = series.start_seconds + series.bin_seconds * len(series)
    made = Forecast(series.target, series.bin_seconds, origin, tuple(sorted(levels)), frame, series.notes)
    return made, fitted


def _obvious_at(tested: Backtest, step: int) -> tuple[str, ...]:
    """Return the obvious forecast that did best so far at this very step, per series; they cost next to nothing."""
    series = tested.series
    names = [n for n in OBVIOUS if n in tested.forecasts]
    origins = np.arange(tested.schedule.first, max(tested.schedule.first, len(series) - step) + 1, dtype=np.int64)
    origins = origins[origins + step <= len(series)]
    if len(origins) == 0:
        return ("naive",) * len(series.names)
    history = series.head(tested.schedule.first)
    made = [MODELS.get(n).make().fit(history, (step,)).predict_at(series, origins, (step,))[:, 0] for n in names]
    actual = series.values[origins + step - 1]
    table = np.stack(made, axis=2)
    return tuple(choose(table[:, j], actual[:, j], names)[0] for j in range(len(series.names)))


def _grid(spec: Spec, horizon: int) -> tuple[int, ...]:
    """Return the leads to fit for a whole fan; costly models learn fewer and lie on lines between."""
    grid = lead_grid(horizon)
    if spec.costly == 1 and len(grid) > _COSTLY_LEADS:
        at = np.unique(np.round(np.linspace(0, len(grid) - 1, _COSTLY_LEADS)).astype(int))
        return tuple(grid[k] for k in at)
    return grid


def _mix(choice: Choice, steps_of: Callable[[str], Floats], step: int, column: int) -> float:
    if choice.model not in ENSEMBLES:
        return float(steps_of(choice.model)[step - 1, column])
    weights = choice.weights[choice.model]
    values = np.array([steps_of(name)[step - 1, column] for name in weights])
    if choice.model == "ensemble-median":
        return float(np.median(values))
    return float(values @ np.array(list(weights.values())))
