"""Forecasts one hour ahead of serving and spot traces, and what regularisation does for the networks.

    python -m benchmarks.forecasting DATA                 four public traces, RMSE over the better of the naive ones
    python -m benchmarks.forecasting DATA --ablation      dropout and early stopping, on and off

DATA is a folder with the publishers' files. Figures of this repository's docs come from here.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gputwin.cli.console import say, table
from gputwin.core.units import HOUR
from gputwin.forecasting.backtest import backtest, schedule
from gputwin.forecasting.combine import AUTO, combine
from gputwin.forecasting.demand import demand
from gputwin.forecasting.metrics import rmse
from gputwin.forecasting.models._model import MODELS
from gputwin.forecasting.series import DemandSeries
from gputwin.studies.reproduce.dlrm2025_forecast import against_naive
from gputwin.traces.locate import open_trace


class Case(NamedTuple):
    """One public trace and the series to forecast."""

    name: str
    file: str
    target: str
    metric: str | None
    bin_seconds: float


CASES = (
    Case("GenAI requests, 5 min", "alibaba_v2026_genai/lora_request_trace.csv.gz", "requests", None, 300.0),
    Case("ServeGen m-small, 10 min", "servegen/language_m-small_client_rates.csv.gz", "requests", None, 600.0),
    Case("ServeGen m-large, 10 min", "servegen/language_m-large_client_rates.csv.gz", "requests", None, 600.0),
    Case("Spot GPUs in force, 1 h", "alibaba_v2026_spot/hourly_concurrency.csv.gz", "metric", "active_gpus", 3600.0),
)
TEST_SHARE = 0.3
SHOWN = ("naive", "seasonal-naive", "ensemble-mean", "ensemble-stack", AUTO)
ABLATION = {
    "dropout and early stopping": {},
    "no dropout": {"dropout": 0.0, "weight_decay": 0.0},
    "no early stopping": {"patience": 0},
    "neither": {"dropout": 0.0, "weight_decay": 0.0, "patience": 0},
}


def series_of(data: Path, case: Case) -> DemandSeries:
    trace = open_trace(str(data / case.file))
    return demand(trace, case.target, metric=case.metric, bin_seconds=case.bin_seconds)


def hour_ahead(data: Path, neural: bool) -> None:
    rows = []
    for case in CASES:
        series = series_of(data, case)
        plan = schedule(len(series), TEST_SHARE)
        lead = series.steps(HOUR)
        names = [s.name for s in MODELS if s.is_default and s.suits(series.head(plan.first))]
        names = [n for n in names if neural or MODELS.get(n).extra != "neural"]
        began = time.process_time()
        tested, choices = combine(backtest(series, (lead,), names, plan=plan, skip=True))
        taken = time.process_time() - began
        scores = against_naive(tested, tuple(tested.forecasts), ("naive", "seasonal-naive"))
        at = {r["model"]: r for r in scores.to_dicts()}
        best = min((m for m in at if m not in (AUTO, *choices[0].weights)), key=lambda m: at[m]["ratio"])
        rows.append(
            [
                case.name,
                *(f"{at[m]['ratio']:.3f}" for m in SHOWN),
                choices[0].model,
                f"{best} {at[best]['ratio']:.3f}",
                f"{at[AUTO]['coverage']:.0%}",
                f"{taken:.0f} s",
            ]
        )
    columns = ["one hour ahead", *SHOWN, "auto took", "best single in hindsight", "80 % covers", "CPU"]
    table("RMSE over the better of naive and seasonal naive, last 30 %", columns, rows)


def ablation(data: Path) -> None:
    rows = []
    arrivals = demand(open_trace(str(data / "alibaba_v2025_dlrm/disaggregated_DLRM_trace.csv.gz")), "arrivals")
    for what, series, lead, share in (
        ("DLRM arrivals", arrivals, 1, 0.2),
        ("GenAI requests", series_of(data, CASES[0]), 12, TEST_SHARE),
    ):
        plan = schedule(len(series), share)
        for name, setting in ABLATION.items():
            curves: dict[str, object] = {}
            tested = backtest(
                series, (lead,), ["naive", "lstm"], plan=plan, parameters={"lstm": setting}, curves=curves
            )
            at = tested.rows(lead, test=True)
            actual = tested.actuals[at, 0]
            ratio = rmse(actual - tested.forecasts["lstm"][at, 0]) / rmse(actual - tested.forecasts["naive"][at, 0])
            curve = curves["lstm"]
            kept = curve.kept
            rows.append(
                [
                    what,
                    name,
                    f"{np.exp(np.mean(np.log(ratio))):.3f}",
                    f"{kept + 1} of {len(curve.train)}",
                    f"{curve.train[kept]:.3f}",
                    f"{curve.validation[kept]:.3f}",
                    f"{min(curve.validation):.3f}",
                ]
            )
    columns = ["series", "LSTM with", "RMSE over naive", "epoch kept", "training loss", "validation loss", "least"]
    table("What keeps the LSTM from overfitting (test RMSE: geometric mean over series)", columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--neural", action="store_true")
    options = parser.parse_args()
    if options.ablation:
        ablation(options.data)
    else:
        hour_ahead(options.data, options.neural)
    say()


if __name__ == "__main__":
    main()
