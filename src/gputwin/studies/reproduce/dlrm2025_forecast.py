"""Forecasts of the DLRM 2025 trace's demand beside figures others reached on it.

Arrivals: new requests summed per 5 minutes on creation time, one step ahead, last 20 % as test, RMSE over the mean of
the test's values. In force: requests of instances alive, beside the last value. The reference figures were measured with
each method's public implementation; the plain multivariate LSTM with look-back 12 is the one of a public notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from gputwin.forecasting.backtest import Backtest, backtest, schedule
from gputwin.forecasting.combine import AUTO, combine
from gputwin.forecasting.conformal import band
from gputwin.forecasting.demand import demand
from gputwin.forecasting.metrics import concentration, relative_rmse, rmse
from gputwin.forecasting.models._model import MODELS, floor_of
from gputwin.traces.dataset import Trace
from gputwin.traces.locate import open_trace

RESOURCES = ("cpu", "gpu", "memory", "rdma", "disk")
PUBLISHED: dict[str, tuple[float, ...]] = {
    "zero": (2.67, 6.37, 2.67, 5.08, 2.43),
    "mean": (2.48, 6.30, 2.47, 5.05, 2.22),
    "naive": (2.96, 8.67, 2.95, 6.91, 2.80),
    "tsb": (2.36, 6.26, 2.36, 4.96, 2.14),
    "auto-arima": (2.30, 6.23, 2.30, 4.96, 2.13),
    "lightgbm-tweedie": (2.29, 6.24, 2.28, 4.94, 2.10),
    "lstm-baseline": (2.28, 6.21, 2.27, 5.05, 2.13),
    "ensemble-stack": (2.28, 6.17, 2.27, 4.92, 2.10),
}
"""RMSE over mean of arrivals; the last row is the reference's own ensemble of ARIMA, LightGBM, window mean and LSTM."""
FIXED = ("zero", "mean", "naive")
"""Fitted once, before the test part, as the reference has them."""
TARGETS = ("arrivals", "in-force")
LEADS = {1: "5 min", 12: "1 h", 288: "1 day"}
TEST_SHARE = 0.2
COVERAGE = 0.8


@dataclass(frozen=True)
class ForecastReproduction:
    """Arrivals: `method`, `resource`, `ours`, `published`, `coverage`, `worst_share`; in force: over the last value."""

    arrivals: pl.DataFrame
    in_force: pl.DataFrame
    chosen: pl.DataFrame
    cpu_seconds: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return {
            "arrivals": self.arrivals.to_dicts(),
            "in_force": self.in_force.to_dicts(),
            "chosen": self.chosen.to_dicts(),
            "cpu_seconds": self.cpu_seconds,
        }


def reproduce(
    path: Path | Trace,
    *,
    neural: bool = False,
    targets: Sequence[str] = TARGETS,
    leads: Sequence[int] = tuple(LEADS),
    progress: Callable[[str], None] = lambda step: None,
) -> ForecastReproduction:
    """Return our figures beside the published ones; the neural models take a few minutes more."""
    trace = path if isinstance(path, Trace) else open_trace(str(path), progress=progress)
    seconds: dict[str, float] = {}
    arrivals, in_force, chosen = pl.DataFrame(), pl.DataFrame(), []
    if "arrivals" in targets:
        arrivals, some = _arrivals(trace, neural, seconds, progress)
        chosen.append(some)
    if "in-force" in targets:
        in_force, some = _in_force(trace, leads, seconds, progress)
        chosen.append(some)
    return ForecastReproduction(arrivals, in_force, pl.concat(chosen), seconds)


def _names(neural: bool, trace_series: Any) -> list[str]:
    return [s.name for s in MODELS if s.is_default and s.suits(trace_series) and (neural or s.extra != "neural")]


