"""Wait against load: models as lines, simulations of the trace's jobs as points, on ever fewer GPUs."""

from __future__ import annotations

import numpy as np
import polars as pl

from gputwin.queueing.gangs import Gang, saturated_jobs, stability_bounds
from gputwin.simulation.batch import Batch, workers_for
from gputwin.studies.validation.assumption_steps import SEEDS, pool_of, simulate_step
from gputwin.studies.validation.theory import predictions
from gputwin.studies.validation.threeway import ThreeWay

LOADS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_FINE = np.linspace(0.3, 0.98, 35)
_SIMULATED = {"real sizes": ("Poisson arrivals, simulated", SEEDS), "real arrivals": ("real arrivals, simulated", 1)}
STABILITY_SERVERS = 64


def wait_against_load(result: ThreeWay, *, workers: int | None = None) -> pl.DataFrame:
    """Return mean waits (`kind`, `name`, `load`, `wait`, `low`, `high`; s) of the trace's jobs on pools of GPUs.

    Lines are what models say, points are simulated; `low` and `high` are the range over seeds.
    """
    rows: list[tuple[str, str, float, float, float | None, float | None]] = []
    for load in _FINE:
        for p in predictions(result.jobs, result.jobs.load / float(load)):
            if p.figures.mean_wait is not None and p.figures.mean_wait >= 1e-3:
                rows.append(("theory", p.model, float(load), p.figures.mean_wait, None, None))
    tasks, labels = [], []
    for load in LOADS:
        gpus = max(round(result.jobs.load / load), int(np.ceil(result.jobs.gpus.max())), 1)
        for step, (name, seeds) in _SIMULATED.items():
            labels.append((name, result.jobs.load / gpus, seeds))
            tasks += [(pool_of(gpus), step, k) for k in range(seeds)]
    jobs = result.subject.workload.size * len(tasks)
    with Batch(workers=workers_for(jobs) if workers is None else workers) as batch:
        shared = batch.share(result.subject)
        found = batch.map(simulate_step, [(shared, *task) for task in tasks])
    at = 0
    for name, load, seeds in labels:
        waits = [f.mean_wait or 0.0 for f in found[at : at + seeds]]
        at += seeds
        rows.append(("simulation", name, load, float(np.mean(waits)), min(waits), max(waits)))
    if result.trace is not None and result.trace.mean_wait is not None:
        rows.append(("trace", "the trace", result.jobs.load / result.gpus, result.trace.mean_wait, None, None))
    schema = {"kind": pl.String, "name": pl.String} | dict.fromkeys(("load", "wait", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def stability(result: ThreeWay) -> tuple[pl.DataFrame, float, float]:
    """Return the largest stable load in strict order (`size`, `share`, `load`), and the trace's own share and load.

    On a pool of 64 GPUs, with equal exponential run times (Rumyantsev and Morozov): a share of jobs takes `size` GPUs,
    the others one.
    """
    rows = []
    for size in (2, 4, 8, 16, 32, 64):
        for share in np.linspace(0.0, 1.0, 41):
            gangs = [Gang(1 - float(share), 1, 1.0), Gang(float(share), size, 1.0)]
            rows.append((size, float(share), _stable_load([g for g in gangs if g.share > 0])))
    frame = pl.DataFrame(rows, schema={"size": pl.Int64, "share": pl.Float64, "load": pl.Float64}, orient="row")
    sizes, counts = np.unique(np.ceil(result.jobs.gpus - 1e-9).astype(np.int64), return_counts=True)
    held = sizes <= STABILITY_SERVERS
    own = [Gang(float(n) / counts.sum(), int(b), 1.0) for b, n in zip(sizes[held], counts[held], strict=True)]
    return frame, float(counts[sizes > 1].sum() / counts.sum()), _stable_load(own) if own else 1.0


def _stable_load(gangs: list[Gang]) -> float:
    mean = sum(g.share * g.servers for g in gangs) / sum(g.share for g in gangs)
    load = saturated_jobs(STABILITY_SERVERS, gangs) * mean / STABILITY_SERVERS
    return min(load, stability_bounds(STABILITY_SERVERS, gangs).most)
