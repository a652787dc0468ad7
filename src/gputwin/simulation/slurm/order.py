"""Slurm's multifactor priority as an order of the engine: its parameters, and what of a job's priority does not change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gputwin.simulation.engine.state.records import Floats, Ints
from gputwin.simulation.engine.state.tenants import CPU, GPU, MEMORY
from gputwin.simulation.slurm.priority import Factors, PrioritySettings, size_factor

NAME = "slurm-multifactor"
PARAMETERS: dict[str, float] = {
    "age": 1000.0,
    "fairshare": 10_000.0,
    "job_size": 1000.0,
    "qos": 0.0,
    "tres_cpu": 0.0,
    "tres_memory": 0.0,
    "tres_gpu": 0.0,
    "max_age": 7 * 86_400.0,
    "half_life": 7 * 86_400.0,
    "period": 300.0,
    "dampening": 1.0,
    "fair_tree": True,
    "favor_small": False,
    "size_per_time": False,
}
"""Weights as in the example of Slurm's documentation, times and the rest as Slurm has them by default."""
_TRES = {"cpu": ("tres_cpu", CPU), "mem": ("tres_memory", MEMORY), "gres/gpu": ("tres_gpu", GPU)}


def parameters_of(settings: PrioritySettings) -> dict[str, float]:
    """Return the order's parameters for the settings of a slurm.conf."""
    weights = {name: settings.tres.get(tres, 0.0) for tres, (name, _) in _TRES.items()}
    endless = math.isinf(settings.max_age)
    return {
        "age": 0.0 if endless else settings.age,
        "fairshare": settings.fairshare,
        "job_size": settings.job_size,
        "qos": settings.qos,
        **weights,
        "max_age": PARAMETERS["max_age"] if endless else settings.max_age,
        # Usage that never fades: Slurm writes 0.
        "half_life": 0.0 if math.isinf(settings.decay_half_life) else settings.decay_half_life,
        "period": settings.calc_period,
        "dampening": settings.dampening,
        "fair_tree": float(settings.fair_tree),
        "favor_small": float(settings.favor_small),
        "size_per_time": float(settings.size_per_time),
    }


def not_used(settings: PrioritySettings) -> list[str]:
    """Return the weights of a slurm.conf that no trace has ratings for, by their names there."""
    named = {"PriorityWeightPartition": settings.partition, "PriorityWeightAssoc": settings.assoc}
    found = [name for name, weight in named.items() if weight]
    return found + [
        f"PriorityWeightTRES {name}" for name, weight in settings.tres.items() if weight and name not in _TRES
    ]


def settings_of(parameters: Mapping[str, float]) -> PrioritySettings:
    """Return Slurm's settings for the order's parameters."""
    values = {**PARAMETERS, **parameters}
    return replace(
        PrioritySettings(),
        age=values["age"],
        fairshare=values["fairshare"],
        job_size=values["job_size"],
        qos=values["qos"],
        max_age=values["max_age"],
        dampening=values["dampening"],
        tres={tres: values[name] for tres, (name, _) in _TRES.items() if values[name]},
        decay_half_life=values["half_life"],
        calc_period=values["period"],
        fair_tree=bool(values["fair_tree"]),
        favor_small=bool(values["favor_small"]),
        size_per_time=bool(values["size_per_time"]),
    )


def lasting_factors(
    part: Floats, instances: int, nodes: int, predicted: float, rating: float, settings: PrioritySettings
) -> Factors:
    """Return the factors of a job that do not change: size, QOS (`rating`, from 0 to 1) and resources.

    `part` is what it asks for of each resource of the cluster, from 0 to 1. Its instances count as nodes, its predicted
    duration as its time limit, and GPUs as CPUs where CPUs are not modelled.
    """
    of_cpus = part[CPU] if part[CPU] > 0 else part[GPU]
    return Factors(
        job_size=size_factor(float(of_cpus), min(instances, nodes), 1.0, nodes, predicted, settings),
        qos=rating,
        tres={tres: float(part[r]) for tres, (_, r) in _TRES.items()},
    )


def lasting_ratings(
    parts: Floats,
    instances: Ints,
    nodes: int,
    shape: Ints,
    predicted: Floats,
    priority: Floats,
    parameters: Mapping[str, float],
) -> Floats:
    """Return what does not change of each job's priority; the trace's priority over the highest counts as its QOS."""
    settings = settings_of(parameters)
    highest = max(float(priority.max(initial=0.0)), 0.0)
    qos = np.clip(priority / highest, 0.0, None) if highest > 0 else np.zeros(priority.size)
    if settings.size_per_time:
        key, of = np.unique(np.stack([shape.astype(float), predicted]), axis=1, return_inverse=True)
        kinds = [(int(s), float(limit)) for s, limit in key.T]
    else:
        kinds, of = [(s, 0.0) for s in range(instances.size)], shape
    each = np.zeros(len(kinds))
    for k, (s, limit) in enumerate(kinds):
        factors = lasting_factors(parts[s], int(instances[s]), nodes, limit, 0.0, settings)
        tres = sum(weight * factors.tres[name] for name, weight in settings.tres.items())
        each[k] = settings.job_size * factors.job_size + tres
    return np.asarray(each[np.ravel(of)] + settings.qos * qos)
