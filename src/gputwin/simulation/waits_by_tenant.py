"""Per tenant in a run: who waits, by which causes, and who holds what others wait for.

Waiting that no holder of GPUs causes (quota or fairness, nodes that start or are down) is not charged to anybody: of each
job's waiting, the share of the other causes is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from gputwin.analysis.blocking import blocking
from gputwin.analysis.tenants import begins, does, remarks_on, with_charges
from gputwin.analysis.words import share
from gputwin.core.display import Shown
from gputwin.core.errors import UserError, shorten
from gputwin.core.units import HOUR, WHOLE_GPU_MILLI
from gputwin.simulation.cause_words import cause_words, has_rounds
from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES
from gputwin.simulation.held import gpus_held
from gputwin.simulation.result import SimulationResult

NOT_BY_HOLDERS = ("quota_or_fairness", "node_startup", "outage")
_MUCH = 0.1


@dataclass(frozen=True, repr=False)
class TenantView(Shown):
    """`tenants` one row each, `blocking` GPU-hours by waiting and holding tenant, `causes` GPU-hours by tenant and cause."""

    tenants: pl.DataFrame
    blocking: pl.DataFrame
    causes: pl.DataFrame
    who: str = "tenant"
    """What a tenant is: user, where the trace names no tenants."""
    has_rounds: bool = False
    """Whether plans of rounds say who has GPUs."""

    def _title(self) -> str:
        return f"{self.tenants.height:,} {self.who}s"

    def _lines(self) -> list[str]:
        return self.sentences()

    def sentences(self) -> list[str]:
        """Return what the tables say."""
        by_rules = self._not_by_holders()
        if by_rules and not self.blocking["gpu_hours"].sum():
            # Under quotas and plans others hold GPUs too; only no waiting is charged to them.
            return by_rules
        return [*by_rules, *(remark.text for remark in remarks_on(self.tenants, self.blocking, self.who))]

    def _not_by_holders(self) -> list[str]:
        """Return who waits most for something else than GPUs that others hold, where that is much of all waiting."""
        other = self.causes.filter(pl.col("cause").is_in(NOT_BY_HOLDERS))
        total = float(self.causes["gpu_hours"].sum())
        if not total or float(other["gpu_hours"].sum()) < _MUCH * total:
            return []
        top = other.sort("gpu_hours", "tenant", descending=[True, False]).row(0, named=True)
        cause = cause_words(top["cause"], self.has_rounds)
        return [
            f"{begins(does(top['tenant'], 'wait', self.who))} {top['gpu_hours']:,.0f} GPU-hours {cause}, "
            f"{share(top['gpu_hours'] / total)} of all waiting."
        ]

    def of(self, tenant: str) -> TenantView:
        """Return the part about one tenant: its row, whom it waits for and who waits for it, and its causes."""
        if tenant not in self.tenants["tenant"]:
            known = shorten(", ".join(self.tenants["tenant"].head(10)), 200)
            raise UserError(f"the run has no {self.who} '{shorten(tenant)}'; it has {known}")
        about = (pl.col("waiting") == tenant) | (pl.col("holding") == tenant)
        only = pl.col("tenant") == tenant
        return replace(
            self,
            tenants=self.tenants.filter(only),
            blocking=self.blocking.filter(about),
            causes=self.causes.filter(only),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the tables as plain data."""
        return {
            "tenants": self.tenants.to_dicts(),
            "blocking": self.blocking.to_dicts(),
            "wait_causes_by_tenant": self.causes.to_dicts(),
        }


def owner_of(result: SimulationResult) -> str:
    """Return what a tenant of the run is in its trace: tenant, or user where the trace names no tenants."""
    return str(result.manifest.get("tenants_are", "tenant"))


def by_tenant(result: SimulationResult, use: pl.DataFrame | None = None) -> TenantView:
    """Return waiting and holding per tenant of a run; `use` (`use_of` of the trace) adds what they used of their GPUs."""
    jobs = result.jobs.with_row_index("job").with_columns(
        (pl.col("gpu_milli") / WHOLE_GPU_MILLI).alias("gpus"), pl.col("tenant").fill_null("unknown")
    )
    segments = _segments(result, jobs)
    charges = blocking(_waits(result, jobs, segments), _holds(segments))
    tenants = with_charges(_totals(jobs, segments, use), charges)
    return TenantView(tenants, charges, _causes(jobs), owner_of(result), has_rounds(result))


