"""What made a job's priority under Slurm's multifactor order: what each factor added, worked out from the saved run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl

from gputwin.simulation.engine.state.records import WHOLE, Floats
from gputwin.simulation.priority_parts import FACTORS, PriorityParts
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.scenario_parts import TenantSpec
from gputwin.simulation.slurm.order import NAME, lasting_factors, settings_of
from gputwin.simulation.slurm.priority import Factors, PrioritySettings, age_factor, breakdown, priority
from gputwin.simulation.slurm.shares import Account, classic_factors, fair_tree_factors


def priority_parts(result: SimulationResult, job: dict[str, Any], time: float) -> PriorityParts | None:
    """Return the priority of a job (a row of the run's jobs) at `time`; None where the run had another order."""
    scheduler = result.manifest["scheduler"]
    if scheduler["order"] != NAME:
        return None
    settings = settings_of(scheduler["order_parameters"])
    at = math.floor(time / settings.calc_period) * settings.calc_period
    parts = _parts(result)
    usage = _usage(result, parts.max(axis=1), at, settings.decay_half_life)
    highest = float(result.jobs["priority"].max() or 0.0)  # type: ignore[arg-type]
    rating = max(job["priority"] / highest, 0.0) if highest > 0 else 0.0
    nodes = result.nodes.height
    lasting = lasting_factors(parts[job["shape"]], job["instances"], nodes, job["predicted_seconds"], rating, settings)
    factors = lasting._replace(
        age=age_factor(at - job["submit_time"], settings),
        fairshare=_shares(accounts(result), usage, settings)[job["tenant"]],
    )
    points = {name: value for name, value in breakdown(factors, settings).items() if value}
    return PriorityParts(at, priority(factors, settings), points, _told(factors))


def accounts(result: SimulationResult) -> list[Account]:
    """Return the run's tree of tenants as Slurm's accounts and users."""
    fairness = result.scenario.fairness if "scenario" in result.manifest else None
    terms = {} if fairness is None else fairness.tenants
    weights = {} if fairness is None else fairness.groups
    of = {name: terms.get(name, TenantSpec()) for name in result.jobs["tenant"].unique().sort().to_list()}

    def below(path: str) -> tuple[Account, ...]:
        prefix = f"{path}/" if path else ""
        steps = {t.group.removeprefix(prefix).split("/")[0] for t in of.values() if t.group.startswith(prefix)}
        names = sorted(prefix + step for step in steps if step)
        groups = [Account(name, weights.get(name, 1.0), below(name)) for name in names]
        users = [Account(user, t.weight, (), True) for user, t in of.items() if t.group == path]
        return (*groups, *users)

    return list(below(""))


def _told(factors: Factors) -> dict[str, float]:
    plain = {name: getattr(factors, name) for name in FACTORS}
    return plain | {f"tres/{name}": value for name, value in factors.tres.items()}


def _parts(result: SimulationResult) -> Floats:
    """Return what one job of each shape asks for of CPU, memory, GPUs and GPU memory of the cluster, from 0 to 1."""
    size, gpus = pl.col("size"), pl.col("gpu_count")
    asked: Floats = (
        result.groups.group_by("shape")
        .agg(
            (size * pl.col("cpu")).sum().alias("cpu"),
            (size * pl.col("memory")).sum().alias("memory"),
            (size * gpus * pl.col("gpu_milli")).sum().alias("gpu"),
            (size * gpus * pl.col("gpu_memory")).sum().alias("gpu_memory"),
        )
        .sort("shape")
        .drop("shape")
        .to_numpy()
        .astype(float)
    )
    nodes = result.nodes
    with_gpus = nodes.filter(pl.col("gpu_count") > 0)
    capacity = np.array(
        [
            _total(nodes["cpu_milli"]),
            _total(nodes["memory_mib"]),
            float(nodes["gpu_count"].sum()) * WHOLE,
            _total(with_gpus["gpu_memory_mib"] * with_gpus["gpu_count"]),
        ]
    )
    parts: Floats = np.divide(asked, capacity, out=np.zeros(asked.shape), where=capacity > 0)
    return parts


def _total(amounts: pl.Series) -> float:
    """Return the sum; infinite where a node's is not modelled."""
    return math.inf if amounts.null_count() else float(amounts.sum())


def _usage(result: SimulationResult, part: Floats, at: float, half_life: float) -> dict[str, float]:
    """Return the decayed usage of each tenant at `at`: parts of the cluster × s."""
    row = result.segments["job"].to_numpy()
    start = result.segments["start_time"].to_numpy()
    end = np.minimum(result.segments["end_time"].fill_null(np.inf).to_numpy(), at)
    held = part[result.jobs["shape"].to_numpy()[row]]
    ran = start < end
    if half_life > 0:
        kept = 0.5 ** ((at - end) / half_life) - 0.5 ** ((at - start) / half_life)
        used = held * half_life / math.log(2.0) * kept
    else:
        used = held * (end - start)
    frame = pl.DataFrame({"tenant": result.jobs["tenant"].gather(row), "used": np.where(ran, used, 0.0)})
    summed = frame.group_by("tenant").agg(pl.col("used").sum())
    return dict.fromkeys(result.jobs["tenant"].unique().to_list(), 0.0) | dict(summed.iter_rows())


def _shares(tree: list[Account], usage: dict[str, float], settings: PrioritySettings) -> dict[str, float]:
    if settings.fair_tree:
        return fair_tree_factors(tree, usage)
    total = sum(usage.values()) or 1.0
    return classic_factors(tree, {user: used / total for user, used in usage.items()}, settings.dampening)
