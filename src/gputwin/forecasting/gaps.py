"""Samples per bin, and which bins have none: a bin without a sample is missing, not zero.

A missing bin holds the value before it, which is all that was known then. Models see the held value; errors at missing
bins are not counted, neither in tests nor as evidence for a choice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.units import format_duration
from gputwin.forecasting.series import Floats

HELD_STEPS = 3.0
"""Usual steps between an entity's samples for which its last value stands; after that the entity is gone."""
_RATES = ("_per_s", "_per_hour")
_RATES_BEGIN = "qps"


class Sampled(NamedTuple):
    """Total per bin over all entities, and whether the bin has no sample at all."""

    totals: Floats
    missing: NDArray[np.bool_]


def is_rate(metric: str) -> bool:
    """Return whether a metric counts events per time; sources leave out the windows in which an entity had none."""
    return metric.endswith(_RATES) or metric.startswith(_RATES_BEGIN)


def totals(samples: pl.DataFrame, start: float, width: float, bins: int, *, rate: bool) -> Sampled:
    """Return the mean of each entity's samples in the bin, summed over entities.

    Where others have samples but an entity has none, a rate counts it as zero; any other quantity holds the entity's
    last value for up to three of its usual steps between samples. Where nobody has a sample, the last total is held.
    """
    at = ((pl.col("time") - start) / width).floor().cast(pl.Int64).alias("bin")
    means = samples.group_by("entity", at).agg(pl.col("value").sort().mean()).sort("entity", "bin")
    sums = np.zeros(bins)
    if rate:
        np.add.at(sums, means["bin"].to_numpy(), means["value"].to_numpy())
    else:
        stands = _bins_held(samples, width)
        for part in means.join(stands, on="entity", how="left", nulls_equal=True).partition_by("entity"):
            first, value = part["bin"].to_numpy(), part["value"].to_numpy()
            # Live, nobody knows which sample is an entity's last.
            last = np.minimum(np.append(first[1:], bins), first + int(part["stands"][0])).clip(max=bins)
            length = np.maximum(last - first, 0)
            # Each bin takes one value as it is: sums of changes would leave dust beside zero.
            held = np.repeat(first - (np.cumsum(length) - length), length) + np.arange(length.sum())
            sums[held] += np.repeat(value, length)
    missing = np.ones(bins, dtype=bool)
    missing[means["bin"].to_numpy()] = False
    latest = np.maximum.accumulate(np.where(missing, 0, np.arange(bins)))
    return Sampled(sums[latest], missing)


def _bins_held(samples: pl.DataFrame, width: float) -> pl.DataFrame:
    """Return per entity the number of bins, at least one, for which a value stands."""
    step = pl.col("time").unique().sort().diff().median().fill_null(0.0)
    stands = (HELD_STEPS * step / width).ceil().clip(1.0, 1e9).cast(pl.Int64)
    return samples.group_by("entity").agg(stands.alias("stands"))


def missing_note(missing: NDArray[np.bool_], samples: pl.DataFrame, width: float) -> tuple[str, ...]:
    """Return how many bins are missing and what stands in for them; nothing where every bin has a sample."""
    if not missing.any():
        return ()
    note = (
        f"{int(missing.sum()):,} of {len(missing):,} bins have no sample: they are missing, not zero; "
        "the last value is held and errors there are not counted"
    )
    step = samples.select(pl.col("time").unique().sort().diff().median()).item()
    if step and step > width:
        note += f"; samples come every {format_duration(step)}, so choose bins at least that wide"
    return (note,)


def zero_note(counts: Floats, what: str, width: float) -> tuple[str, ...]:
    """Return how many bins of a log of events have none, and the longest run of them; nothing where all have one."""
    empty = (counts == 0).all(axis=1)
    if not empty.any():
        return ()
    edges = np.flatnonzero(np.diff(np.concatenate([[False], empty, [False]])))
    longest = int((edges[1::2] - edges[::2]).max())
    return (
        f"{int(empty.sum()):,} of {len(empty):,} bins have no {what} and count as zero (the longest run is "
        f"{format_duration(longest * width)}); a log of events does not distinguish quiet from not recorded",
    )
