"""Runtimes of which some are not over: the Kaplan–Meier estimate beside the plain mean.

Kaplan and Meier, "Nonparametric Estimation from Incomplete Observations", JASA 1958. A task alive when the trace ends
is at risk until then and never counted as ended; dropping it, as a mean over complete rows does, keeps the short ones
and loses the long ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.analysis.frames import Frame, aggregate

_Z = 1.959963984540054


@dataclass(frozen=True)
class Survival:
    """The share still running after each time at which one ended, with Greenwood's standard error.

    `time` in s ascending, `share`, `error`; `last` is the longest time anybody was seen, s.
    """

    time: NDArray[np.float64]
    share: NDArray[np.float64]
    error: NDArray[np.float64]
    last: float

    def median(self) -> float | None:
        """Return the time after which at most half still run, s; None where more than half never end."""
        reached = np.flatnonzero(self.share <= 0.5)
        return float(self.time[reached[0]]) if reached.size else None

    def mean(self, until: float | None = None) -> float:
        """Return the mean of the runtime cut at `until` (the longest time seen), s: the area under the curve."""
        return float(self._areas(self.last if until is None else until).sum())

    def mean_error(self, until: float | None = None) -> float:
        """Return the standard error of that mean, s (Klein and Moeschberger, Survival Analysis, 2003, eq. 4.5.2)."""
        until = self.last if until is None else until
        remaining = self._areas(until)[::-1].cumsum()[::-1][1:]
        inside = self.time < until
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = (self.error / self.share) ** 2
        steps = np.diff(np.nan_to_num(variance, posinf=0.0), prepend=0.0).clip(min=0.0)
        # Scaled, so that squares of whatever a trace calls a duration stay finite.
        size = float(remaining.max(initial=0.0)) or 1.0
        return size * float(np.sqrt(((remaining[inside] / size) ** 2 * steps[inside]).sum()))

    def _areas(self, until: float) -> NDArray[np.float64]:
        edges = np.concatenate([[0.0], self.time.clip(max=until), [until]])
        heights = np.concatenate([[1.0], self.share])
        return np.asarray(heights * np.diff(edges).clip(min=0.0))


def kaplan_meier(time: NDArray[np.float64], ended: NDArray[np.float64], left: NDArray[np.float64]) -> Survival:
    """Return the estimate from counts: at each distinct `time`, s, how many `ended` and how many were `left` alive."""
    order = np.argsort(time, kind="stable")
    time, ended, left = time[order], ended[order].astype(np.float64), left[order].astype(np.float64)
    gone = ended + left
    at_risk = gone[::-1].cumsum()[::-1]
    happened = ended > 0
    d, n = ended[happened], at_risk[happened]
    share = np.cumprod(1 - d / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        error = np.nan_to_num(share * np.sqrt(np.cumsum(d / (n * (n - d)))), nan=0.0, posinf=0.0)
    return Survival(time[happened], share, error, float(time[-1]) if time.size else 0.0)


def runtime_survival(frame: Frame, by: Sequence[str] = ()) -> dict[tuple[object, ...], Survival]:
    """Return the Kaplan–Meier estimate of runtimes of each group of prepared tasks (`at_risk`, `ended`)."""
    known = frame.filter(~nw.col("at_risk").is_null() & (nw.col("at_risk") >= 0))
    for column in by:
        known = known.filter(~nw.col(column).is_null())
    counts = aggregate(known, [*by, "at_risk"], nw.col("ended").sum().alias("ended"), nw.len().alias("seen"))
    parts = counts.partition_by(list(by), as_dict=True) if by else {(): counts}
    return {
        key: kaplan_meier(
            part["at_risk"].to_numpy(), part["ended"].to_numpy(), (part["seen"] - part["ended"]).to_numpy()
        )
        for key, part in parts.items()
        if part.height
    }


def survival_table(frame: Frame, by: Sequence[str] = ()) -> pl.DataFrame:
    """Return plain and Kaplan–Meier runtimes by group, s.

    `tasks` seen running, `censored` of them alive at the end, `mean` and `p50` of the complete ones, `km_mean` (cut at
    `horizon`, the longest time seen) with its 95 % interval, `km_p50`.
    """
    known = frame.filter(~nw.col("at_risk").is_null())
    for column in by:
        known = known.filter(~nw.col(column).is_null())
    whole = nw.when(nw.col("ended") == 1).then(nw.col("at_risk"))
    plain = aggregate(
        known.with_columns(_whole=whole),
        by,
        nw.len().alias("tasks"),
        nw.col("ended").sum().alias("complete"),
        nw.col("_whole").mean().alias("mean"),
        nw.col("_whole").quantile(0.5, "linear").alias("p50"),
    )
    estimates = runtime_survival(frame, by)
    rows = []
    for row in plain.rows(named=True):
        s = estimates.get(tuple(row[c] for c in by))
        if s is None:
            continue
        mean, error = s.mean(), s.mean_error()
        rows.append(
            {
                **{c: row[c] for c in by},
                "tasks": row["tasks"],
                "censored": row["tasks"] - row["complete"],
                "mean": row["mean"],
                "p50": row["p50"],
                "km_mean": mean,
                "km_mean_low": max(mean - _Z * error, 0.0),
                "km_mean_high": mean + _Z * error,
                "km_p50": s.median(),
                "horizon": s.last,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def survival_curve(survival: Survival, most: int = 300) -> pl.DataFrame:
    """Return the curve at up to `most` of its times: `time` s, `share` still running, `low` and `high` (95 %)."""
    chosen = np.unique(
        np.linspace(0, max(len(survival.time) - 1, 0), min(len(survival.time), most)).round().astype(int)
    )
    time, share, error = survival.time[chosen], survival.share[chosen], survival.error[chosen]
    low, high = (share - _Z * error).clip(0, 1), (share + _Z * error).clip(0, 1)
    return pl.DataFrame({"time": time, "share": share, "low": low, "high": high})
