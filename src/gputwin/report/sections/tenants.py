"""Tenants: who waits, who holds what others wait for, and how much of what they hold they use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from gputwin.analysis.blocking import NOBODY
from gputwin.analysis.tenants import UNKNOWN
from gputwin.analysis.topic import Remark
from gputwin.core.units import format_count, format_duration, percent
from gputwin.report import charts, matrices
from gputwin.report.page import FigurePart, Findings, Kind, Part, Prose, Section, TablePart
from gputwin.report.report_input import ReportInput
from gputwin.simulation.waits_by_tenant import TenantView
from gputwin.studies.comparison.compare import Comparison
from gputwin.studies.comparison.tenants import compared_owner, tenant_changes, waits_by_tenant

MOST_TENANTS = 12
NO_TENANTS = "The trace names no tenants, so each user counts as one: for waits, fair shares and quotas."
_FEW = 6
"""With more tenants, the numbers of a matrix of half the page's width are too small to read."""


def tenants(subject: ReportInput) -> Section | None:
    """Return the section on a trace's tenants; None where it does not tell them apart or nobody asks for GPUs."""
    topic = subject.analysis.topic("tenants")
    if topic is None:
        return None
    blocking = topic.table("blocking")
    found = topic.tables["tenants"]
    who = topic.title.removeprefix("Per ")
    parts = tenant_parts(found, pl.DataFrame() if blocking is None else blocking, who)
    what = "who holds GPUs" if blocking is None else "who waits for whom"
    return Section("tenants", f"{topic.title}: {what}", (*parts, Findings(topic.remarks)), topic.notes)


def run_tenants(view: TenantView) -> list[Part]:
    """Return the tenants of a run; nothing where there is only one."""
    if view.tenants.height < 2:
        return []
    remarks = tuple(Remark(text) for text in view.sentences())
    named = () if view.who == "tenant" else (Prose(NO_TENANTS),)
    parts = tenant_parts(view.tenants, view.blocking, view.who, "run-")
    return [*named, *parts, Findings(remarks, "What stands out")]


def tenant_parts(tenants: pl.DataFrame, blocking: pl.DataFrame, who: str = "tenant", of: str = "") -> list[Part]:
    """Return the charts and tables of tenants and of who waits for whom; ids of the charts begin with `of`.

    `who`: what they are called, as tenant or user.
    """
    parts: list[Part] = []
    charged = tenants.filter(pl.col("others_wait_gpu_hours").is_not_null()).head(MOST_TENANTS)
    if charged.height and float((charged["others_wait_gpu_hours"] + charged["waited_gpu_hours"]).sum()) > 0:
        columns = {"waited_gpu_hours": "waits", "others_wait_gpu_hours": "others wait for it"}
        figure = charts.bar_rows(charged, "tenant", columns, "GPU-hours")
        top = charged.row(0, named=True)
        caption = (
            f"While a job waits, its GPUs × time are charged to those who hold GPUs it could use. Others wait most for "
            f"{_owner(top['tenant'], who)}: {top['others_wait_gpu_hours']:,.0f} GPU-hours."
        )
        parts.append(
            FigurePart(f"{of}tenants", f"Waiting by {who}", figure, caption, charged, half=charged.height <= _FEW)
        )
        parts.append(_pairs_figure(blocking, charged["tenant"].to_list(), who, of))
    return [*parts, *tenant_tables(tenants, blocking, who=who)]


def _pairs_figure(blocking: pl.DataFrame, names: list[str], who: str, of: str) -> FigurePart:
    pairs = blocking.filter(pl.col("waiting").is_in(names) & pl.col("holding").is_in([*names, NOBODY]))
    held_by = [name for name in (*names, NOBODY) if name in set(pairs["holding"])]
    values = {(r["waiting"], r["holding"]): r["gpu_hours"] for r in pairs.to_dicts()}
    figure = matrices.amounts([n for n in names if n in set(pairs["waiting"])], held_by, values, "GPU-hours of waiting")
    top = pairs.sort("gpu_hours").row(-1, named=True) if pairs.height else None
    most = ""
    if top is not None:
        pair = f"{_owner(top['waiting'], who)} for {_owner(top['holding'], who)}"
        most = f" Most: {pair}, {top['gpu_hours']:,.0f} GPU-hours."
    caption = f"Rows wait while columns hold GPUs they could use; {who}s can wait for themselves.{most}"
    return FigurePart(
        f"{of}tenant-pairs", "Who waits for whom, GPU-hours", figure, caption, pairs, half=len(names) <= _FEW
    )


