"""How close a synthetic trace is to its original: quantiles side by side, and Kolmogorov–Smirnov distances, and its load."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from gputwin.core.percentiles import percentile
from gputwin.traces.dataset import Trace
from gputwin.traces.synthetic.distributions import Distribution, Floats
from gputwin.traces.synthetic.generator import Synthetic
from gputwin.traces.synthetic.load import offered_load
from gputwin.traces.synthetic.marginals import MARGINALS, STATISTICS, Tables
from gputwin.traces.synthetic.recipe import RECIPES, Load, utc_offset

Source = Synthetic | Trace | Tables
LOAD_ROW = "load: "
OF_GPUS = "of all GPUs"
_LONGEST_ABOVE = 12.0  # h: peaks above all GPUs last for hours, not for days

_SHOWN = {"p10": 0.1, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_SCHEMA = {
    "marginal": pl.String,
    "unit": pl.String,
    "source": pl.String,
    "rows": pl.Int64,
    "ks": pl.Float64,
    **{f"{name}{side}": pl.Float64 for name in ("mean", *_SHOWN) for side in ("", "_reference")},
}


def fidelity(source: Source, name: str | None = None) -> pl.DataFrame:
    """Return, per marginal, what a trace has next to what the original of the recipe called `name` is known to have.

    `ks` is the largest difference of the two distribution functions. Single published figures follow as rows of which
    only the mean is filled, then the load offered to the cluster (rows that begin with `LOAD_ROW`). A synthetic trace
    knows its recipe.
    """
    if name is None:
        if not isinstance(source, Synthetic):
            raise TypeError("fidelity() of tables needs the name of a recipe")
        name = source.name
    recipe = RECIPES.get(name)
    tables, _ = _opened(source)
    rows: list[Mapping[str, object]] = []
    for reference in recipe.references:
        marginal = MARGINALS[reference.marginal]
        values = marginal.values(tables, recipe.utc_offset)
        known = reference.distribution
        rows.append(
            {"marginal": marginal.name, "unit": marginal.unit, "source": reference.source, "rows": len(values)}
            | {"ks": ks_distance(values, known) if len(values) else None}
            | _summary(values, "")
            | {"mean_reference": known.mean}
            | {f"{n}_reference": float(known.quantile(np.array([p]))[0]) for n, p in _SHOWN.items()}
        )
    for figure in recipe.published:
        rows.append(
            {
                "marginal": figure.statistic,
                "source": figure.source,
                "rows": tables["tasks"].height,
                "mean": STATISTICS[figure.statistic](tables),
                "mean_reference": figure.value,
            }
        )
    rows += _load_rows(tables, recipe.load)
    return pl.DataFrame(rows, schema=_SCHEMA)


def _load_rows(tables: Tables, expected: Load) -> list[Mapping[str, object]]:
    """Return the load that the trace offers its cluster, next to what it is to lie within."""
    load = offered_load(tables)
    if load is None:
        return []
    figures: tuple[tuple[str, str, float | None, float | None, str], ...] = (
        ("arriving work", OF_GPUS, load.work, expected.work, expected.source),
        ("mean over the span", OF_GPUS, load.mean, None, ""),
        ("lowest week", OF_GPUS, load.lowest_week, expected.lowest_week, "at least"),
        ("highest week", OF_GPUS, load.highest_week, expected.highest_week, "at most"),
        ("highest hour", OF_GPUS, load.highest_hour, None, ""),
        ("longest time above 1", "h", float(load.longest_above_hours), _LONGEST_ABOVE, "at most"),
        *((f"mean on {model}", f"of {model} GPUs", mean, 1.0, "at most") for model, mean in load.models.items()),
    )
    return [
        {
            "marginal": f"{LOAD_ROW}{figure}",
            "unit": unit,
            "source": source,
            "rows": tables["tasks"].height,
            "mean": value,
            "mean_reference": reference,
        }
        for figure, unit, value, reference, source in figures
        if value is not None
    ]


def compare(source: Source, other: Source) -> pl.DataFrame:
    """Return, per marginal that both traces have, both traces' figures (`other` as reference) and their KS distance."""
    tables, offset = _opened(source)
    other_tables, other_offset = _opened(other)
    rows: list[Mapping[str, object]] = []
    for marginal in MARGINALS.values():
        values = marginal.values(tables, offset)
        against = marginal.values(other_tables, other_offset)
        if len(values) and len(against):
            rows.append(
                {"marginal": marginal.name, "unit": marginal.unit, "source": "other trace", "rows": len(values)}
                | {"ks": ks_distance_between(values, against)}
                | _summary(values, "")
                | _summary(against, "_reference")
            )
    return pl.DataFrame(rows, schema=_SCHEMA)


def _opened(source: Source) -> tuple[Tables, float]:
    """Return a trace's tables, and what to add to its times to read them as local time; zero for bare tables."""
    if isinstance(source, Synthetic):
        return source.tables, source.recipe.utc_offset
    if isinstance(source, Trace):
        origin = source.meta.origin_unix_seconds or 0.0
        return {"tasks": source.tasks, "nodes": source.nodes}, origin + utc_offset(source.meta.zone, origin)
    return source, 0.0


def ks_distance(values: Floats, reference: Distribution) -> float:
    """Return the largest distance of the sample's distribution function from the reference's, ties and atoms included.

    Both functions are compared on both sides of every point where either jumps or bends, so that a value which half of
    the sample shares counts as one jump, not as half the sample being out of place.
    """
    x, cumulative = _steps(values)
    points = np.union1d(x, reference.points)
    right = np.abs(_step_at(x, cumulative, points, "right") - reference.cdf(points, "right"))
    left = np.abs(_step_at(x, cumulative, points, "left") - reference.cdf(points, "left"))
    return float(max(right.max(), left.max()))


def ks_distance_between(a: Floats, b: Floats) -> float:
    """Return the largest distance between the distribution functions of two samples; ties count once."""
    xa, ca = _steps(a)
    xb, cb = _steps(b)
    points = np.union1d(xa, xb)
    return float(np.abs(_step_at(xa, ca, points, "right") - _step_at(xb, cb, points, "right")).max())


def _steps(values: Floats) -> tuple[Floats, Floats]:
    x, counts = np.unique(values, return_counts=True)
    return x, np.concatenate([[0.0], np.cumsum(counts) / len(values)])


def _step_at(x: Floats, cumulative: Floats, points: Floats, side: str) -> Floats:
    return cumulative[np.searchsorted(x, points, side="right" if side == "right" else "left")]


def _summary(values: Floats, suffix: str) -> dict[str, float]:
    if not len(values):
        return {}
    return {f"mean{suffix}": float(values.mean())} | {f"{n}{suffix}": percentile(values, q) for n, q in _SHOWN.items()}
