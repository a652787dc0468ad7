"""From a trace to a judged forecast: series, backtest of every model, `auto`, the forecast itself and a verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.display import Shown
from gputwin.core.errors import UserError
from gputwin.core.units import DAY, HOUR, MINUTE, format_duration, percent
from gputwin.forecasting.backtest import Backtest, backtest, schedule
from gputwin.forecasting.combine import Choice, combine
from gputwin.forecasting.demand import demand
from gputwin.forecasting.final import final_forecast
from gputwin.forecasting.frame import DEFAULT_LEVELS, Forecast
from gputwin.forecasting.models._model import MODELS, Model
from gputwin.forecasting.scores import calibration, score, verdicts
from gputwin.forecasting.series import DemandSeries, Target
from gputwin.forecasting.tuning import Tuning, tune
from gputwin.traces.dataset import Trace

_REFERENCES = ("naive", "mean", "zero")
_MOST_LEADS = 3


@dataclass(frozen=True, repr=False)
class ForecastStudy(Shown):
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

    def _title(self) -> str:
        return f"Forecast of {self.series.target} in bins of {span_words(self.series.bin_seconds)}"

    def _lines(self) -> list[str]:
        return list(self.verdicts)

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
                    "share": c.share,
                    "left_last_value": c.left,
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


_USUAL_BINS = (1.0, 5.0, 10.0, 15.0, 30.0, *(k * MINUTE for k in (1, 2, 5, 10, 15, 30)), HOUR)
_ENOUGH_BINS = 150


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


def _as_in(series: DemandSeries, test_share: float) -> str:
    """Return bins and a horizon with which as long a series can be tested; "" for one so short that there are none."""
    span = len(series) * series.bin_seconds
    width = max((w for w in _USUAL_BINS if w <= span / _ENOUGH_BINS), default=0.0)
    if not 0 < width < series.bin_seconds:
        return ""
    lead = max(int(_ENOUGH_BINS * test_share) // 3, 1)
    return f", as in --bin {_option(width)} --horizon {_option(lead * width)}"


def _option(seconds: float) -> str:
    """Return a duration as on the command line."""
    size, unit = next((n, u) for n, u in ((HOUR, "h"), (MINUTE, "m"), (1.0, "s")) if seconds % n == 0)
    return f"{seconds / size:g}{unit}"


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
    remedy = f"take a shorter horizon, narrower bins{_as_in(series, test_share)}, or a longer trace"
    plan = schedule(len(series), test_share, remedy=remedy)
    leads = tuple(leads) or backtest_leads(horizon)
    if leads[-1] >= plan.end - plan.test:
        raise UserError(
            f"a horizon of {horizon} bins is too long to be tested: the last {percent(test_share)} of the series have only "
            f"{plan.end - plan.test}; {remedy}"
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
    made, fitted = final_forecast(tested, choices, horizon, levels, parameters, progress)
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
