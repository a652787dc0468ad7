"""Is `auto` ever clearly worse than the last value? RMSE over the last value's, on series its settings were not chosen on.

    python -m benchmarks.auto DATA            public traces and made series, all default models but the networks
    python -m benchmarks.auto DATA --made     the made series alone; DATA is not read

DATA is a folder with the publishers' files. The last fifth of each series is the test. Made series that change their
nature in the test part are counted apart: what is lost before the change can be seen is lost.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gputwin.cli.console import say, table
from gputwin.forecasting.backtest import backtest, schedule
from gputwin.forecasting.combine import AUTO, ENSEMBLES, combine
from gputwin.forecasting.demand import demand
from gputwin.forecasting.metrics import rmse
from gputwin.forecasting.models._model import MODELS
from gputwin.forecasting.series import DemandSeries, Floats, Target
from gputwin.traces.locate import open_trace

PHILLY = "philly/philly_jobs_by_vc.csv.gz"
HELIOS = ("vc3sl", "vc6YE", "vcTJs", "vccaA", "vcgkz", "vcvlY")
REAL: tuple[tuple[str, str, str | None, float, tuple[int, ...]], ...] = (
    *((f"helios_earth/{vc}_sequence.csv.gz", "metric", "running_gpus", 600.0, (1, 6)) for vc in HELIOS),
    (PHILLY, "in-force", None, 3600.0, (1, 24)),
    (PHILLY, "arrivals", None, 3600.0, (1, 24)),
    ("thetagpu/thetagpu_jobs.csv.gz", "in-force", None, 1800.0, (1, 2)),
    ("servegen/language_m-small_client_rates.csv.gz", "requests", None, 600.0, (1, 6)),
    ("alibaba_v2026_genai/lora_request_trace.csv.gz", "requests", None, 1800.0, (1, 4)),
    ("mooncake/conversation_trace.jsonl.gz", "requests", None, 5.0, (1, 12)),
    ("alibaba_v2026_spot/hourly_summary.csv.gz", "metric", "submitted_jobs_per_hour", 3600.0, (1, 24)),
)
"""File, target, metric, bin (s) and leads; Helios's other clusters and other series served to choose settings."""
MADE = (
    "walk",
    "rare steps",
    "walk with heavy tails",
    "season",
    "walk and season",
    "quick return",
    "slow return",
    "regimes",
    "held levels",
    "bursts",
    "intermittent",
    "level shifts",
    "noise on a walk",
)
BREAKS = ("noise, then a walk", "season, then a walk")
SIZES = ((2, 1500), (3, 520))
"""Seed and bins of the made series."""
LEADS = (1, 6)


class Row(NamedTuple):
    """One series and lead: RMSE over the last value's, of `auto`, of the stack and of the best single model."""

    series: str
    lead: int
    bins: int
    auto: float
    stack: float
    best: str
    least: float
    left: float


def made(kind: str, seed: int, bins: int) -> Floats:
    """Return a made series in bins of an hour."""
    rng = np.random.default_rng(seed)
    noise, at = rng.normal(size=bins), np.arange(bins)
    season = 5 * np.sin(2 * np.pi * at / 24)
    stop = int(0.8 * bins)
    match kind:
        case "walk":
            return 200 + np.cumsum(noise)
        case "rare steps":
            return 500 + np.cumsum(10 * noise * (rng.random(bins) < 0.05))
        case "walk with heavy tails":
            return 1000 + np.cumsum(rng.standard_t(2, size=bins))
        case "season":
            return 20 + season + noise
        case "walk and season":
            return 100 + np.cumsum(0.5 * noise) + season
        case "quick return" | "slow return":
            keep, values = (0.7 if kind == "quick return" else 0.97), np.zeros(bins)
            for i in range(1, bins):
                values[i] = keep * values[i - 1] + noise[i]
            return 40 + values
        case "regimes" | "held levels":
            change = 0.01 if kind == "regimes" else 0.07
            levels = np.repeat(rng.uniform(0, 50, size=bins), rng.geometric(change, size=bins))[:bins]
            return 10 + levels + (0.5 * noise if kind == "regimes" else 0)
        case "bursts":
            return rng.poisson(2, bins) + np.where(rng.random(bins) < 0.01, 50 * rng.pareto(1.5, bins), 0)
        case "intermittent":
            return np.where(rng.random(bins) < 0.15, rng.gamma(2, 5, bins), 0)
        case "level shifts":
            return 50 + np.repeat(np.cumsum(10 * rng.normal(size=bins)), 100)[:bins] + 2 * noise
        case "noise on a walk":
            return 100 + np.cumsum(noise) + 2 * rng.normal(size=bins)
        case "noise, then a walk":
            return 20 + noise + np.where(at < stop, 0, np.cumsum(noise * (at >= stop)))
        case "season, then a walk":
            values = 20 + 1.2 * season + 0.5 * noise
            values[stop:] = values[stop] + np.cumsum(0.5 * noise[stop:])
            return values
    raise ValueError(kind)


