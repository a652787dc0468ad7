"""Usage measured elsewhere, attached to the jobs of a trace: by job id, or by the pod's name and namespace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from gputwin.core.errors import InputError
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import Clock, Draft, Input
from gputwin.traces.readers import prometheus
from gputwin.traces.sources import Source


def with_usage(draft: Draft, sources: Sequence[Source], quality: QualityLog) -> Draft:
    """Return the draft with the usage in `sources`; rows of instances that no job has are dropped and counted (F07)."""
    if draft.clock is not Clock.ABSOLUTE:
        raise InputError(
            "usage has dates, but the trace's times have none",
            file=sources[0].label,
            remedy="give a log with dates, or leave the usage out",
        )
    strangers = [s for s in sources if prometheus.recognise(s) is None]
    if strangers:
        raise InputError(
            "not the result of a Prometheus range query",
            file=strangers[0].label,
            remedy="export it as JSON: /api/v1/query_range",
        )
    measured = prometheus.read([Input(s, "matrix") for s in sources], quality)
    tables = {name: made if isinstance(made, pl.DataFrame) else _whole(made) for name, made in draft.tables.items()}
    for name, made in measured.tables.items():
        assert isinstance(made, pl.DataFrame)
        frame = _attached(made, tables, quality) if name == "usage" else made
        tables[name] = pl.concat([tables[name], frame], how="diagonal_relaxed") if name in tables else frame
    return replace(draft, tables=tables)


def _whole(made: object) -> pl.DataFrame:
    result = made() if callable(made) else made
    return result if isinstance(result, pl.DataFrame) else pl.concat(result, how="diagonal_relaxed")  # type: ignore[arg-type]


def _attached(usage: pl.DataFrame, tables: dict[str, pl.DataFrame], quality: QualityLog) -> pl.DataFrame:
    of_node = usage.filter(pl.col("scope") == "node")
    of_instance = usage.filter(pl.col("scope") != "node")
    jobs = tables["tasks"].select(pl.col("job_id").cast(pl.String)) if "tasks" in tables else pl.DataFrame()
    by_job = of_instance.filter(pl.col("job_id").is_not_null())
    found = by_job.join(jobs.unique(), on="job_id", how="semi") if jobs.height else by_job.clear()
    by_pod = of_instance.filter(pl.col("job_id").is_null())
    pods = _pods(tables)
    if pods is not None and by_pod.height:
        keys = ["instance_id", prometheus.NAMESPACE]
        by_pod = by_pod.drop("job_id", "role").join(pods, on=keys, how="inner", maintain_order="left")
    else:
        by_pod = by_pod.clear()
    lost = of_instance.height - found.height - by_pod.height
    quality.find("F07", "usage", lost, detail="measured, but no job of the log")
    # The log counts samples, of which a row here is a mean: nothing else is dropped for them.
    frames = [f.drop(prometheus.NAMESPACE, strict=False) for f in (found, by_pod, of_node) if f.height]
    return pl.concat(frames, how="diagonal") if frames else usage.clear().drop(prometheus.NAMESPACE)


def _pods(tables: dict[str, pl.DataFrame]) -> pl.DataFrame | None:
    """Return which job and role each pod of the trace belongs to; None where it has no instances."""
    if "instances" not in tables or "tasks" not in tables or "tenant" not in tables["tasks"].columns:
        return None
    tenants = tables["tasks"].select("job_id", "role", pl.col("tenant").alias(prometheus.NAMESPACE))
    instances = tables["instances"].select("job_id", "role", "instance_id")
    return instances.join(tenants, on=["job_id", "role"], how="inner").unique(["instance_id", prometheus.NAMESPACE])
