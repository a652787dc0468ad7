"""Rolling-origin backtest: every model forecasts from every origin with what was known then.

Models are fitted at a few origins (`refits`) on the rows before them and used, with updated history but unchanged
parameters, until the next. Nothing that a model, a scaler or an ensemble learns comes from after its refit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from gputwin.core.errors import UserError
from gputwin.core.extras import require
from gputwin.forecasting.models._model import MODELS, Spec, actuals_at, floor_of
from gputwin.forecasting.series import DemandSeries, Floats, Integers

PAST_SHARE = 0.5
"""Where walk-forward evidence begins, as a share of the part before the test."""
_FEWEST = 8


@dataclass(frozen=True)
class Schedule:
    """Which origins are forecast from, and where models are fitted anew; all are bins of the series."""

    first: int
    test: int
    """First bin of the test part: targets from here on are the test."""
    end: int
    refits: tuple[int, ...]
    rare_refits: tuple[int, ...]
    """Refits of costly models."""

    @property
    def origins(self) -> Integers:
        """Return every origin, one per bin."""
        return np.arange(self.first, self.end, dtype=np.int64)


def schedule(
    bins: int,
    test_share: float = 0.2,
    past_folds: int = 4,
    test_refits: int = 6,
    remedy: str = "use narrower bins or a longer trace",
) -> Schedule:
    """Return a schedule: the last `test_share` is the test, the half before it gives walk-forward evidence.

    `remedy` is what to do where the bins are too few for that.
    """
    if not 0 < test_share < 1:
        raise UserError(f"the test part must be a share between 0 and 1, not {test_share:g}")
    test = int(bins * (1 - test_share))
    first = max(1, int(test * PAST_SHARE))
    if test - first < _FEWEST or bins - test < 2:
        raise UserError(f"{bins} bins are too few for a backtest; {remedy}")
    past = [first + (test - first) * k // past_folds for k in range(past_folds)]
    later = [test + (bins - test) * k // test_refits for k in range(test_refits)]
    rare = (first, (first + test) // 2, test, (test + bins) // 2)
    return Schedule(first, test, bins, tuple(dict.fromkeys([*past, *later])), tuple(dict.fromkeys(rare)))


@dataclass(frozen=True)
class Backtest:
    """Forecasts of several models from the same origins: name → origins × leads × series, and what happened."""

    series: DemandSeries
    schedule: Schedule
    leads: tuple[int, ...]
    forecasts: Mapping[str, Floats]
    actuals: Floats
    cpu_seconds: Mapping[str, float] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Model → why it was left out."""

    def rows(self, lead: int, *, test: bool) -> Integers:
        """Return the rows (origins) whose target at this lead is known and lies in the test part, or before it."""
        target = self.schedule.origins + lead - 1
        within = (target >= self.schedule.test) & (target < self.schedule.end)
        if not test:
            within = target < self.schedule.test
        return np.flatnonzero(within & self.series.known()[np.minimum(target, len(self.series) - 1)])

    def with_forecasts(self, more: Mapping[str, Floats]) -> Backtest:
        """Return the backtest with more models in it."""
        return replace(self, forecasts={**self.forecasts, **more})


def backtest(
    series: DemandSeries,
    leads: Sequence[int],
    models: Sequence[str] | None = None,
    *,
    plan: Schedule | None = None,
    parameters: Mapping[str, Mapping[str, object]] | None = None,
    curves: dict[str, object] | None = None,
    skip: bool | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Backtest:
    """Return the forecasts of `models` (all that suit the series, when not given) at every origin of the plan.

    A model of an extra that is not installed, or that the history is too short for, is skipped and the reason kept; where
    models are named that is an error, unless `skip`. `curves` takes the learning curves of models that have one.
    """
    plan = plan or schedule(len(series))
    leads = tuple(sorted(set(leads)))
    if leads[0] < 1 or leads[-1] >= plan.end - plan.test:
        raise UserError(f"leads must lie between 1 and the {plan.end - plan.test} bins of the test part")
    history = series.head(plan.first)
    if not np.isfinite(series.values).all():
        raise UserError("the series has values that are not finite; fill or drop them first")
    if not series.known()[plan.test + leads[-1] - 1 :].any():
        raise UserError("no bin of the test part has a sample; use wider bins or a larger test part")
    specs = [s for s in MODELS if s.is_default and s.suits(history)]
    if models is not None:
        specs = [MODELS.get(m) for m in models]
    forecasts: dict[str, Floats] = {}
    seconds: dict[str, float] = {}
    skipped: dict[str, str] = {}
    for k, spec in enumerate(specs):
        step = f"backtest, model {k + 1} of {len(specs)}: {spec.name}"
        began = time.process_time()
        try:
            if spec.extra and spec.module:
                require(spec.module, extra=spec.extra)
            settings = dict((parameters or {}).get(spec.name, {}))
            forecasts[spec.name] = _walk(spec, settings, series, plan, leads, curves, partial(_tell, progress, step))
        except UserError as error:
            if not (models is None if skip is None else skip):
                raise
            skipped[spec.name] = str(error)
        seconds[spec.name] = time.process_time() - began
    actuals = actuals_at(series, plan.origins, leads)
    return Backtest(series, plan, leads, forecasts, actuals, seconds, skipped)


def _tell(progress: Callable[[str], None], step: str, part: str) -> None:
    progress(f"{step}, {part}")


def _walk(
    spec: Spec,
    settings: Mapping[str, object],
    series: DemandSeries,
    plan: Schedule,
    leads: Sequence[int],
    curves: dict[str, object] | None,
    progress: Callable[[str], None],
) -> Floats:
    """Return one model's forecasts at every origin: fitted at each refit, used until the next."""
    rarest = tuple(dict.fromkeys((plan.first, plan.test)))
    refits = (plan.refits, plan.rare_refits, rarest)[spec.costly]
    result = np.empty((plan.end - plan.first, len(leads), len(series.names)))
    for k, (at, stop) in enumerate(zip(refits, (*refits[1:], plan.end), strict=True)):
        progress(f"fit {k + 1} of {len(refits)}")
        history = series.head(at)
        model = spec.make(**settings).fit(history, leads)
        if curves is not None and at <= plan.test and hasattr(model, "curve_"):
            curves[spec.name] = model.curve_
        origins = np.arange(at, stop, dtype=np.int64)
        made = model.predict_at(series, origins, leads)
        result[at - plan.first : stop - plan.first] = np.maximum(made, floor_of(history))
    return result
