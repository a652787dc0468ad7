"""Mean completion times of deep-learning jobs on 16 nodes of 4 GPUs, as published with Pollux.

Qiao et al., OSDI'21, section 5.3: eight workloads of 160 jobs (at load 1) of six applications with measured step times and
statistical efficiency; decisions every 60 s, 30 s to restart a job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from gputwin.core.errors import InputError, UserError
from gputwin.simulation.elasticity.allocation import ElasticJob, optimus
from gputwin.simulation.elasticity.throughput import fit, mean_error
from gputwin.studies.reproduce.pollux_jobs import Application, Job
from gputwin.studies.reproduce.pollux_policy import GPUS_PER_NODE, NODES, AdaptiveJob, Pollux
from gputwin.studies.reproduce.pollux_profiles import APPLICATIONS, read_steps

INTERVAL = 60
QUEUE_LIMIT = 16 * 3600
"""GPU-seconds after which Tiresias moves a job to its second queue."""
LOADS = ("0.5", "1.0", "1.5", "2.0")


class Policy(Protocol):
    """Who holds which GPUs next: node numbers per job."""

    def __call__(self, now: int, jobs: Sequence[Job], held: dict[str, list[int]]) -> dict[str, list[int]]:
        """Return the nodes of each job's GPUs for the next interval."""


class Tiresias:
    """Two queues by attained GPU time; in order within each, who does not fit is passed over; jobs ask for fixed sizes."""

    def __init__(self) -> None:
        self.queues: tuple[list[str], list[str]] = ([], [])
        self.runs: dict[str, bool] = {}
        self.seconds: dict[str, int] = {}

    def __call__(self, now: int, jobs: Sequence[Job], held: dict[str, list[int]]) -> dict[str, list[int]]:
        """Return who holds which GPUs for the next interval."""
        active = {job.name: job for job in jobs}
        first, second = ([name for name in queue if name in active] for queue in self.queues)
        for name, job in active.items():
            if name not in self.runs:
                self.runs[name], self.seconds[name] = False, 0
                first.append(name)
            elif self.runs[name]:
                self.seconds[name] += INTERVAL
                if name in first and self.seconds[name] * job.gpus >= QUEUE_LIMIT:
                    first.remove(name)
                    second.append(name)
        self.queues = (first, second)
        left = NODES * GPUS_PER_NODE
        for name in (*first, *second):
            self.runs[name] = active[name].gpus <= left
            left -= active[name].gpus if self.runs[name] else 0
        kept = {name: nodes for name, nodes in held.items() if name in active and self.runs[name]}
        wanted = {name: active[name].gpus for name in (*first, *second) if self.runs[name] and name not in kept}
        return spread(kept, wanted)


class Optimus:
    """Sizes by greedy marginal gain of the remaining time, which is known (the authors' oracle); resized jobs move."""

    def __call__(self, now: int, jobs: Sequence[Job], held: dict[str, list[int]]) -> dict[str, list[int]]:
        """Return who holds which GPUs for the next interval; small jobs are placed first."""
        sizes = optimus([_elastic(job) for job in jobs], NODES * GPUS_PER_NODE)
        size = {job.name: n for job, n in zip(jobs, sizes, strict=True)}
        kept = {name: nodes for name, nodes in held.items() if len(nodes) == size[name]}
        order = sorted(size, key=size.__getitem__)
        return spread(kept, {name: size[name] for name in order if size[name] and name not in kept})


def _elastic(job: Job) -> ElasticJob:
    """Return the job as Optimus sees it: steps a second on n GPUs packed onto nodes, and steps left."""
    app = job.application
    whole, done = app.iterations_after(job.batch, app.epochs), app.iterations_after(job.batch, job.epoch + 1)
    left = whole - done if job.epoch + 1 < app.epochs else 1.0
    most = 1 if app.name == "ncf" else job.batch // app.least_local
    return ElasticJob(lambda gpus: app.packed_speed(job.batch, gpus), left, 1, most)


def spread(kept: dict[str, list[int]], wanted: dict[str, int]) -> dict[str, list[int]]:
    """Return the allocations with GPUs for those who want some: from the node with most free ones, again and again."""
    free = np.full(NODES, GPUS_PER_NODE)
    for nodes in kept.values():
        np.subtract.at(free, nodes, 1)
    found = dict(kept)
    for name, gpus in wanted.items():
        found[name] = []
        while len(found[name]) < gpus:
            node = int(free.argmax())
            count = min(int(free[node]), gpus - len(found[name]))
            found[name] += [node] * count
            free[node] -= count
    return found


