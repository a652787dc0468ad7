"""Completion times of heterogeneity-aware policies, as published with Gavel.

Narayanan et al., OSDI'20, section 7.3: jobs with measured throughputs arrive at a given rate at 36 V100, 36 P100 and 36
K80, one GPU a server, rounds of 360 s; the mean completion time is that of jobs 4000 to 4999.
"""

from __future__ import annotations

import ast
import gzip
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.errors import InputError, UserError
from gputwin.simulation.planning.mechanism import RoundSettings
from gputwin.simulation.planning.one_model import AlloX
from gputwin.simulation.planning.rounds import RoundJobs, simulate_rounds
from gputwin.simulation.planning.snapshot import PLANNERS, Floats, Plan, Planner, PlannerPolicy, Snapshot
from gputwin.studies.reproduce.gavel_jobs import drawn_jobs
from gputwin.studies.reproduce.munkres import match_by_munkres

MODELS = ("k80", "p100", "v100")
CAPACITY = np.array([36.0, 36.0, 36.0])
FILL_ORDER = ("v100", "p100", "k80")
MEASURED = slice(4000, 5000)
POLICIES = {
    "fifo": "fifo-in-place",
    "fifo_perf": "fifo-speed",
    "max_min_fairness": "max-min",
    "max_min_fairness_perf": "max-min-speed",
    "finish_time_fairness": "finish-time",
    "finish_time_fairness_perf": "finish-time-speed",
    "allox": "allox",
}
"""Published name of a policy → the planner here."""
PRINTED_SEED = 0
"""Seed of the printed figures."""
SATURATED = 1.5
"""A rate counts as saturated if the mean completion time is more than this times that of the lowest rate."""


@dataclass(frozen=True)
class Point:
    """Mean completion time of one policy at one rate, h."""

    trace: str
    policy: str
    jobs_per_hour: float
    ours: float
    published: float | None

    @property
    def difference(self) -> float | None:
        """Return how far ours is from the published one, as a share of it."""
        return None if self.published is None else self.ours / self.published - 1.0


@dataclass(frozen=True)
class Reproduction:
    """All points, and what was published of others."""

    points: tuple[Point, ...]
    published: pl.DataFrame

    @property
    def policies(self) -> tuple[str, ...]:
        """Return the policies that were tried, in order."""
        return tuple(dict.fromkeys(p.policy for p in self.points))

    def is_saturated(self, point: Point, column: str = "published") -> bool:
        """Return whether a mean, 'ours' or 'published', has left the flat part of the published curve at this rate."""
        curve = self.published.filter(trace=f"continuous-{point.trace}", policy=point.policy)
        base = curve.sort("input_jobs_per_hour")["value"][0] if curve.height else point.ours
        value = getattr(point, column)
        return (point.ours if value is None else float(value)) > SATURATED * float(base)

    def saturation_rate(self, policy: str, column: str) -> float | None:
        """Return the least rate tried, jobs an hour, at which 'ours' or 'published' is saturated; None: none."""
        rates = [p.jobs_per_hour for p in self.points if p.policy == policy and self.is_saturated(p, column)]
        return min(rates, default=None)

    def largest(self, policy: str, *, saturated: bool = False) -> float | None:
        """Return the largest difference of a policy at rates that are (not) saturated, as a share."""
        found = [
            abs(p.difference)
            for p in self.points
            if p.policy == policy and p.difference is not None and self.is_saturated(p) == saturated
        ]
        return max(found, default=None)

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "points": [
                {
                    "trace": p.trace,
                    "policy": p.policy,
                    "jobs_per_hour": p.jobs_per_hour,
                    "mean_completion_hours": p.ours,
                    "published_hours": p.published,
                    "difference": p.difference,
                    "saturated": self.is_saturated(p),
                }
                for p in self.points
            ],
            "largest_difference_unsaturated": {policy: self.largest(policy) for policy in self.policies},
            "least_saturated_rate": {
                policy: {column: self.saturation_rate(policy, column) for column in ("ours", "published")}
                for policy in self.policies
            },
        }


def reproduce(
    throughputs: Path,
    folder: Path,
    *,
    trace: str = "single",
    policies: Sequence[str] = tuple(POLICIES),
    rates: Sequence[float] = (),
    seed: int = PRINTED_SEED,
    progress: Callable[[str], None] = lambda step: None,
) -> Reproduction:
    """Return our mean completion times beside the published ones; without `rates`, at all published ones."""
    if unknown := sorted(set(policies) - set(POLICIES)):
        raise UserError(f"unknown policy '{unknown[0]}'; known: {', '.join(POLICIES)}")
    table = _read(folder / "jct_by_policy_and_rate.csv").filter(metric="average_jct_hours")
    drawn = drawn_jobs(seed, several_gpus=trace == "multiple")
    jobs = with_speeds(drawn, read_throughputs(throughputs))
    points = []
    for policy in policies:
        known = table.filter(trace=f"continuous-{trace}", policy=policy)
        printed = dict(zip(known["input_jobs_per_hour"].to_list(), known["value"].to_list(), strict=True))
        for rate in rates or sorted(printed):
            progress(f"{policy} at {rate:g} jobs an hour")
            ours = mean_completion_hours(jobs, policy, rate, seed)
            points.append(Point(trace, policy, rate, ours, printed.get(rate) if seed == PRINTED_SEED else None))
    return Reproduction(tuple(points), table)


