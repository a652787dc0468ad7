"""Does a placement rule cause delay, or do those who use it differ? Differences within strata, with intervals.

The effect of one level of a rule against another is the difference of means within each stratum (role; role and
application), averaged with weights n₁n₀/(n₁+n₀). That is the least-squares coefficient of the level with one fixed
effect per stratum (Angrist, Econometrica 1998, eq. 8), so stratification and regression are one here. Strata that know
only one of the two levels say nothing and drop out: the table says how much is left.

Replicas of one application come and go together, so intervals resample whole applications (cluster bootstrap; Cameron,
Gelbach and Miller, Review of Economics and Statistics 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.analysis.frames import Frame, aggregate
from gputwin.core.rng import stream

if TYPE_CHECKING:
    from scipy.sparse import csr_array

REPLICATES = 400
FEWEST_CLUSTERS = 5
"""Below this many clusters that know both levels, no interval is given."""
OUTCOMES = ("wait", "has_waited")


class Effect(NamedTuple):
    """One level of a rule against the reference level, under one set of controls."""

    rule: str
    level: Any
    reference: Any
    outcome: str
    control: str
    estimate: float | None
    low: float | None
    high: float | None
    strata: int
    clusters: int
    tasks_compared: int
    tasks: int


def rule_means(frame: Frame, rule: str, by: Sequence[str] = ()) -> pl.DataFrame:
    """Return wait and runtime by level of a rule, and by `by`: `count`, `mean`, `p50`, `waited_share`, runtimes; s."""
    known = frame.filter(~nw.col("wait").is_null() & ~nw.col(rule).is_null())
    return aggregate(
        known.with_columns(_waited=(nw.col("wait") > 0).cast(nw.Float64)),
        [*by, rule],
        nw.len().alias("count"),
        nw.col("wait").mean().alias("mean"),
        nw.col("wait").quantile(0.5, "linear").alias("p50"),
        nw.col("_waited").mean().alias("waited_share"),
        nw.col("runtime").count().alias("complete"),
        nw.col("runtime").mean().alias("runtime_mean"),
        nw.col("runtime").quantile(0.5, "linear").alias("runtime_p50"),
    )


def rule_effects(
    frame: Frame, rule: str, reference: Any, controls: Sequence[Sequence[str]], cluster: str | None, *, seed: int = 0
) -> list[Effect]:
    """Return the effect of each level of `rule` against `reference` on waits, under each set of controls.

    On `wait` it is in s, on `has_waited` a difference of shares.
    """
    columns = list(dict.fromkeys(c for control in controls for c in control))
    names = [*columns, *([cluster] if cluster and cluster not in columns else [])]
    known = frame.filter(~nw.col("wait").is_null() & ~nw.col(rule).is_null())
    cells = aggregate(
        known.with_columns(has_waited=(nw.col("wait") > 0).cast(nw.Float64)),
        [rule, *names],
        nw.len().alias("n"),
        *(nw.col(y).sum().alias(y) for y in OUTCOMES),
    )
    cells = cells.with_columns(pl.col(pl.String).fill_null("unknown"))
    levels = [v for v in cells[rule].unique().sort() if v != reference]
    found = []
    for level in levels:
        pair = cells.filter(pl.col(rule).is_in([level, reference]))
        for control in controls:
            found += _compare(pair, rule, level, reference, control, cluster, seed)
    return found


def _compare(
    cells: pl.DataFrame, rule: str, level: Any, reference: Any, control: Sequence[str], cluster: str | None, seed: int
) -> list[Effect]:
    tasks = int(cells["n"].sum())
    is_level = pl.col(rule) == level
    if control:
        both = cells.group_by(control).agg(pl.col(rule).n_unique().alias("levels")).filter(pl.col("levels") == 2)
        both = both.sort(control)
        number = both.drop("levels").with_row_index("stratum")
        cells = cells.join(number, on=list(control), maintain_order="left")
    else:
        cells = cells.with_columns(pl.lit(0).alias("stratum"))
    strata = cells["stratum"].n_unique() if cells.height else 0
    if cluster is None or not cells.height:
        cells = cells.with_columns(pl.lit(0).alias("_cluster"))
    else:
        number = cells.select(cluster).unique().sort(cluster).with_row_index("_cluster")
        cells = cells.join(number, on=cluster, maintain_order="left")
    clusters = cells["_cluster"].n_unique() if cells.height else 0
    compared = int(cells["n"].sum())
    label = " and ".join(control) or "nothing"
    if not compared or cells.filter(is_level)["n"].sum() in (0, compared):
        none = (None, None, None, 0, 0, 0, tasks)
        return [Effect(rule, level, reference, outcome, label, *none) for outcome in OUTCOMES]
    rng = stream(seed, "cluster bootstrap", rule, str(level), label)
    weights = rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=REPLICATES).astype(np.float64)
    weights = np.vstack([np.ones(clusters), weights])
    parts = [cells.filter(is_level), cells.filter(~is_level)]
    counts = [_sums(part, "n", clusters, strata, weights) for part in parts]
    effects = []
    for outcome in OUTCOMES:
        totals = [_sums(part, outcome, clusters, strata, weights) for part in parts]
        estimates = _within(counts, totals)
        drawn = estimates[1:][np.isfinite(estimates[1:])]
        has_interval = clusters >= FEWEST_CLUSTERS and drawn.size >= REPLICATES // 2
        low, high = np.quantile(drawn, [0.025, 0.975]).tolist() if has_interval else (None, None)
        sizes = (strata, clusters, compared, tasks)
        effects.append(Effect(rule, level, reference, outcome, label, float(estimates[0]), low, high, *sizes))
    return effects


def _sums(
    cells: pl.DataFrame, column: str, clusters: int, strata: int, weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the column's sum in each stratum under each replicate's weights of the clusters."""
    from scipy.sparse import csr_array

    at = (cells["_cluster"].to_numpy().astype(np.int64), cells["stratum"].to_numpy().astype(np.int64))
    values = cells[column].to_numpy().astype(np.float64)
    matrix: csr_array = csr_array((values, at), shape=(clusters, strata))
    return np.asarray(weights @ matrix)


def _within(counts: list[NDArray[np.float64]], totals: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the weighted mean over strata of the difference of means, for each replicate."""
    (n1, n0), (y1, y0) = counts, totals
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where((n1 > 0) & (n0 > 0), n1 * n0 / (n1 + n0), 0.0)
        difference = np.where(weight > 0, y1 / n1 - y0 / n0, 0.0)
        return np.asarray((weight * difference).sum(axis=1) / weight.sum(axis=1))
