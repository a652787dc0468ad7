"""The load that a synthetic trace offers its own cluster: GPUs asked for over GPUs there are, if nobody had to wait.

A task holds its GPUs from its arrival for as long as it ran; one whose arrival is not known was there when the record
began, one without an end is there until the last time in the trace. Tasks that never started are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.units import HOUR, WHOLE_GPU_MILLI
from gputwin.traces.measures import ARRIVAL, RUNTIME
from gputwin.traces.synthetic.distributions import Floats

_WEEK_HOURS = 7 * 24
_GPUS = (
    pl.col("instances").cast(pl.Float64) * pl.col("gpu_count") * pl.col("gpu_milli").fill_null(WHOLE_GPU_MILLI)
) / WHOLE_GPU_MILLI


@dataclass(frozen=True)
class OfferedLoad:
    """Loads as shares of all GPUs, from the first arrival to the last; weeks are None where there is no whole one.

    `work` is what arrives per GPU and second, whenever it is done. `mean` is less where the trace begins with no task
    running and is not much longer than its long tasks.
    """

    work: float
    mean: float
    lowest_week: float | None
    highest_week: float | None
    highest_hour: float
    longest_above_hours: int
    models: Mapping[str, float]

    @property
    def highest_model(self) -> float | None:
        """Return the mean load of the GPU model that has the highest; None where tasks state no model."""
        return max(self.models.values(), default=None)


def offered_load(tables: Mapping[str, pl.DataFrame]) -> OfferedLoad | None:
    """Return the load that `tasks` offer to `nodes`; None where there are no GPUs or arrivals span less than an hour."""
    nodes = tables.get("nodes")
    gpus = 0 if nodes is None else int(nodes["gpu_count"].sum())
    arrival = tables["tasks"].select(ARRIVAL)["arrival_time"].drop_nulls().to_numpy()
    if nodes is None or not gpus or not len(arrival) or np.ptp(arrival) < HOUR:
        return None
    first, last = float(arrival.min()), float(arrival.max())
    held = _held(tables["tasks"], first)
    by_hour = np.diff(_work_until(held, np.arange(first, last, HOUR))) / (HOUR * gpus)
    weeks = np.convolve(by_hour, np.full(_WEEK_HOURS, 1.0 / _WEEK_HOURS), mode="valid")
    whole = len(by_hour) >= _WEEK_HOURS
    return OfferedLoad(
        work=held.select(pl.col("gpus").dot(pl.col("end") - pl.col("begin"))).item() / ((last - first) * gpus),
        mean=_mean(held, first, last) / gpus,
        lowest_week=float(weeks.min()) if whole else None,
        highest_week=float(weeks.max()) if whole else None,
        highest_hour=float(by_hour.max(initial=0.0)),
        longest_above_hours=_longest(by_hour > 1.0),
        models={
            model: _mean(held.filter(pl.col("gpu_model") == model), first, last) / of_model
            for model, of_model in nodes.group_by("gpu_model", maintain_order=True)
            .agg(pl.col("gpu_count").sum())
            .rows()
            if of_model and model is not None and model in held["gpu_model"]
        },
    )


def _held(tasks: pl.DataFrame, first: float) -> pl.DataFrame:
    """Return from when until when each task asks for how many GPUs, and of which model."""
    last = tasks.select(pl.max_horizontal(pl.col("end_time", "start_time", "submit_time").max())).item()
    begin = ARRIVAL.fill_null(first)
    return (
        tasks.lazy()
        .filter(pl.col("gpu_count") > 0)
        .select(
            begin.alias("begin"),
            pl.when(pl.col("is_running"))
            .then(pl.lit(last))
            .otherwise(pl.when(ARRIVAL.is_null()).then(pl.col("end_time")).otherwise(begin + RUNTIME))
            .alias("end"),
            _GPUS.alias("gpus"),
            "gpu_model",
        )
        .drop_nulls(["end"])
        .collect()
    )


def _mean(held: pl.DataFrame, first: float, last: float) -> float:
    """Return how many GPUs are asked for on average between two times."""
    before, after = _work_until(held, np.array([first, last]))
    return float(after - before) / (last - first)


def _work_until(held: pl.DataFrame, times: Floats) -> Floats:
    """Return the GPU-seconds asked for until each time."""
    gpus = held["gpus"].to_numpy()

    def since(moments: Floats) -> Floats:
        order = np.argsort(moments)
        count = np.searchsorted(moments[order], times)
        amount = np.concatenate([[0.0], np.cumsum(gpus[order])])
        at = np.concatenate([[0.0], np.cumsum(gpus[order] * moments[order])])
        return np.asarray(amount[count] * times - at[count])

    return since(held["begin"].to_numpy()) - since(held["end"].to_numpy())


def _longest(flags: NDArray[np.bool_]) -> int:
    """Return the length of the longest run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return int(np.diff(edges)[::2].max(initial=0))