def mean_completion_hours(jobs: pl.DataFrame, policy: str, jobs_per_hour: float, seed: int = 0) -> float:
    """Return the mean completion time of the measured jobs when they come at this rate; `seed`: of the policy's draws."""
    chosen, planner = planner_of(policy, seed)
    fleet = RoundJobs(
        submit=jobs["arrival_unit"].to_numpy() * 3600.0 / jobs_per_hour,
        steps=jobs["total_steps"].to_numpy(),
        gpus=jobs["scale_factor"].to_numpy().astype(np.float64),
        throughputs=jobs.select(MODELS).to_numpy(),
        weights=np.ones(jobs.height),
    )
    settings = RoundSettings(seed=seed, fill_order=FILL_ORDER)
    result = simulate_rounds(fleet, MODELS, CAPACITY, chosen, settings, until=MEASURED, planner=planner)
    return result.mean_completion_seconds(MEASURED) / 3600.0


def planner_of(policy: str, seed: int) -> tuple[PlannerPolicy, Planner]:
    """Return the planner behind a published name."""
    chosen = PLANNERS.get(POLICIES[policy])
    if policy == "fifo":
        return chosen, FifoAsPublished(seed)
    if policy == "allox":
        return chosen, AlloX(match_by_munkres)
    return chosen, chosen.make()


class FifoAsPublished:
    """First come first served as the published figures were made.

    The text says that a job takes a random free GPU model. The program that printed the figures draws one, but then gives
    the last free model by name (v100 before p100 before k80), and strikes the drawn one off the list when the given one
    is full; a full model can so be given again, and the job then waits for it though others are idle. While V100s are
    never full (up to 1.6 jobs an hour) draws do not matter; above, the figures depend on the sequence of draws.
    (`scheduler/policies/fifo.py` of the authors' public repository, commit fc065b67.)
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.model: dict[int, int] = {}

    def __call__(self, snapshot: Snapshot) -> Plan:
        """Return each job on one model for all of its time."""
        row = {int(job): k for k, job in enumerate(snapshot.ids)}
        gpus, speed = snapshot.gpus, snapshot.throughputs
        free = snapshot.capacity.copy()
        queue = [job for job in sorted(row) if job not in self.model]
        for job, model in sorted(self.model.items()):
            if job in row:
                free[model] -= gpus[row[job]]
                continue
            # The first in the queue takes over the place of a job that has ended if it fits there, else stays first.
            if queue and gpus[row[queue[0]]] <= free[model] and speed[row[queue[0]], model] > 0:
                heir = queue.pop(0)
                self.model[heir] = model
                free[model] -= gpus[row[heir]]
            del self.model[job]
        listed = [model for model in range(len(free)) if free[model] > 0]
        while queue and listed:
            job = queue.pop(0)
            fitting = [place for place, model in enumerate(listed) if free[model] >= gpus[row[job]]]
            if not fitting:
                break
            drawn = fitting[self.random.randrange(len(fitting))]
            model = listed[-1]
            if speed[row[job], model] > 0:
                self.model[job] = model
                free[model] -= gpus[row[job]]
                if free[model] == 0:
                    listed.pop(drawn)
        shares = np.zeros_like(speed)
        for job, model in self.model.items():
            shares[row[job], model] = 1.0
        return Plan.of(shares)


def read_throughputs(path: Path) -> dict[tuple[str, int], Floats]:
    """Return steps a second alone on k80, p100 and v100 for each job type and number of GPUs."""
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            measured = json.load(file)
        by_type: dict[tuple[str, int], list[float]] = {}
        for model in MODELS:
            for key, speeds in measured[model].items():
                by_type.setdefault(ast.literal_eval(key), []).append(float(speeds["null"]))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{path}: cannot read throughputs ({error}); give Gavel's simulation_throughputs.json"
        ) from None
    return {key: np.array(speeds) for key, speeds in by_type.items()}


def with_speeds(jobs: pl.DataFrame, throughputs: dict[tuple[str, int], Floats]) -> pl.DataFrame:
    """Return the jobs with steps a second on each GPU model and all their steps as columns."""
    keys = list(zip(jobs["job_type"].to_list(), jobs["scale_factor"].to_list(), strict=True))
    if missing := [key for key in keys if key not in throughputs]:
        raise InputError(f"no throughputs of {missing[0]}; give Gavel's simulation_throughputs.json")
    speeds = np.array([throughputs[key] for key in keys])
    jobs = jobs.with_columns(pl.Series(model, speeds[:, k]) for k, model in enumerate(MODELS))
    return jobs.with_columns(total_steps=pl.col("duration_v100_seconds") * pl.col("v100"))


def _read(path: Path) -> pl.DataFrame:
    if not path.is_file():
        raise InputError(f"{path}: no such file; give the folder with Gavel's published table")
    return pl.read_csv(path)
