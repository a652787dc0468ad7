"""When work arrives: counts over time, burstiness at several scales, daily and weekly pattern."""

from __future__ import annotations

import math

import narwhals as nw
import numpy as np
import polars as pl

from gputwin.analysis.frames import Frame, aggregate
from gputwin.core.units import DAY, HOUR, MINUTE

SCALES = {"1 min": MINUTE, "5 min": 5 * MINUTE, "1 h": HOUR, "6 h": 6 * HOUR, "1 d": DAY}
_MOST_BINS = 5_000_000


def burstiness(frame: Frame, time: str = "arrival") -> pl.DataFrame:
    """Return how bursty arrivals are at each scale: `scale`, `mean` and `variance` of counts per bin, `dispersion`.

    `dispersion` is the index of dispersion of counts, variance over mean: 1 for a Poisson process at every scale,
    growing with the scale where bursts cluster. `peak_over_mean` is the fullest bin over the mean, `empty_share` the
    share of bins without arrivals, `lag_one` the correlation of neighbouring bins. Scales with fewer than 10 bins are
    left out.
    """
    known = frame.filter(~nw.col(time).is_null())
    seconds = aggregate(
        known.with_columns(_s=(nw.col(time) / MINUTE).floor().cast(nw.Int64)), ["_s"], nw.len().alias("n")
    )
    if seconds.height < 2:
        return pl.DataFrame()
    minute, count = seconds["_s"].to_numpy(), seconds["n"].to_numpy().astype(np.float64)
    minute = minute - minute[0]
    rows = []
    for name, width in SCALES.items():
        step = round(width / MINUTE)
        # Bins cut by the end of the trace would look quiet.
        bins = math.floor((minute[-1] + 1) / step)
        if not 10 <= bins <= _MOST_BINS:
            continue
        at = minute // step
        inside = at < bins
        counts = np.bincount(at[inside], weights=count[inside], minlength=bins)
        mean = float(counts.mean())
        centred = counts - mean
        variance = float((centred**2).mean())
        lag = float((centred[1:] * centred[:-1]).sum() / (centred**2).sum()) if variance > 0 else None
        rows.append(
            {
                "scale": name,
                "bins": bins,
                "mean": mean,
                "variance": variance,
                "dispersion": variance / mean if mean else None,
                "peak_over_mean": float(counts.max()) / mean if mean else None,
                "empty_share": float((counts == 0).mean()),
                "lag_one": lag,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def interarrival(frame: Frame, time: str = "arrival") -> pl.DataFrame:
    """Return the gaps between arrivals: `gaps`, `mean` s, `cv` (1 for a Poisson process), `together_share` (gap 0)."""
    known = frame.filter(~nw.col(time).is_null())
    times = aggregate(known, [time], nw.len().alias("n"))
    total = int(times["n"].sum())
    if total < 3:
        return pl.DataFrame()
    gaps, together = np.diff(times[time].to_numpy()), int((times["n"] - 1).sum())
    mean = float(gaps.sum()) / (total - 1)
    variance = float((gaps**2).sum()) / (total - 1) - mean**2
    cv = math.sqrt(max(variance, 0.0)) / mean if mean else None
    row = {"gaps": total - 1, "mean": mean, "cv": cv, "together_share": together / (total - 1)}
    return pl.DataFrame([row], infer_schema_length=None)


def hourly_pattern(frame: Frame) -> pl.DataFrame:
    """Return arrivals and requests in each local hour of the trace: `week`, `weekday`, `hour`, tasks, GPUs, cores, GiB.

    Sums of what tasks ask for in all (instances × request), by hour of arrival; hours without arrivals are absent.
    """
    known = frame.filter(~nw.col("hour").is_null())
    many = nw.col("instances")
    known = known.with_columns(_cores=nw.col("cpu_milli") * many / 1000, _gib=nw.col("memory_mib") * many / 1024)
    return aggregate(
        known,
        ["week", "weekday", "hour"],
        nw.len().alias("tasks"),
        nw.col("instances").sum().alias("instances"),
        nw.col("gpus").sum().alias("gpus"),
        nw.col("_cores").sum().alias("cores"),
        nw.col("_gib").sum().alias("gib"),
    )