def _segments(result: SimulationResult, jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the run's segments with tenant, GPUs held and their model."""
    last = pl.col("end_time").filter(pl.col("end_time").is_finite()).max()
    return (
        result.segments.with_columns(_held(result))
        .join(jobs.select("job", "job_id", "tenant"), on="job", maintain_order="left")
        .with_columns(pl.when(pl.col("end_time").is_finite()).then("end_time").otherwise(last).alias("end_time"))
    )


def _held(result: SimulationResult) -> list[pl.Series]:
    """Return the GPUs that each segment holds, and the model of its first instance's node."""
    placements = result.placements
    segment = placements["segment"].to_numpy()
    node = np.full(result.segments.height, -1, np.int64)
    # The last to be written stays, so the first instance is written last.
    node[segment[::-1]] = placements["node"].to_numpy()[::-1]
    numbers = pl.Series(node).replace(-1, None)
    return [
        pl.Series("gpus", gpus_held(result.segments, placements)),
        result.nodes["gpu_model"].gather(numbers).alias("gpu_model"),
    ]


def _holds(segments: pl.DataFrame) -> pl.DataFrame:
    return segments.select(
        "tenant",
        pl.col("start_time").alias("start"),
        pl.col("end_time").alias("end"),
        "gpus",
        pl.col("gpu_model").alias("model"),
    )


def _waits(result: SimulationResult, jobs: pl.DataFrame, segments: pl.DataFrame) -> pl.DataFrame:
    """Return when each job waited: before it first ran, and between a stop and the next start."""
    every = sorted(set(result.nodes["gpu_model"].drop_nulls()))
    models = pl.col("models").first()
    is_any = models.list.sort().list.join("|") == "|".join(every)
    allowed = result.groups.group_by("shape", maintain_order=True).agg(
        pl.when(~is_any).then(models.list.join("|")).alias("allowed")
    )
    columns = ["job", "tenant", "submit_time", "gpus", "shape", _charged_share(jobs)]
    waiting = jobs.filter(pl.col("wait_seconds") > 0).select(columns)
    stretches = segments.select("job", "start_time", "end_time").sort("job", "start_time")
    is_first = pl.col("job") != pl.col("job").shift(1, fill_value=-1)
    before = pl.when(is_first).then("submit_time").otherwise(pl.col("end_time").shift(1))
    found = stretches.join(waiting, on="job", how="inner", maintain_order="left").with_columns(before.alias("since"))
    found = found.join(allowed, on="shape", how="left", maintain_order="left")
    return found.select(
        "tenant",
        pl.col("since").alias("start"),
        pl.col("start_time").alias("end"),
        (pl.col("gpus") * pl.col("charged")).alias("gpus"),
        "allowed",
    )


def _charged_share(jobs: pl.DataFrame) -> pl.Expr:
    columns = [f"wait_{name}_seconds" for name in NOT_BY_HOLDERS if f"wait_{name}_seconds" in jobs.columns]
    if not columns:
        return pl.lit(1.0).alias("charged")
    return (1.0 - pl.sum_horizontal(columns) / pl.col("wait_seconds")).clip(0.0, 1.0).alias("charged")


def _totals(jobs: pl.DataFrame, segments: pl.DataFrame, use: pl.DataFrame | None) -> pl.DataFrame:
    ran = pl.col("end_time") - pl.col("start_time")
    held = segments.group_by("tenant", maintain_order=True).agg(
        ((ran * pl.col("gpus")).sum() / HOUR).alias("gpu_hours")
    )
    wait = pl.col("wait_seconds")
    table = jobs.group_by("tenant", maintain_order=True).agg(
        pl.len().alias("jobs"),
        wait.mean().alias("mean_wait_seconds"),
        wait.quantile(0.95, "linear").alias("p95_wait_seconds"),
    )
    table = table.join(held, on="tenant", how="left").with_columns(pl.col("gpu_hours").fill_null(0.0))
    if use is None or not use["gpu_asked"].is_not_null().any():
        return table
    seconds = segments.group_by("job_id", "tenant", maintain_order=True).agg(ran.sum().alias("seconds"))
    both = seconds.join(use.filter(pl.col("gpu_asked") > 0), on="job_id")
    asked, used = ((pl.col(c) * pl.col("seconds")).sum() for c in ("gpu_asked", "gpu_used"))
    return table.join(
        both.group_by("tenant", maintain_order=True).agg((used / asked).alias("used_share")), on="tenant", how="left"
    )


def _causes(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return GPU-hours waited by tenant and cause."""
    columns = {f"wait_{name}_seconds": name for name in CAUSE_NAMES if f"wait_{name}_seconds" in jobs.columns}
    if not columns:
        return pl.DataFrame(schema={"tenant": pl.String, "cause": pl.String, "gpu_hours": pl.Float64})
    hours = [((pl.col(c) * pl.col("gpus")).sum() / HOUR).alias(name) for c, name in columns.items()]
    wide = jobs.filter(pl.col("wait_seconds") > 0).group_by("tenant", maintain_order=True).agg(hours)
    long = wide.unpivot(index="tenant", variable_name="cause", value_name="gpu_hours").filter(pl.col("gpu_hours") > 0)
    return long.sort(["tenant", "gpu_hours"], descending=[False, True])
