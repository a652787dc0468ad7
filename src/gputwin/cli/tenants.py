"""Tenants in a terminal: who waits, who holds what others wait for, and what they use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gputwin.cli.console import emit, say, table
from gputwin.core.units import format_duration

if TYPE_CHECKING:
    import polars as pl

    from gputwin.simulation.result import SimulationResult
    from gputwin.simulation.waits_by_tenant import TenantView

_ROWS = 8


def show_tenants(view: TenantView, rows: int = _ROWS) -> None:
    """Print a run's tenants in two tables and what they say; nothing where there is one tenant only."""
    if view.tenants.height < 2:
        return
    show_tenant_tables(view.tenants, view.blocking, rows)
    for sentence in view.sentences():
        say(f"· {sentence}")


def explain_tenants(result: SimulationResult, tenant: str | None, as_json: bool) -> None:
    """Print who waits for whom in a run, for all tenants or one of them."""
    from gputwin.simulation.waits_by_tenant import by_tenant

    view = by_tenant(result)
    if tenant is None:
        emit(view.to_json(), as_json, lambda: show_tenants(view, 2 * _ROWS))
        return
    part = view.of(tenant)

    def render() -> None:
        row = part.tenants.row(0, named=True)
        waits = f"waits {format_duration(row['mean_wait_seconds'])} on average ({_hours(row['waited_gpu_hours'])} GPU-hours)"
        say(f"{tenant} {waits}; others wait {_hours(row['others_wait_gpu_hours'])} GPU-hours for what it holds")
        for title, of, other in (
            (f"Whom {tenant} waits for", "waiting", "holding"),
            (f"Who waits for {tenant}", "holding", "waiting"),
        ):
            pairs = [r for r in part.blocking.to_dicts() if r[of] == tenant]
            table(
                title, ["tenant", "GPU-hours of waiting"], [[r[other], f"{r['gpu_hours']:,.1f}"] for r in pairs[:_ROWS]]
            )
        causes = [[r["cause"].replace("_", " "), f"{r['gpu_hours']:,.1f}"] for r in part.causes.to_dicts()]
        table(f"Why {tenant} waits", ["cause", "GPU-hours of waiting"], causes)

    emit(part.to_json(), as_json, render)


def show_tenant_tables(tenants: pl.DataFrame, blocking: pl.DataFrame, rows: int = _ROWS) -> None:
    """Print one row per tenant, and the pairs with most GPU-hours of waiting."""
    with_use = "used_share" in tenants.columns
    columns = ["tenant", "jobs", "GPU-hours", "mean wait", "p95 wait", "waits, GPU-h", "others wait for it, GPU-h"]
    shown = [
        [
            r["tenant"],
            f"{r['jobs']:,}",
            f"{r['gpu_hours']:,.0f}",
            format_duration(r["mean_wait_seconds"]),
            format_duration(r["p95_wait_seconds"]),
            _hours(r["waited_gpu_hours"]),
            _hours(r["others_wait_gpu_hours"]),
            *([_share(r["used_share"])] if with_use else []),
        ]
        for r in tenants.head(rows).to_dicts()
    ]
    more = f": the {rows} others wait for most, of {tenants.height:,}" if tenants.height > rows else ""
    table(f"Tenants{more}", [*columns, *(["used"] if with_use else [])], shown)
    if blocking.height:
        pairs = [[r["waiting"], r["holding"], f"{r['gpu_hours']:,.1f}"] for r in blocking.head(rows).to_dicts()]
        title = "Who waits while whose jobs hold GPUs"
        table(title, ["waiting", "GPUs held by", "GPU-hours of waiting"], pairs)


def _hours(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"
