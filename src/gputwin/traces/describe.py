"""What is in a trace: counts, span, times known and unknown, requests, in one record."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from gputwin.core.display import Shown
from gputwin.core.percentiles import percentile
from gputwin.core.units import format_duration
from gputwin.traces.dataset import Trace
from gputwin.traces.lifetimes import LIFE_COLUMNS, held
from gputwin.traces.measures import ARRIVAL, GPU_MILLI_TOTAL, IS_COMPLETE, RUNTIME, WAIT
from gputwin.traces.schema import TABLES

_QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, repr=False)
class Description(Shown):
    """Counts and distributions of one trace; None where the source does not say."""

    source: str
    title: str
    zone: str
    clock: str
    origin_unix_seconds: float | None
    fingerprint: str
    span_seconds: float
    window_seconds: float
    """How long the window is that averages over time are taken over (`gputwin.traces.lifetimes`)."""
    tables: dict[str, int]
    tasks: int
    jobs: int
    instances: int
    """That the tasks are made of, whether they ran or not."""
    instance_records: int
    """Rows of the table of instances: those that ran and are recorded one by one, each attempt of its own."""
    applications: int
    users: int
    groups: int
    tenants: int
    nodes: int
    gpus: int
    requests: int
    gpu_models: dict[str, int]
    tasks_complete: int
    tasks_without_submit_and_start: int
    tasks_already_running: int
    """When the trace began."""
    tasks_running: int
    """When it ended."""
    tasks_of_unknown_life: int
    """Nobody knows when they held what they asked for."""
    tasks_never_started: int
    status: dict[str, int]
    wait_seconds: dict[str, float] | None
    runtime_seconds: dict[str, float] | None
    gpus_requested: dict[str, float] | None
    gpu_hours: float | None
    """GPUs × time held, over the whole trace."""
    gpus_held_mean: float | None
    """Over the window."""
    gpus_held_most: float | None
    """At any one moment."""
    notes: list[str]
    metrics: dict[str, int]
    rows_read: int
    rows_kept: int
    rows_dropped: int
    findings: list[dict[str, Any]]

    def _title(self) -> str:
        return f"{self.title or self.source} ({self.source})"

    def _lines(self) -> list[str]:
        counts = {"tasks": self.tasks, "jobs": self.jobs, "users": self.users, "tenants": self.tenants}
        counts |= {"nodes": self.nodes, "GPUs": self.gpus, "requests": self.requests}
        lines = [", ".join(f"{n:,} {name}" for name, n in counts.items() if n)]
        for name, spread in (("wait", self.wait_seconds), ("runtime", self.runtime_seconds)):
            if spread:
                figures = ", ".join(f"{k} {format_duration(spread[k])}" for k in ("mean", "p50", "p95", "max"))
                lines.append(f"{name}: {figures}")
        return lines

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain data."""
        return asdict(self)


