"""What each scenario does to each tenant's waits."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.tenants import UNKNOWN, does
from gputwin.core.units import format_duration
from gputwin.simulation.waits_by_tenant import owner_of
from gputwin.studies.comparison.compare import Comparison
from gputwin.studies.comparison.verdict import choice

_FEW = 4
_WORTH_TELLING = 0.1
"""Changes of a tenant's mean wait below this share of it, and below a second, are not mentioned."""


def waits_by_tenant(compared: Comparison) -> pl.DataFrame:
    """Return `tenant`, `jobs` per replicate and the mean wait (s) under each scenario, tenants with most jobs first."""
    table = None
    for label in compared.labels:
        jobs = pl.concat(
            run.jobs.select(pl.col("tenant").fill_null(UNKNOWN), "wait_seconds")
            for run in compared.runs
            if run.label == label
        )
        found = jobs.group_by("tenant", maintain_order=True).agg(
            (pl.len() // compared.replicates).alias("jobs"), pl.col("wait_seconds").mean().alias(label)
        )
        if table is None:
            table = found
        else:
            table = table.join(found.drop("jobs"), on="tenant", how="left", maintain_order="left")
    assert table is not None
    return table.sort(["jobs", "tenant"], descending=[True, False])


def compared_owner(compared: Comparison) -> str:
    """Return what a tenant of the runs is in their trace: tenant, or user where it names no tenants."""
    return owner_of(compared.runs[0].result)


def tenant_changes(compared: Comparison) -> list[str]:
    """Return which tenant gains most and which loses most against the baseline, in job-seconds of wait.

    For each scenario; of more than a few, for the one to choose.
    """
    table, base = waits_by_tenant(compared), compared.baseline
    if table.height < 2:
        return []
    who = compared_owner(compared)
    sentences, alike = [], []
    others = compared.labels[1:] if len(compared.labels) <= _FEW else (str(choice(compared)["scenario"]),)
    for label in (name for name in others if name != base):
        change = (pl.col(label) - pl.col(base)).alias("change")
        shown = table.with_columns(change).filter(
            (pl.col("change").abs() > _WORTH_TELLING * pl.col(base)) & (pl.col("change").abs() > 1.0)
        )
        if shown.is_empty():
            alike.append(label)
            continue
        ranked = shown.sort(pl.col("change") * pl.col("jobs")).to_dicts()
        extremes = [
            r
            for r, is_shown in ((ranked[0], ranked[0]["change"] < 0), (ranked[-1], ranked[-1]["change"] > 0))
            if is_shown
        ]
        words = [
            f"{does(r['tenant'], 'wait', who)} {format_duration(r[label])} instead of {format_duration(r[base])} on average"
            for r in extremes
        ]
        gain, lose = (sum(1 for r in ranked if (r["change"] < 0) == is_gain) for is_gain in (True, False))
        sentences.append(
            f"{label}: {'; '.join(words)}. {gain:,} {who}s wait less, {lose:,} longer, by a tenth or more."
        )
    if alike:
        sentences.append(f"{', '.join(alike)}: no {who}'s mean wait changes by more than a tenth.")
    return sentences