POLICIES: dict[str, Callable[[], Policy]] = {"tiresias": Tiresias, "optimus": Optimus, "pollux": Pollux}


@dataclass(frozen=True)
class Reproduction:
    """Mean completion times by policy, load and workload, and the errors of the fitted step times."""

    times: pl.DataFrame
    fits: pl.DataFrame

    def largest_difference(self, policy: str) -> float:
        """Return the largest relative difference to a published mean completion time."""
        found = self.times.filter(policy=policy)
        return float((found["mean_seconds"] / found["published_seconds"] - 1.0).abs().max())  # type: ignore[arg-type]

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {"completion": self.times.to_dicts(), "fits": self.fits.to_dicts()}


def reproduce(
    profiles: Path,
    folder: Path,
    *,
    policies: Sequence[str] = tuple(POLICIES),
    loads: Sequence[str] = ("1.0",),
    workloads: Sequence[int] = (),
    progress: Callable[[str], None] = lambda step: None,
) -> Reproduction:
    """Return ours beside the published ones; without `workloads`, all that have been published."""
    if unknown := sorted(set(policies) - set(POLICIES)):
        raise UserError(f"unknown policy '{unknown[0]}'; known: {', '.join(POLICIES)}")
    if unknown := sorted(set(loads) - set(LOADS)):
        raise UserError(f"unknown load '{unknown[0]}'; known: {', '.join(LOADS)}")
    table = _read(folder / "average_completion_seconds.csv")
    applications = {name: Application(name, profiles, folder / "validation") for name in APPLICATIONS}
    rows = []
    for policy in policies:
        for load in loads:
            printed = table.filter(experiment="results-jobload", config=f"{policy}-{load}")
            known = dict(zip(printed["workload"], printed["avg_jct_seconds"], strict=True))
            for name in [f"workload-{k}" for k in workloads] or [w for w in known if w != "MEAN"]:
                progress(f"{policy}, load {load}, {name}")
                where = folder / ("workloads" if load == "1.0" else f"workloads-{load}") / f"{name}.csv"
                ours = mean_completion(_read(where), applications, POLICIES[policy]())
                rows.append((policy, load, name, ours, known.get(name)))
    names = ["policy", "load", "workload", "mean_seconds", "published_seconds"]
    progress("fitting step times")
    return Reproduction(pl.DataFrame(rows, schema=names, orient="row"), fit_errors(profiles))


def mean_completion(workload: pl.DataFrame, applications: dict[str, Application], policy: Policy) -> float:
    """Return the mean time from submission to end of a workload's jobs, s."""
    kind = AdaptiveJob if isinstance(policy, Pollux) else Job
    jobs = [
        kind(row["name"], applications[row["application"]], row["time"], row["num_replicas"], row["batch_size"])
        for row in workload.iter_rows(named=True)
    ]
    now, held = 0, dict[str, list[int]]()
    while any(job.end is None for job in jobs):
        for job in jobs:
            job.run(now, INTERVAL)
        now += INTERVAL
        active = [job for job in jobs if job.submit <= now and job.end is None]
        if not active:
            continue
        held = {job.name: held[job.name] for job in active if job.name in held}
        chosen = policy(now, active, held)
        for job in active:
            if chosen.get(job.name) != held.get(job.name):
                job.place(chosen.get(job.name, []))
        held = chosen
    return float(np.mean([job.end - job.submit for job in jobs if job.end is not None]))


def fit_errors(profiles: Path) -> pl.DataFrame:
    """Return, per application, the mean relative error of fitted step times, and above 8 GPUs from at most 8."""
    rows = []
    for name in APPLICATIONS:
        steps = read_steps(profiles, name)
        few = steps.gpus <= 8
        far = mean_error(fit(steps.of(few)), steps.of(~few))
        rows.append((name, len(steps.batch), mean_error(fit(steps), steps), far))
    return pl.DataFrame(rows, schema=["application", "steps", "error", "error_above_8_gpus"], orient="row")


def _read(path: Path) -> pl.DataFrame:
    if not path.is_file():
        raise InputError("no such file", file=path, remedy="give the folder with Pollux's workloads and results")
    return pl.read_csv(path)