def _arrivals(
    trace: Trace, neural: bool, seconds: dict[str, float], progress: Callable[[str], None]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    series = demand(trace, "arrivals", resources=RESOURCES)
    plan = schedule(len(series), TEST_SHARE)
    tested = backtest(series, (1,), _names(neural, series.head(plan.first)), plan=plan, skip=True, progress=progress)
    seconds |= {f"arrivals, {m}": s for m, s in tested.cpu_seconds.items()}
    fixed = backtest(series, (1,), FIXED, plan=schedule(len(series), TEST_SHARE, test_refits=1))
    tested, choices = combine(tested)
    rows = []
    at = tested.rows(1, test=True)
    floor = floor_of(series.head(plan.test))
    for name in tested.forecasts:
        made = (fixed if name in FIXED else tested).forecasts[name][:, 0]
        actual = tested.actuals[:, 0]
        ours = relative_rmse(actual[at], made[at])
        worst = concentration(actual[at] - made[at])
        for j, resource in enumerate(RESOURCES):
            held = band(made[:, j], actual[:, j], 1, int(at[0]), COVERAGE, floor[j])
            published = PUBLISHED[name][j] if name in PUBLISHED else None
            rows.append(
                {
                    "method": name,
                    "resource": resource,
                    "ours": float(ours[j]),
                    "published": published,
                    "coverage": held.coverage,
                    "worst_share": float(worst[j]),
                }
            )
    return pl.DataFrame(rows, schema_overrides={"published": pl.Float64}), _chosen("arrivals", choices)


def _in_force(
    trace: Trace, leads: Sequence[int], seconds: dict[str, float], progress: Callable[[str], None]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    series = demand(trace, "in-force", resources=RESOURCES)
    plan = schedule(len(series), TEST_SHARE)
    tested = backtest(series, leads, _names(False, series.head(plan.first)), plan=plan, skip=True, progress=progress)
    seconds |= {f"in force, {m}": s for m, s in tested.cpu_seconds.items()}
    tested, choices = combine(tested)
    return against_naive(tested, tuple(tested.forecasts)), _chosen("in-force", choices)


def against_naive(tested: Backtest, models: Sequence[str], references: Sequence[str] = ("naive",)) -> pl.DataFrame:
    """Return RMSE over the best reference's on the test part, per model, lead and series, and 80 % coverage."""
    rows = []
    floor = floor_of(tested.series.head(tested.schedule.test))
    for i, lead in enumerate(tested.leads):
        at = tested.rows(lead, test=True)
        for j, name in enumerate(tested.series.names):
            actual = tested.actuals[:, i, j]
            base = min(float(rmse(actual[at] - tested.forecasts[r][at, i, j])) for r in references)
            for model in models:
                made = tested.forecasts[model][:, i, j]
                held = band(made, actual, lead, int(at[0]), COVERAGE, floor[j])
                rows.append(
                    {
                        "model": model,
                        "lead": lead,
                        "series": name,
                        "ratio": float(rmse(actual[at] - made[at])) / base if base > 0 else 1.0,
                        "relative_rmse": float(relative_rmse(actual[at], made[at])),
                        "coverage": held.coverage,
                    }
                )
    return pl.DataFrame(rows)


def _chosen(target: str, choices: Any) -> pl.DataFrame:
    return pl.DataFrame(
        [{"target": target, "series": c.series, "lead": c.lead, "model": c.model, "best": c.best} for c in choices]
    )


def worst_gap(arrivals: pl.DataFrame, method: str = AUTO, *, singles: bool = True) -> float:
    """Return by how much `method` is at most above the best reference figure of any resource, as a share.

    With `singles` the reference's ensemble is left out.
    """
    rows = [row for name, row in PUBLISHED.items() if not (singles and name == "ensemble-stack")]
    best = {r: min(row[j] for row in rows) for j, r in enumerate(RESOURCES)}
    return max(float(r["ours"]) / best[r["resource"]] - 1 for r in arrivals.filter(method=method).to_dicts())
