"""What a study says: which scenarios meet the targets, which none beats in everything, and which to choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from gputwin.core.units import format_duration
from gputwin.optimization.tuning.bandits import pareto
from gputwin.studies.comparison.compare import DURATIONS, LOWER_IS_BETTER, Comparison
from gputwin.studies.comparison.verdict import choice, recommendation

OBJECTIVES = ("mean wait", "p99 wait", "fairness", "stops", "cost", "energy")
_ALIKE = 1e-9


@dataclass(frozen=True)
class Verdict:
    """The conclusion of a study: `text` in words, labels that meet the targets, and labels on the Pareto front, which
    `front_text` speaks of.
    """

    text: str
    choice: str | None
    meets: tuple[str, ...]
    front: tuple[str, ...]
    objectives: tuple[str, ...]
    front_text: str


def verdict_of(compared: Comparison, limits: Mapping[str, float]) -> Verdict:
    """Return the conclusion: the scenario to choose among those that meet all limits, by cost, then by mean wait."""
    front, objectives = front_of(compared)
    more = _front_words(compared, front, objectives)
    meets = tuple(row["scenario"] for row in compared.means().to_dicts() if _meets(row, limits))
    if not limits:
        return Verdict(recommendation(compared), _chosen(compared), meets, front, objectives, more)
    asked = " and ".join(f"{name} {_bound(name)} {_said(name, limit)}" for name, limit in limits.items())
    if not meets:
        text = f"No scenario meets the target: {asked}. {_nearest(compared, limits)}"
        return Verdict(text, None, (), front, objectives, more)
    left = compared.only((compared.baseline, *(label for label in meets if label != compared.baseline)))
    chosen = _best(left, meets)
    row = _row(compared, chosen)
    reached = " and ".join(f"{name} is {_said(name, row[name])}" for name in limits)
    count = f"{len(meets)} of {len(compared.labels)} scenarios meet" if len(meets) > 1 else "It alone meets"
    why = "is the cheapest" if _varies(left, "cost") else "has the shortest mean wait of them"
    lead = f"Choose {chosen}: its {reached}. {count} the target {asked}"
    text = f"{lead}; this one {why}." if len(meets) > 1 else f"{lead}."
    return Verdict(text, chosen, meets, front, objectives, more)


def front_of(compared: Comparison) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the scenarios that no other beats in every objective, and the objectives: those that tell them apart."""
    means = compared.means()
    objectives = tuple(name for name in OBJECTIVES if _varies(compared, name))
    if not objectives:
        return compared.labels, ()
    signed = [means[name] * (1.0 if name in LOWER_IS_BETTER else -1.0) for name in objectives]
    on_front = pareto(np.column_stack([column.to_numpy() for column in signed]))
    return tuple(label for label, is_on in zip(means["scenario"], on_front, strict=True) if is_on), objectives


def _varies(compared: Comparison, metric: str) -> bool:
    """Return whether the metric is known for all scenarios and not the same for all."""
    values = compared.means()[metric]
    if values.null_count():
        return False
    low, high = float(values.min()), float(values.max())  # type: ignore[arg-type]
    return high - low > _ALIKE * max(abs(high), abs(low))


def _row(compared: Comparison, label: str) -> dict[str, float]:
    return compared.means().filter(pl.col("scenario") == label).row(0, named=True)


def _chosen(compared: Comparison) -> str:
    """Return the scenario that the recommendation names; the baseline where no wait is known."""
    is_known = compared.means()["mean wait"].is_not_null().any()
    return str(choice(compared)["scenario"]) if is_known else compared.baseline


def _best(compared: Comparison, among: tuple[str, ...]) -> str:
    rows = [r for r in compared.means().to_dicts() if r["scenario"] in among]
    by_cost = _varies(compared, "cost")
    return str(
        min(
            rows,
            key=lambda r: (r["cost"] if by_cost else 0.0, float("inf") if r["mean wait"] is None else r["mean wait"]),
        )["scenario"]
    )


def _meets(row: Mapping[str, float | None], limits: Mapping[str, float]) -> bool:
    def ok(name: str, limit: float) -> bool:
        value = row[name]
        return value is not None and (value <= limit if name in LOWER_IS_BETTER else value >= limit)

    return all(ok(name, limit) for name, limit in limits.items())


def _nearest(compared: Comparison, limits: Mapping[str, float]) -> str:
    """Return which scenario comes nearest to the first limit."""
    name = next(iter(limits))
    rows = [r for r in compared.means().to_dicts() if r[name] is not None]
    if not rows:
        return f"The {name} is not known."
    sign = 1.0 if name in LOWER_IS_BETTER else -1.0
    best = min(rows, key=lambda r: sign * r[name])
    return f"Nearest comes {best['scenario']}: its {name} is {_said(name, best[name])}. More nodes may help."


def _bound(metric: str) -> str:
    return "at most" if metric in LOWER_IS_BETTER else "at least"


def _said(metric: str, value: float) -> str:
    return format_duration(value) if metric in DURATIONS else f"{value:,.3g}"


def _front_words(compared: Comparison, front: tuple[str, ...], objectives: tuple[str, ...]) -> str:
    """Return what the Pareto front says beyond the choice; nothing where it is one scenario or all of them."""
    if len(objectives) < 2 or len(compared.labels) < 3:
        return ""
    of = f"{', '.join(objectives[:-1])} and {objectives[-1]}"
    if len(front) == 1:
        return f"No other scenario is better in any of {of}."
    return f"{len(front)} of {len(compared.labels)} scenarios are on the Pareto front of {of}."
