"""Who holds what others wait for: GPU-hours of waiting, charged to the tenants that held GPUs at that time.

While a job that asks for g GPUs waits, each second of it counts g GPU-seconds. They are divided among the tenants in
proportion to the GPUs they hold in that second, of models the waiting job may use. A tenant's own jobs count too: it can
wait for itself. The charges for a job sum to its GPUs × wait, as long as anybody holds a GPU; else nobody is charged.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.units import HOUR

Floats = NDArray[np.float64]
OTHERS = "all others"
NOBODY = "nobody"
LARGEST = 20
"""Tenants that are told apart; the rest count as one."""
_MOST_MODEL_SETS = 32


def blocking(waits: pl.DataFrame, holds: pl.DataFrame, largest: int = LARGEST) -> pl.DataFrame:
    """Return `waiting` and `holding` tenant and the `gpu_hours` of waiting charged to the latter, most first.

    `waits`: tenant, start and end s, gpus, allowed (GPU models joined by '|', or null for any). `holds`: tenant, start
    and end s, gpus, model (or null where it is not known, which then suits every job).
    """
    waits = waits.filter((pl.col("end") > pl.col("start")) & (pl.col("gpus") > 0))
    holds = holds.filter((pl.col("end") > pl.col("start")) & (pl.col("gpus") > 0))
    names = _told_apart(waits, holds, largest)
    waits, holds = (f.with_columns(_code(names).alias("code")) for f in (waits, holds))
    charged = np.zeros((len(names) + 1, len(names) + 2))
    for some, suitable in _by_models(waits, holds):
        _charge(some, suitable, charged)
    labels = [*names, OTHERS, NOBODY]
    rows = [
        (labels[i], labels[j], float(charged[i, j]) / HOUR)
        for i in range(charged.shape[0])
        for j in range(charged.shape[1])
        if charged[i, j] > 1e-6 * HOUR
    ]
    schema = {"waiting": pl.String, "holding": pl.String, "gpu_hours": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").sort(
        ["gpu_hours", "waiting", "holding"], descending=[True, False, False]
    )


def _told_apart(waits: pl.DataFrame, holds: pl.DataFrame, largest: int) -> list[str]:
    """Return the tenants that wait or hold most, by GPU-seconds."""
    size = ((pl.col("end") - pl.col("start")) * pl.col("gpus")).sum().alias("size")
    both = pl.concat([f.group_by("tenant", maintain_order=True).agg(size) for f in (waits, holds)])
    ranked = both.group_by("tenant", maintain_order=True).agg(pl.col("size").max()).drop_nulls("tenant")
    return ranked.sort(["size", "tenant"], descending=[True, False])["tenant"].head(largest).to_list()


def _code(names: list[str]) -> pl.Expr:
    numbers = {name: k for k, name in enumerate(names)}
    return pl.col("tenant").replace_strict(numbers, default=len(names), return_dtype=pl.Int64)


def _by_models(waits: pl.DataFrame, holds: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield the waits of jobs that allow the same GPU models, and the holds on such GPUs."""
    frequent = waits["allowed"].drop_nulls().value_counts(sort=True).head(_MOST_MODEL_SETS)["allowed"].to_list()
    known = pl.when(pl.col("allowed").is_in(frequent)).then(pl.col("allowed"))
    for (allowed,), some in waits.with_columns(known.alias("allowed")).group_by(["allowed"], maintain_order=True):
        if allowed is None:
            yield some, holds
        else:
            models = str(allowed).split("|")
            yield some, holds.filter(pl.col("model").is_null() | pl.col("model").is_in(models))


def _charge(waits: pl.DataFrame, holds: pl.DataFrame, charged: Floats) -> None:
    """Add the GPU-seconds of waiting to `charged`, by tenant that waits and tenant that holds."""
    start, end, gpus = (waits[c].to_numpy().astype(np.float64) for c in ("start", "end", "gpus"))
    who = waits["code"].to_numpy()
    asked = np.bincount(who, gpus * (end - start), charged.shape[0])
    nobody = charged.shape[1] - 1
    if holds.is_empty():
        charged[:, nobody] += asked
        return
    moments = np.unique(np.concatenate([holds["start"].to_numpy(), holds["end"].to_numpy()]))
    codes = holds["code"].to_numpy()
    begin, over = (np.searchsorted(moments, holds[c].to_numpy()) for c in ("start", "end"))
    amount = holds["gpus"].to_numpy().astype(np.float64)
    in_all = _held(begin, over, amount, moments.size)
    since, past_since = _place(moments, start)
    until, past_until = _place(moments, end)
    each = np.divide(1.0, in_all, out=np.zeros(in_all.size), where=in_all > 1e-9)
    lasting, upto = np.diff(moments), np.zeros(moments.size)
    for code in np.unique(codes):
        of = np.flatnonzero(codes == code)
        share = _held(begin[of], over[of], amount[of], moments.size) * each
        np.cumsum(share[:-1] * lasting, out=upto[1:])
        # The share is constant between two moments, so its integral is linear there.
        seconds = upto[until] + share[until] * past_until - upto[since] - share[since] * past_since
        part = np.bincount(who, gpus * seconds, charged.shape[0])
        charged[:, code] += part
        asked -= part
    charged[:, nobody] += np.where(asked > 1e-6 * HOUR, asked, 0.0)


def _place(moments: Floats, times: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return the last moment before each time, and how long before it; times before the first moment count as it."""
    number = np.maximum(np.searchsorted(moments, times, side="right") - 1, 0)
    return number, np.maximum(times - moments[number], 0.0)


def _held(begin: NDArray[np.intp], over: NDArray[np.intp], amount: Floats, moments: int) -> Floats:
    """Return what is held from each of the moments to the next."""
    return np.cumsum(np.bincount(begin, amount, moments) - np.bincount(over, amount, moments))


def per_tenant(charges: pl.DataFrame) -> pl.DataFrame:
    """Return per tenant what it waits for others and for itself, and what others wait for it; GPU-hours."""
    own = pl.col("waiting") == pl.col("holding")
    waits = charges.group_by(pl.col("waiting").alias("tenant"), maintain_order=True).agg(
        pl.col("gpu_hours").sum().alias("waited_gpu_hours"),
        pl.col("gpu_hours").filter(~own).sum().alias("waits_for_others_gpu_hours"),
    )
    holds = charges.group_by(pl.col("holding").alias("tenant"), maintain_order=True).agg(
        pl.col("gpu_hours").filter(~own).sum().alias("others_wait_gpu_hours")
    )
    joined = waits.join(holds, on="tenant", how="full", coalesce=True)
    return joined.filter(pl.col("tenant") != NOBODY).with_columns(pl.exclude("tenant").fill_null(0.0))
