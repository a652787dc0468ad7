"""Slurm's multifactor priority of a job: a weighted sum of factors from 0 to 1, in whole numbers.

Slurm's documentation, "Multifactor Priority Plugin".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gputwin.core.units import DAY

MOST = 4294967295
"""The highest priority Slurm can write."""


@dataclass(frozen=True)
class PrioritySettings:
    """The settings of slurm.conf that make a priority; times in seconds, weights as Slurm has them."""

    age: float = 0.0
    assoc: float = 0.0
    fairshare: float = 0.0
    job_size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    tres: Mapping[str, float] = field(default_factory=dict)
    max_age: float = 7 * DAY
    decay_half_life: float = 7 * DAY
    calc_period: float = 300.0
    dampening: float = 1.0
    favor_small: bool = False
    fair_tree: bool = True
    max_tres: bool = False
    """Bill the largest of a job's weighted resources instead of their sum."""
    size_per_time: bool = False
    """Job size is divided by the time limit (SMALL_RELATIVE_TO_TIME)."""
    not_normal: frozenset[str] = frozenset()
    """Which of assoc, partition, qos and tres are taken as they are, not over the highest (NO_NORMAL_*)."""
    not_simulated: tuple[str, ...] = ()
    """Other parameters and flags of Slurm's that were given."""


class Factors(NamedTuple):
    """The factors of a job, each from 0 to 1 unless it is not normalised."""

    age: float = 0.0
    assoc: float = 0.0
    fairshare: float = 0.0
    job_size: float = 0.0
    partition: float = 0.0
    qos: float = 0.0
    tres: Mapping[str, float] = {}
    site: float = 0.0
    nice: float = 0.0


def age_factor(wait: float, settings: PrioritySettings) -> float:
    """Return how much of the highest age a job has reached after waiting `wait` seconds."""
    return min(1.0, max(0.0, wait) / settings.max_age) if settings.max_age > 0 else 1.0


def size_factor(
    cpus: float, nodes: float, all_cpus: float, all_nodes: float, limit: float, settings: PrioritySettings
) -> float:
    """Return the job size factor; `limit` is the time limit, s.

    The mean of the job's part of the nodes and of the CPUs; with `favor_small` of what it leaves. With `size_per_time`
    its CPUs per minute of the limit over all CPUs; with both, 1 less that.
    """
    if settings.size_per_time:
        part = min(1.0, cpus / max(1.0, limit / 60.0) / all_cpus)
        return 1.0 - part if settings.favor_small else part
    if settings.favor_small:
        parts = (all_nodes - nodes) / all_nodes, (all_cpus - cpus) / all_cpus
    else:
        parts = nodes / all_nodes, cpus / all_cpus
    return min(1.0, max(0.0, sum(parts) / 2.0))


def rated_factor(which: str, rating: float, highest: float, settings: PrioritySettings) -> float:
    """Return the factor of a partition, QOS, association or resource: its rating over the highest, or as it is."""
    if which in settings.not_normal:
        return rating
    return rating / highest if highest > 0 else 0.0


def breakdown(factors: Factors, settings: PrioritySettings) -> dict[str, float]:
    """Return what each factor adds to the priority: factor × weight, and site and nice as they are."""
    parts = {
        name: getattr(factors, name) * getattr(settings, name)
        for name in ("age", "assoc", "fairshare", "job_size", "partition", "qos")
    }
    for name, weight in settings.tres.items():
        parts[f"tres/{name}"] = factors.tres.get(name, 0.0) * weight
    return {**parts, "site": factors.site, "nice": -factors.nice}


def priority(factors: Factors, settings: PrioritySettings) -> int:
    """Return the job's priority, from 1 to the highest; 0 is a held job."""
    return int(min(MOST, max(1.0, sum(breakdown(factors, settings).values()))))


def billing(amounts: Mapping[str, float], weights: Mapping[str, float], settings: PrioritySettings) -> float:
    """Return a job's billable resources: the weighted sum, or with MAX_TRES the largest of a node's plus global ones.

    Global resources are licences and burst buffers; usage of fair share is billing × seconds.
    """
    weighted = {name: amounts.get(name, 0.0) * weight for name, weight in weights.items()}
    if not settings.max_tres:
        return sum(weighted.values())
    shared = {name for name in weighted if name.startswith(("license/", "bb/"))}
    local = [value for name, value in weighted.items() if name not in shared]
    return max(local, default=0.0) + sum(weighted[name] for name in shared)
