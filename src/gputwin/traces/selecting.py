"""Part of a trace's jobs: those of some tenants, of some GPU models, or a random share. Nodes and clock stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from gputwin.core.errors import UserError, shorten
from gputwin.core.rng import stream
from gputwin.core.units import percent
from gputwin.traces.dataset import Trace


def of_tenants(trace: Trace, tenants: Sequence[str]) -> Trace:
    """Return the jobs of these tenants, and the requests of clients or services of these names."""
    of_request = pl.col("user").is_in(tenants) | pl.col("application").is_in(tenants)
    _check_known(tenants, "tenant", (trace.tasks["tenant"], trace.requests["user"], trace.requests["application"]))
    return _of_jobs(trace, pl.col("tenant").is_in(tenants), of_request, f"tenant {', '.join(tenants)}")


def of_models(trace: Trace, models: Sequence[str]) -> Trace:
    """Return the jobs given, or allowed on, these GPU models, and the requests for these models."""
    allowed = pl.col("gpu_models_allowed").str.split("|")
    of_task = pl.col("gpu_model").is_in(models) | (allowed.list.set_intersection(list(models)).list.len() > 0)
    _check_known(
        models,
        "model",
        (trace.tasks["gpu_model"], trace.tasks["gpu_models_allowed"].str.split("|").explode(), trace.requests["model"]),
    )
    return _of_jobs(trace, of_task, pl.col("model").is_in(models), f"model {', '.join(models)}")


def sample(trace: Trace, share: float, seed: int = 0) -> Trace:
    """Return a random share of the jobs and requests, each whole. Arrivals thin out, so the load shrinks with it."""
    if not 0 < share < 1:
        raise UserError(f"a sample of {percent(share)} is no part of a trace; name a share between 0% and 100%")
    random = stream(seed, "sample")
    jobs = trace.tasks["job_id"].unique(maintain_order=True)
    taken = jobs.filter(pl.Series(random.random(jobs.len()) < share))
    of_request = pl.Series(random.random(trace.requests.height) < share)
    return _of_jobs(trace, pl.col("job_id").is_in(taken.implode()), pl.lit(of_request), f"{share:.3g} of its jobs")


def _of_jobs(trace: Trace, of_task: pl.Expr, of_request: pl.Expr, which: str) -> Trace:
    tasks = trace.tasks.filter(of_task.fill_null(False))
    requests = trace.requests.filter(of_request.fill_null(False)) if trace.requests.height else trace.requests
    if tasks.is_empty() and requests.is_empty():
        raise UserError(f"the trace has no jobs of {which}; choose others")
    keys = tasks.select("job_id", "role")
    tables = {"tasks": tasks, "requests": requests, "nodes": trace.nodes, "series": trace.series}
    tables["instances"] = trace.instances.join(keys, on=["job_id", "role"], how="semi")
    of_node = trace.usage.filter(pl.col("scope") == "node")
    of_job = trace.usage.filter(pl.col("scope") != "node").join(keys, on=["job_id", "role"], how="semi")
    tables["usage"] = pl.concat([of_job, of_node])
    title = f"{trace.meta.title or trace.meta.source}, {which}"
    kept = {name: frame for name, frame in tables.items() if trace.has(name)}
    return Trace.from_frames(kept, replace(trace.meta, title=title))


def _check_known(names: Sequence[str], kind: str, columns: Sequence[pl.Series]) -> None:
    known = pl.concat([c.cast(pl.String).rename("name") for c in columns]).drop_nulls()
    for name in names:
        if not (known == name).any():
            most = known.value_counts(sort=True, name="n").sort("n", "name", descending=[True, False])["name"].head(5)
            hint = f"the most frequent: {shorten(', '.join(most), 200)}" if most.len() else f"it names no {kind}"
            raise UserError(f"no {kind} '{shorten(name)}' in the trace; {hint}")
