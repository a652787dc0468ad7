"""The tree of tenants with quotas: what each may hold, holds, borrows and lends, summed up for groups."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gputwin.core.errors import UserError
from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.report.page import Prose, TablePart
from gputwin.report.sections.queue_tree import queue_tree
from gputwin.report.sections.quota_table import Held, quotas_of, tree_table
from gputwin.simulation.cluster_at import span_of
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.waits_by_tenant import owner_of

_NOTE = (
    "GPUs, as means over the run. Borrowed is what is held beyond the nominal quota; lent is the unused quota that others "
    "hold at that time, in proportion to what each leaves unused. Other {who} are not counted."
)


def quota_parts(result: SimulationResult) -> list[TablePart | Prose]:
    """Return the tree of the run's tenants with quotas, or of Kueue's queues; nothing where the rules have no quotas."""
    try:
        tree = quota_tree(result) or queue_tree(result)
    except UserError as error:
        return [Prose(f"There is no table of quotas: {error}.")]
    return [] if tree is None else [tree]


def quota_tree(result: SimulationResult) -> TablePart | None:
    """Return tenants with a quota or guarantee below their groups; None where the run's rules have none."""
    fairness = result.scenario.fairness if "scenario" in result.manifest else None
    terms = {} if fairness is None else fairness.tenants
    nominal = {
        n: g for n, t in terms.items() if (g := t.guaranteed if t.guaranteed is not None else t.gpus) is not None
    }
    if not nominal:
        return None
    groups = {name: tuple(part for part in terms[name].group.split("/") if part) for name in nominal}
    who = owner_of(result)
    held = _held(result, list(nominal))
    quotas = quotas_of(held, nominal, span_of(result))
    return tree_table(groups, quotas, held, who, f"{who}s with a quota", _NOTE.format(who=f"{who}s"))


def _held(result: SimulationResult, names: Sequence[str]) -> Held:
    """Return what these tenants held over time."""
    _, last = span_of(result)
    held = result.placements.group_by("segment").agg(
        ((pl.col("gpu_count").cast(pl.Int64) * pl.col("gpu_milli")).sum() / WHOLE_GPU_MILLI).alias("gpus")
    )
    rows = (
        result.segments.with_row_index("segment")
        .join(held, on="segment")
        .join(result.jobs.with_row_index("job").select("job", "tenant"), on="job")
        .filter(pl.col("tenant").is_in(names))
        .with_columns(pl.col("end_time").clip(upper_bound=last))
    )
    columns = rows["tenant"].replace_strict(names, range(len(names)), return_dtype=pl.Int64).to_numpy()
    times = (rows[name].to_numpy() for name in ("start_time", "end_time", "gpus"))
    return Held.of(names, columns, *times)
