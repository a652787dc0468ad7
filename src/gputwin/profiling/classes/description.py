"""What a class of jobs is called and what sets it apart, from its most typical task and the spread of its members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.units import short_duration
from gputwin.profiling.jobs import Floats, Ints, Submitted
from gputwin.profiling.words import in_words

_MOST_TRAITS = 3
_TELLING = 0.3
"""How far a class's median lies from everybody's, in standard deviations, to be worth a word."""
_RANGE = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class JobClass:
    """One class: what it is called, how many tasks it has, its most typical task, and what sets it apart."""

    number: int
    name: str
    tasks: int
    share: float
    medoid_job: str
    ranges: dict[str, tuple[float, float, float]]
    """Feature → 10 %, 50 % and 90 % quantile among the class, in the feature's own unit."""
    distinguishing: tuple[str, ...]


def describe(
    jobs: Submitted, labels: Ints, columns: tuple[str, ...], rows: Floats, scaled: Floats, typical: Ints
) -> tuple[JobClass, ...]:
    """Return the description of each class; `typical` are the rows of their medoids."""
    middle = np.median(scaled, axis=0)
    result: list[JobClass] = []
    taken: set[str] = set()
    for k, medoid in enumerate(typical):
        members = np.flatnonzero(labels == k)
        task = jobs.frame.row(int(medoid), named=True)
        name = ", ".join([_kind(jobs.take(members)), *_request(task)])
        name = name if name not in taken else ", ".join([name, *_rest_of_request(task)])
        name = name if name not in taken else f"{name} ({k})"
        taken.add(name)
        result.append(
            JobClass(
                k,
                name,
                members.size,
                members.size / jobs.size,
                str(task["job_id"]),
                _ranges(columns, rows[members]),
                _traits(columns, np.median(scaled[members], axis=0) - middle),
            )
        )
    return tuple(result)


def _kind(members: Submitted) -> str:
    """Return the most frequent workload and role among the members."""
    kinds = (
        members.frame.select(pl.concat_str("workload", "role", separator=" ", ignore_nulls=True).alias("kind"))
        .group_by("kind")
        .len()
        .sort("len", "kind", descending=[True, False])
    )
    return str(kinds["kind"][0])


def _request(task: dict[str, Any]) -> list[str]:
    """Return a request in words: "0.5 GPU", "6 cores", "29 GiB"."""
    words = []
    if task["gpu_count"]:
        gpus = task["gpu_count"] * (1000 if task["gpu_milli"] is None else task["gpu_milli"]) / 1000
        words.append(f"{gpus:g} GPU{'s' if gpus > 1 else ''}")
    if task["cpu_milli"]:
        cores = task["cpu_milli"] / 1000
        words.append(f"{cores:g} core{'s' if cores != 1 else ''}")
    if task["memory_mib"]:
        words.append(f"{task['memory_mib'] / 1024:.3g} GiB")
    if (task["instances"] or 1) > 1:
        words.append(f"{task['instances']} instances")
    return words


def _rest_of_request(task: dict[str, Any]) -> list[str]:
    """Return the rarer parts of a request in words."""
    words = {
        "rdma_percent": "RDMA {:g} %",
        "max_per_node": "at most {:g} on a node",
        "disk_mib": "disk {:g} MiB",
        "priority": "priority {:g}",
    }
    said = [text.format(task[column]) for column, text in words.items() if task[column]]
    return [*said, f"{short_duration(asked)} asked for"] if (asked := task["requested_seconds"]) else said


def _traits(columns: tuple[str, ...], apart: Floats) -> tuple[str, ...]:
    """Return what the class has much more or much less of than others, the strongest first."""
    order = np.argsort(-np.abs(apart[: len(columns)]))[:_MOST_TRAITS]
    return tuple(
        f"{'high' if apart[i] > 0 else 'low'} {in_words(columns[i])}" for i in order if abs(apart[i]) > _TELLING
    )


def _ranges(columns: tuple[str, ...], rows: Floats) -> dict[str, tuple[float, float, float]]:
    """Return the quantiles of what is kept as logarithms, back in its own unit."""
    spread = np.quantile(rows, _RANGE, axis=0)
    found = {}
    for i, column in enumerate(columns):
        if column.startswith("log_"):
            low, middle, high = np.expm1(spread[:, i])
            found[column.removeprefix("log_")] = float(low), float(middle), float(high)
    return found
