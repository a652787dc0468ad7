"""Energy and carbon of a run: pure functions of its segments and placements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from gputwin.core.errors import InputError, UserError
from gputwin.simulation.held import devices_held
from gputwin.simulation.machines import numbered
from gputwin.simulation.power.capped_load import capped_load
from gputwin.simulation.power.caps import PowerCaps
from gputwin.simulation.power.devices import SERVER_WATTS, SERVER_WATTS_PER_GPU, gpu_power
from gputwin.traces.framefile import read_given_csv

Floats = npt.NDArray[np.float64]
JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True)
class Grid:
    """Carbon intensity of electricity, g/kWh, as a step function of time; the last value holds for ever."""

    times: Floats = field(default_factory=lambda: np.zeros(1))
    grams_per_kwh: Floats = field(default_factory=lambda: np.array([400.0]))

    def grams_of(self, watts: Floats, start: Floats, end: Floats) -> float:
        """Return the carbon of constant draws from `start` to `end`, g: exact, by the integral of the intensity."""
        return float((watts * (self._integral(end) - self._integral(start))).sum()) / JOULES_PER_KWH

    def _integral(self, at: Floats) -> Floats:
        step = np.clip(np.searchsorted(self.times, at, side="right") - 1, 0, None)
        until = np.concatenate([[0.0], np.cumsum(np.diff(self.times) * self.grams_per_kwh[:-1])])
        whole: Floats = until[step] + (at - self.times[step]) * self.grams_per_kwh[step]
        return whole


def read_grid(text: str) -> Grid:
    """Return the intensity given as a number, g/kWh, or as a CSV file with columns time_seconds, grams_per_kwh."""
    try:
        value = float(text)
    except ValueError:
        return _grid_file(Path(text))
    if not 0 <= value < np.inf:
        raise UserError(f"carbon intensity is {text} g/kWh; give 0 or more")
    return Grid(np.zeros(1), np.array([value]))


def _grid_file(path: Path) -> Grid:
    remedy = "give columns time_seconds, grams_per_kwh"
    frame = read_given_csv(path, remedy=remedy)
    try:
        frame = frame.select(pl.col("time_seconds", "grams_per_kwh").cast(pl.Float64)).sort("time_seconds")
    except pl.exceptions.PolarsError as error:
        first = str(error).splitlines()[0]
        raise InputError(f"not a carbon intensity ({first})", file=path, remedy=remedy) from None
    if not frame.height or frame.null_count().sum_horizontal().item() or (frame["grams_per_kwh"] < 0).any():
        raise InputError("carbon intensities must be there and 0 or more, g/kWh", file=path)
    return Grid(frame["time_seconds"].to_numpy(), frame["grams_per_kwh"].to_numpy())


@dataclass(frozen=True)
class Energy:
    """Energy of a run by what drew it, kWh, its carbon, kg, and GPU models whose draw is assumed."""

    servers_kwh: float
    idle_gpus_kwh: float
    contexts_kwh: float
    load_kwh: float
    carbon_kg: float
    span_seconds: float
    assumed_models: tuple[str, ...]

    @property
    def total_kwh(self) -> float:
        """Return all of it, kWh."""
        return self.servers_kwh + self.idle_gpus_kwh + self.contexts_kwh + self.load_kwh

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return {
            "energy_kwh": self.total_kwh,
            "servers_kwh": self.servers_kwh,
            "idle_gpus_kwh": self.idle_gpus_kwh,
            "contexts_kwh": self.contexts_kwh,
            "load_kwh": self.load_kwh,
            "mean_watts": self.total_kwh * JOULES_PER_KWH / self.span_seconds if self.span_seconds else 0.0,
            "carbon_kg": self.carbon_kg,
            "assumed_gpu_models": list(self.assumed_models),
        }


def energy_of(
    segments: pl.DataFrame,
    placements: pl.DataFrame,
    nodes: pl.DataFrame,
    *,
    limits: Mapping[str, float] | None = None,
    grid: Grid | None = None,
    caps: PowerCaps | None = None,
) -> Energy:
    """Return the energy of a run from its first start to its last end.

    Every node is on all the time and every GPU draws its bare idle; a GPU that some job holds has a context loaded; a
    job that holds a share of a GPU adds that share of the load. `limits` are power limits by GPU model, W, `caps` what
    nodes and racks may draw.
    """
    grid = grid or Grid()
    if not segments.height:
        return Energy(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, ())
    begin, end = float(segments["start_time"].min()), float(segments["end_time"].max())  # type: ignore[arg-type]
    models = nodes["gpu_model"].to_list()
    draws = [gpu_power(model) for model in models]
    counts = nodes["gpu_count"].fill_null(0).to_numpy()
    on = np.array([SERVER_WATTS + SERVER_WATTS_PER_GPU * c for c in counts])
    idle = np.array([d.idle_watts for d in draws]) * counts
    whole = (np.full(len(models), begin), np.full(len(models), end))
    held = _held(segments, placements)
    node = held["node"].to_numpy()
    context = np.array([d.context_watts - d.idle_watts for d in draws])
    capped = limits or {}
    load = np.array([d.draw(_limit(capped, m)) - d.context_watts for d, m in zip(draws, models, strict=True)])
    loaded = (load[node] * held["share"].to_numpy(), held["start_time"].to_numpy(), held["end_time"].to_numpy())
    if caps is not None and not caps.waits:
        loaded = capped_load(held, models, counts, numbered(nodes["rack"]), caps)
    parts = [
        (on, *whole),
        (idle, *whole),
        (context[node], held["fresh_start"].to_numpy(), held["end_time"].to_numpy()),
        loaded,
    ]
    servers, bare, contexts, loads = (float((w * (b - a)).sum()) / JOULES_PER_KWH for w, a, b in parts)
    carbon = sum(grid.grams_of(w, a, b) for w, a, b in parts) / 1000.0
    assumed = {m or "unnamed" for m, d, c in zip(models, draws, counts, strict=True) if d.is_assumed and c}
    return Energy(servers, bare, contexts, loads, carbon, end - begin, tuple(sorted(assumed)))


def _limit(limits: Mapping[str, float], model: str | None) -> float | None:
    return limits.get(model or "")


def _held(segments: pl.DataFrame, placements: pl.DataFrame) -> pl.DataFrame:
    """Return who held which device when, one row per device, and from when on nobody else had held it already."""
    held = devices_held(segments, placements).sort("node", "device", "start_time", "end_time")
    before = pl.col("end_time").cum_max().shift(1).over("node", "device")
    fresh = pl.min_horizontal(pl.max_horizontal("start_time", before), "end_time")
    return held.with_columns(fresh.alias("fresh_start"))
