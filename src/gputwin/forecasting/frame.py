"""Forecast: what is expected per series and step, with quantiles; the one form other rooms take demand in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.atomic import atomic_directory
from gputwin.core.errors import InputError, UserError, shorten
from gputwin.forecasting.series import DemandSeries, Floats, Target

FORECAST_FILE = "forecast.json"
DEFAULT_LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)


@dataclass(frozen=True)
class Forecast:
    """A forecast: one row per series and step.

    Columns of `frame`: `series`, `unit`, `step` (1 = the bin that begins at the origin), `time` (s, start of the bin;
    a level is meant at the bin's end), `model`, `mean`, and one column per quantile level, as `q0.9`.
    """

    target: Target
    bin_seconds: float
    origin_seconds: float
    levels: tuple[float, ...]
    frame: pl.DataFrame
    notes: tuple[str, ...] = field(default=())

    def quantile(self, level: float) -> pl.DataFrame:
        """Return `series`, `time` and the quantile as `value`; levels between two known ones are interpolated."""
        if not self.levels or not self.levels[0] <= level <= self.levels[-1]:
            known = ", ".join(f"{x:g}" for x in self.levels)
            raise UserError(f"this forecast has no quantile {level:g}; it has: {known or 'none'}")
        above = int(np.searchsorted(self.levels, level))
        if self.levels[above] == level:
            return self.frame.select("series", "time", pl.col(column(level)).alias("value"))
        low, high = self.levels[above - 1], self.levels[above]
        share = (level - low) / (high - low)
        value = pl.col(column(low)) * (1 - share) + pl.col(column(high)) * share
        return self.frame.select("series", "time", value.alias("value"))

    def save(self, path: Path) -> None:
        """Write the forecast to the directory `path`, all or nothing."""
        with atomic_directory(path, marker=FORECAST_FILE) as folder:
            self.write(folder)

    def write(self, folder: Path) -> None:
        """Write the forecast into a folder that is there."""
        record = {
            "target": self.target,
            "bin_seconds": self.bin_seconds,
            "origin_seconds": self.origin_seconds,
            "levels": self.levels,
            "notes": self.notes,
        }
        (folder / FORECAST_FILE).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        self.frame.write_parquet(folder / "forecast.parquet")

    @classmethod
    def open(cls, path: Path) -> Forecast:
        """Return the forecast saved in the directory `path`."""
        try:
            record: dict[str, Any] = json.loads((path / FORECAST_FILE).read_text(encoding="utf-8"))
            frame = pl.read_parquet(path / "forecast.parquet")
            levels = tuple(float(x) for x in record["levels"])
            frame.select("series", "unit", "step", "time", "model", "mean", *map(column, levels))
            return cls(
                Target(record["target"]),
                float(record["bin_seconds"]),
                float(record["origin_seconds"]),
                levels,
                frame,
                tuple(record["notes"]),
            )
        except FileNotFoundError:
            raise InputError("not a saved forecast", file=path, remedy="make one with: gputwin forecast -o") from None
        except (ValueError, TypeError, KeyError, pl.exceptions.PolarsError) as error:
            raise InputError(f"damaged ({shorten(error, 200)})", file=path, remedy="forecast again") from None


def column(level: float) -> str:
    """Return the name of a quantile's column: 0.9 → "q0.9"."""
    return f"q{level:g}"


def forecast_frame(
    series: DemandSeries, steps: Sequence[int], models: Sequence[str], mean: Floats, quantiles: dict[float, Floats]
) -> pl.DataFrame:
    """Return the frame of a forecast made at the series' end; `mean` and quantiles are steps × series."""
    count, wide = mean.shape
    at = series.start_seconds + series.bin_seconds * (len(series) - 1 + np.asarray(steps, dtype=np.float64))
    return pl.DataFrame(
        {
            "series": np.repeat(np.array(series.names), count),
            "unit": np.repeat(np.array(series.units), count),
            "step": np.tile(np.asarray(steps, dtype=np.int64), wide),
            "time": np.tile(at, wide),
            "model": np.repeat(np.array(models), count),
            "mean": mean.T.ravel(),
            **{column(level): values.T.ravel() for level, values in quantiles.items()},
        }
    )
