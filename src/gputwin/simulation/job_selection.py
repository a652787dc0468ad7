"""Jobs of a run, chosen and sorted, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES
from gputwin.simulation.result import SimulationResult

SORTS = (
    "submit_time",
    "wait_seconds",
    "jct_seconds",
    "bounded_slowdown",
    "gpus",
    "duration_seconds",
    "job_id",
    "tenant",
)


@dataclass(frozen=True)
class JobQuery:
    """Which jobs: text in their id, a tenant, an outcome, a cause they waited for most, a least wait (s)."""

    text: str = ""
    tenant: str = ""
    outcome: str = ""
    cause: str = ""
    least_wait: float = 0.0
    sort: str = "wait_seconds"
    descending: bool = True
    offset: int = 0
    limit: int = 50


def select_jobs(result: SimulationResult, query: JobQuery) -> tuple[int, pl.DataFrame]:
    """Return how many jobs there are of the kind, and one page of them: row, job_id, …, main_cause."""
    if query.sort not in SORTS:
        raise UserError(f"jobs cannot be sorted by '{query.sort}'; use: {', '.join(SORTS)}")
    causes = {name: f"wait_{name}_seconds" for name in CAUSE_NAMES if f"wait_{name}_seconds" in result.jobs.columns}
    jobs = result.jobs.lazy().with_row_index("row").with_columns((pl.col("gpu_milli") / WHOLE_GPU_MILLI).alias("gpus"))
    jobs = jobs.with_columns(_main_cause(causes).alias("main_cause"))
    if query.text:
        jobs = jobs.filter(pl.col("job_id").str.contains(query.text, literal=True))
    for column, wanted in (("tenant", query.tenant), ("outcome", query.outcome), ("main_cause", query.cause)):
        if wanted:
            jobs = jobs.filter(pl.col(column) == wanted)
    if query.least_wait > 0:
        jobs = jobs.filter(pl.col("wait_seconds") >= query.least_wait)
    columns = ("row", "job_id", "tenant", "outcome", "submit_time", "start_time", "end_time", "wait_seconds")
    more = ("jct_seconds", "duration_seconds", "bounded_slowdown", "instances", "gpus", "main_cause")
    found = jobs.select(*columns, *more).sort(
        [query.sort, "row"], descending=[query.descending, False], nulls_last=True
    )
    frame = found.collect()
    return frame.height, frame.slice(query.offset, query.limit)


def _main_cause(causes: dict[str, str]) -> pl.Expr:
    """Return the cause of most of each job's wait; null where it did not wait."""
    if not causes:
        return pl.lit(None, dtype=pl.String)
    columns = list(causes.values())
    most = pl.max_horizontal(columns)
    chosen: pl.Expr = pl.lit(None, dtype=pl.String)
    for name, column in reversed(causes.items()):
        chosen = pl.when((pl.col(column) == most) & (most > 0)).then(pl.lit(name)).otherwise(chosen)
    return chosen