def rows_of(name: str, series: DemandSeries, leads: tuple[int, ...]) -> Iterator[Row]:
    """Yield a row per series and lead with at least 100 test bins, fewer by the lead."""
    plan = schedule(len(series))
    names = [s.name for s in MODELS if s.is_default and s.extra != "neural" and s.suits(series.head(plan.first))]
    tested, choices = combine(backtest(series, leads, names, plan=plan, skip=True))
    for choice in choices:
        i, j = tested.leads.index(choice.lead), series.names.index(choice.series)
        at = tested.rows(choice.lead, test=True)
        error = {m: float(rmse(tested.actuals[at, i, j] - f[at, i, j])) for m, f in tested.forecasts.items()}
        if len(at) < 100 - choice.lead or not error["naive"]:
            continue
        ratio = {m: e / error["naive"] for m, e in error.items()}
        best = min((m for m in ratio if m not in (AUTO, *ENSEMBLES)), key=lambda m: ratio[m])
        what = f"{name}, {choice.series}" if len(series.names) > 1 else name
        yield Row(what, choice.lead, len(at), ratio[AUTO], ratio[ENSEMBLES[2]], best, ratio[best], choice.left)


def show(title: str, rows: list[Row]) -> None:
    """Print rows, the worst first, and what they come to."""
    columns = ["series", "lead", "test bins", "auto", "stack", "best single in hindsight", "left the last value"]
    cells = [
        [
            r.series,
            str(r.lead),
            f"{r.bins:,}",
            f"{r.auto:.3f}",
            f"{r.stack:.3f}",
            f"{r.best} {r.least:.3f}",
            f"{r.left:.0%}",
        ]
        for r in sorted(rows, key=lambda r: -r.auto)
    ]
    table(f"{title}: RMSE over the last value's", columns, cells)
    auto = np.array([r.auto for r in rows])
    mean, stack = (float(np.exp(np.mean(np.log(v)))) for v in (auto, [r.stack for r in rows]))
    say(
        f"{title}: {len(rows)} pairs of series and lead, worst {auto.max():.3f}, {int((auto > 1.02).sum())} above 1.02, "
        f"geometric mean {mean:.3f} (stack {stack:.3f})"
    )
    say()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--made", action="store_true")
    options = parser.parse_args()
    if not options.made:
        found: list[Row] = []
        for file, target, metric, width, leads in REAL:
            series = demand(open_trace(str(options.data / file)), target, metric=metric, bin_seconds=width)
            found += rows_of(f"{Path(file).name.split('.')[0]} {metric or target}", series, leads)
        show("Public traces", found)
    for title, kinds in (("Made series", MADE), ("Made series that change", BREAKS)):
        found = []
        for kind in kinds:
            for seed, bins in SIZES:
                values = np.maximum(made(kind, seed, bins), 0.0)[:, None]
                series = DemandSeries(Target.METRIC, (kind,), ("",), values, 3600.0)
                found += rows_of(f"{kind}, {bins:,} bins", series, LEADS)
        show(title, found)


if __name__ == "__main__":
    main()