def tenant_tables(
    tenants: pl.DataFrame, blocking: pl.DataFrame, rows: int = MOST_TENANTS, who: str = "tenant"
) -> list[TablePart]:
    """Return one row per tenant, those first whom others wait for most, and the pairs with most GPU-hours of waiting."""
    known = {name: column for name, column in _COLUMNS.items() if column in _known(tenants)}
    shown = tuple(
        (r["tenant"], *(_FORMS.get(name, _hours)(r[column]) for name, column in known.items()))
        for r in tenants.head(rows).to_dicts()
    )
    most = f", {rows} of {tenants.height:,}" if tenants.height > rows else ""
    title, note = f"Largest {who}s{most}", "Held: GPU-hours."
    if "others waited" in known:
        title = f"{who.capitalize()}s that others wait for most{most}"
        note = "GPU-hours: held; waited for GPUs that somebody holds (not for a quota); others waited for what it held."
    note += " Used: share of the GPU time held." if "used" in known else ""
    kinds = {who: Kind.CODE} | dict.fromkeys(known, Kind.NUMBER)
    tables = [TablePart(title, kinds, shown, note)]
    if blocking.height:
        pairs = tuple((r["waiting"], r["holding"], f"{r['gpu_hours']:,.1f}") for r in blocking.head(rows).to_dicts())
        kinds = {"waiting": Kind.CODE, "GPUs held by": Kind.CODE, "GPU-hours of waiting": Kind.NUMBER}
        tables.append(TablePart("Who waits while whose jobs hold GPUs", kinds, pairs))
    return tables


def _owner(name: str, who: str) -> str:
    """Return whose GPUs, or who waits: of those whose name is not known there are several."""
    return f"unknown {who}s" if name == UNKNOWN else name


def _known(tenants: pl.DataFrame) -> set[str]:
    return {name for name in tenants.columns if tenants[name].is_not_null().any()}


def compared_tenants(compared: Comparison) -> list[Part]:
    """Return each tenant's mean wait under each scenario, those with most jobs first; nothing where there is only one."""
    table = waits_by_tenant(compared)
    if table.height < 2:
        return []
    who = compared_owner(compared)
    rows = tuple(
        (r["tenant"], *(format_duration(r[label]) for label in compared.labels), f"{r['jobs']:,}")
        for r in table.head(MOST_TENANTS).to_dicts()
    )
    most = f", the {MOST_TENANTS} of {table.height:,} with most jobs" if table.height > MOST_TENANTS else ""
    kinds = {who: Kind.CODE} | dict.fromkeys(compared.labels, Kind.NUMBER) | {"jobs": Kind.NUMBER}
    changes = tuple(Remark(text) for text in tenant_changes(compared))
    return [
        TablePart(f"Mean wait by {who}{most}", kinds, rows),
        *([Findings(changes, f"{who.capitalize()}s")] if changes else []),
    ]


def _hours(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"


def _share(value: float | None) -> str:
    return "–" if value is None else percent(value)


_COLUMNS = {
    "held": "gpu_hours",
    "used": "used_share",
    "mean wait": "mean_wait_seconds",
    "waited": "waited_gpu_hours",
    "others waited": "others_wait_gpu_hours",
    "jobs": "jobs",
    "p95 wait": "p95_wait_seconds",
}
_FORMS: Mapping[str, Callable[[Any], str]] = {
    "held": format_count,
    "used": _share,
    "jobs": format_count,
    "mean wait": format_duration,
    "p95 wait": format_duration,
}
