"""The figures by which a published result is judged, as printed and as made here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

_LOAD = "130"
"""Arrived load in % at which placement policies are told apart best."""
Data = Mapping[str, Any]


class KeyFigure(NamedTuple):
    """What is compared, what was published, and what comes out here."""

    what: str
    published: str
    ours: str


def key_figures(name: str, data: Data) -> list[KeyFigure]:
    """Return the key figures of a result, from its data; none for one that has no published figures of its own."""
    return _FIGURES[name](data) if name in _FIGURES else []


def _fgd2023(data: Data) -> list[KeyFigure]:
    published = data["published_mean"]
    return [
        KeyFigure(
            f"{policy}: GPUs allocated at load {_LOAD} %",
            f"{published[policy][metric][_LOAD]:.2f} %",
            f"{loads[_LOAD]:.2f} %",
        )
        for policy, metrics in data["policies"].items()
        for metric, loads in list(metrics.items())[:1]
        if _LOAD in loads and _LOAD in published.get(policy, {}).get(metric, {})
    ]


def _gavel2020(data: Data) -> list[KeyFigure]:
    return [
        KeyFigure(
            f"{p['policy']}, {p['jobs_per_hour']:g} jobs/h: mean completion",
            f"{p['published_hours']:.2f} h",
            f"{p['mean_completion_hours']:.2f} h",
        )
        for p in data["points"]
    ]


def _tiresias60(data: Data) -> list[KeyFigure]:
    return [
        KeyFigure(
            f"{p['policy']}: mean completion",
            f"{p['published_mean_jct_seconds']:.2f} s",
            f"{p['mean_jct_seconds']:.2f} s",
        )
        for p in data["policies"]
    ]


def _pollux2021(data: Data) -> list[KeyFigure]:
    found = []
    for policy in dict.fromkeys(row["policy"] for row in data["completion"]):
        rows = [row for row in data["completion"] if row["policy"] == policy]
        ours, theirs = (sum(row[c] for row in rows) / len(rows) / 3600 for c in ("mean_seconds", "published_seconds"))
        found.append(KeyFigure(f"{policy}: mean completion, {len(rows)} workloads", f"{theirs:.3f} h", f"{ours:.3f} h"))
    return found


def _queueing_models(data: Data) -> list[KeyFigure]:
    rows = data["rows"]
    agreeing = sum(bool(row["agrees"]) for row in rows)
    return [KeyFigure("figures within the simulation's 99.9 % interval", f"{len(rows)}", f"{agreeing}")]


_FIGURES: Mapping[str, Callable[[Data], list[KeyFigure]]] = {
    "fgd2023": _fgd2023,
    "gavel2020": _gavel2020,
    "tiresias60": _tiresias60,
    "pollux2021": _pollux2021,
    "queueing-models": _queueing_models,
}
