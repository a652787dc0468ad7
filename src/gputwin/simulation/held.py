"""How much of each GPU jobs hold: what they ask for, less where jobs that share a GPU ask for more than it has."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from gputwin.core.units import WHOLE_GPU_MILLI

DEMAND = "demand_milli"
"""Column of placements where jobs share GPUs whatever they ask for (time-slice, mps): what each asks for of a device. Their
`gpu_milli` is one of the device's places then, held whether others are taken or not."""
_DEVICE = ("node", "device")


def devices_held(segments: pl.DataFrame, placements: pl.DataFrame) -> pl.DataFrame:
    """Return segment, node, device, start and end (s) and the mean share held, a row per device of each instance."""
    times = segments.select("start_time", "end_time").with_row_index("segment")
    asked = DEMAND if DEMAND in placements.columns else "gpu_milli"
    rows = placements.filter(pl.col("gpu_count") > 0).join(times, on="segment", maintain_order="left")
    devices = rows["devices"].to_numpy().astype(np.uint64)
    most = int(devices.max()).bit_length() if devices.size else 0
    parts = []
    for device in range(max(most, 1)):
        here = (devices >> np.uint64(device)) & np.uint64(1) == 1
        part = rows.filter(pl.Series(here, dtype=pl.Boolean)).select(
            "segment", "node", pl.lit(device).alias("device"), "start_time", "end_time", pl.col(asked).alias("asked")
        )
        parts.append(part)
    held = pl.concat(parts)
    if asked == DEMAND:
        held = _divided(held)
    else:
        held = held.with_columns(share=pl.col("asked") / WHOLE_GPU_MILLI)
    return held.drop("asked")


def gpus_held(segments: pl.DataFrame, placements: pl.DataFrame) -> npt.NDArray[np.float64]:
    """Return how many GPUs each segment holds, on average over it."""
    if DEMAND in placements.columns:
        held = devices_held(segments, placements)
        return np.bincount(held["segment"].to_numpy(), held["share"].to_numpy(), segments.height).astype(np.float64)
    milli = placements["gpu_count"].to_numpy().astype(np.int64) * placements["gpu_milli"].to_numpy()
    return np.bincount(placements["segment"].to_numpy(), milli, segments.height) / WHOLE_GPU_MILLI


def _divided(held: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with the mean share held: what is asked for, in proportion where all ask for more than the device."""
    begins = held.select(*_DEVICE, time="start_time", change="asked")
    ends = held.select(*_DEVICE, time="end_time", change=-pl.col("asked"))
    part = 1.0 / pl.max_horizontal(pl.col("change").cum_sum() / WHOLE_GPU_MILLI, 1.0)
    until_next = (pl.col("time").shift(-1) - pl.col("time")).fill_null(0.0)
    clock = (
        pl.concat([begins, ends])
        .group_by(*_DEVICE, "time")
        .agg(pl.col("change").sum())
        .sort(*_DEVICE, "time")
        .with_columns((part * until_next).cum_sum().shift(1, fill_value=0.0).over(_DEVICE).alias("clock"))
        .drop("change")
    )
    for column in ("start", "end"):
        renamed = clock.rename({"time": f"{column}_time", "clock": f"_{column}"})
        held = held.join(renamed, on=(*_DEVICE, f"{column}_time"), how="left", maintain_order="left")
    seconds = pl.col("end_time") - pl.col("start_time")
    mean = pl.when(seconds > 0).then((pl.col("_end") - pl.col("_start")) / seconds).otherwise(1.0)
    return held.with_columns(share=pl.col("asked") / WHOLE_GPU_MILLI * mean).drop("_start", "_end")
