"""What the work ran on: GPUs by model, and the types of nodes."""

from __future__ import annotations

import polars as pl

from gputwin.core.units import CORE_MILLI, MIB_PER_GIB
from gputwin.report import aggregates, figures
from gputwin.report.page import FigurePart, Kind, Part, Prose, Section, TablePart, number
from gputwin.report.subject import Subject

_MOST_TYPES = 30
_TYPE = ("gpu_model", "gpu_count", "gpu_memory_mib", "cpu_milli", "memory_mib")


def cluster(subject: Subject) -> Section | None:
    """Return the section on the cluster the load is checked against, else the trace's own; None without nodes."""
    nodes = subject.nodes
    if nodes.is_empty():
        return None
    parts: list[Part] = [Prose(_what(subject, nodes))]
    models = aggregates.gpus_by_model(nodes)
    if models.height > 1:
        total, top = int(models["gpus"].sum()), models.row(0, named=True)
        caption = f"{total:,} GPUs; the largest share is {top['model']}: {top['gpus']:,} ({top['gpus'] / total:.1%})."
        figure = figures.gpus_by_model(models)
        parts.append(FigurePart("gpus-by-model", "GPUs by model", figure, caption, models))
    return Section("cluster", "Cluster", (*parts, _types(nodes)))


def _what(subject: Subject, nodes: pl.DataFrame) -> str:
    counts = f"{nodes.height:,} nodes with {int(nodes['gpu_count'].sum()):,} GPUs"
    if subject.cluster is not None:
        return f"The cluster is {subject.cluster.name}: {counts}."
    return f"The trace's own node table has {counts}."


def _types(nodes: pl.DataFrame) -> TablePart:
    types = (
        nodes.group_by(_TYPE)
        .agg(pl.len().alias("nodes"))
        .sort(["nodes", *_TYPE], descending=[True] + [False] * len(_TYPE), nulls_last=True)
    )
    rows = [
        (
            r["gpu_model"] or ("unknown" if r["gpu_count"] else "none"),
            f"{r['gpu_count']:,}",
            _amount(r["gpu_memory_mib"], MIB_PER_GIB),
            _amount(r["cpu_milli"], CORE_MILLI),
            _amount(r["memory_mib"], MIB_PER_GIB),
            f"{r['nodes']:,}",
            f"{r['nodes'] * r['gpu_count']:,}",
        )
        for r in types.head(_MOST_TYPES).to_dicts()
    ]
    kinds = {"GPU model": Kind.TEXT} | dict.fromkeys(
        ("GPUs per node", "GiB per GPU", "cores", "memory, GiB", "nodes", "GPUs in all"), Kind.NUMBER
    )
    left = types.height - len(rows)
    return TablePart("Node types", kinds, tuple(rows), f"{left:,} rarer types are not listed." if left else "")


def _amount(value: int | None, unit: int) -> str:
    return number(None if value is None else value / unit)