def describe(trace: Trace) -> Description:
    """Return the description of `trace`, reading only the columns it needs."""
    tasks = trace.collect(
        trace.scan("tasks").select(
            pl.len().alias("tasks"),
            pl.col("job_id").n_unique().alias("jobs"),
            pl.col("instances").sum().alias("instances"),
            *(pl.col(c).drop_nulls().n_unique().alias(c) for c in ("application", "user", "group", "tenant")),
            IS_COMPLETE.sum().alias("complete"),
            (pl.col("submit_time").is_null() & pl.col("start_time").is_null()).sum().alias("timeless"),
            pl.col("was_running").sum().alias("older"),
            (
                pl.col("start_time").is_null()
                & RUNTIME.is_null()
                & ~pl.col("is_running")
                & pl.col("submit_time").is_not_null()
            )
            .sum()
            .alias("never_started"),
        )
    ).row(0, named=True)
    columns = trace.collect(trace.scan("tasks").select(WAIT, RUNTIME, GPU_MILLI_TOTAL / 1000))
    lives = held(trace.collect(trace.scan("tasks").select(LIFE_COLUMNS)))
    nodes = trace.nodes
    meta = trace.meta
    return Description(
        source=meta.source,
        title=meta.title,
        zone=meta.zone,
        clock=meta.clock,
        origin_unix_seconds=meta.origin_unix_seconds,
        fingerprint=meta.fingerprint,
        span_seconds=span_seconds(trace),
        window_seconds=lives.window.seconds if tasks["tasks"] else 0.0,
        tables=dict(meta.tables),
        tasks=tasks["tasks"],
        jobs=tasks["jobs"],
        instances=tasks["instances"],
        instance_records=meta.tables.get("instances", 0),
        applications=tasks["application"],
        users=tasks["user"],
        groups=tasks["group"],
        tenants=tasks["tenant"],
        nodes=nodes.height,
        gpus=int(nodes["gpu_count"].sum()),
        requests=meta.tables.get("requests", 0),
        gpu_models=_gpus_by_model(nodes),
        tasks_complete=tasks["complete"],
        tasks_without_submit_and_start=tasks["timeless"],
        tasks_already_running=tasks["older"],
        tasks_running=lives.tasks_alive,
        tasks_of_unknown_life=lives.tasks_unknown,
        tasks_never_started=tasks["never_started"],
        status=_counts(trace, "tasks", "status"),
        wait_seconds=_distribution(columns["wait_seconds"]),
        runtime_seconds=_distribution(columns["runtime_seconds"]),
        gpus_requested=_distribution(columns["gpu_milli_total"]),
        gpu_hours=lives.gpu_hours,
        gpus_held_mean=lives.gpus_mean,
        gpus_held_most=lives.gpus_most,
        notes=list(lives.window.notes()),
        metrics=_counts(trace, "series", "metric"),
        rows_read=meta.rows_read,
        rows_kept=meta.rows_kept,
        rows_dropped=meta.rows_dropped,
        findings=[f.to_json() for f in meta.findings],
    )


def span_seconds(trace: Trace) -> float:
    """Return the time from the first to the last event of any table, s."""
    bounds = time_bounds(trace)
    return 0.0 if bounds is None else bounds[1] - bounds[0]


def time_bounds(trace: Trace) -> tuple[float, float] | None:
    """Return the first and the last time of any table, s; None where no time is known."""
    lows: list[float] = []
    highs: list[float] = []
    for name in trace.meta.tables:
        for column in TABLES[name].time_columns:
            bounds = trace.scan(name).select(pl.col(column).min().alias("low"), pl.col(column).max().alias("high"))
            low, high = trace.collect(bounds).row(0)
            if low is not None:
                lows.append(low)
                highs.append(high)
    if trace.has("tasks"):
        last = trace.collect(trace.scan("tasks").select((ARRIVAL + RUNTIME).max())).item()
        highs += [] if last is None else [last]
    return (min(lows), max(highs)) if lows else None


def _gpus_by_model(nodes: pl.DataFrame) -> dict[str, int]:
    rows = (
        nodes.filter(pl.col("gpu_count") > 0)
        .group_by(pl.col("gpu_model").fill_null("unknown"))
        .agg(pl.col("gpu_count").sum())
    )
    return dict(sorted(rows.iter_rows(), key=lambda r: (-r[1], r[0])))


def _counts(trace: Trace, table: str, column: str) -> dict[str, int]:
    rows = trace.collect(trace.scan(table).group_by(pl.col(column).cast(pl.String)).len())
    return dict(sorted(rows.iter_rows(), key=lambda r: (-r[1], r[0])))


def _distribution(values: pl.Series) -> dict[str, float] | None:
    values = values.drop_nulls()
    if values.is_empty():
        return None
    result: dict[str, float] = {"count": values.len(), "mean": float(values.mean())}  # type: ignore[arg-type]
    known = values.cast(pl.Float64).to_numpy()
    for name, q in _QUANTILES.items():
        result[name] = percentile(known, q)
    result["max"] = float(values.max())  # type: ignore[arg-type]
    result["zero_share"] = float((values == 0).mean())  # type: ignore[arg-type]
    return result
