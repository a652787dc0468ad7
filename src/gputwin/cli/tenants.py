"""Tenants in a terminal: who waits, who holds what others wait for, and what they use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gputwin.cli.console import emit, say, show, table
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
    for sentence in view.sentences():
        say(f"· {sentence}")
    show_tenant_tables(view.tenants, view.blocking, rows, view.who)


def explain_tenants(result: SimulationResult, tenant: str | None, as_json: bool) -> None:
    """Print who waits for whom in a run, for all tenants or one of them."""
    from gputwin.simulation.cause_words import cause_words
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
                title, [part.who, "GPU-hours of waiting"], [[r[other], f"{r['gpu_hours']:,.1f}"] for r in pairs[:_ROWS]]
            )
        causes = [[cause_words(r["cause"], part.has_rounds), f"{r['gpu_hours']:,.1f}"] for r in part.causes.to_dicts()]
        table(f"Why {tenant} waits", ["waits", "GPU-hours of waiting"], causes)

    emit(part.to_json(), as_json, render)


def show_tenant_tables(tenants: pl.DataFrame, blocking: pl.DataFrame, rows: int = _ROWS, who: str = "tenant") -> None:
    """Print one row per tenant, and the pairs with most GPU-hours of waiting."""
    from gputwin.report.sections.tenants import tenant_tables

    for shown in tenant_tables(tenants, blocking, rows, who):
        show(shown)


def _hours(value: float | None) -> str:
    return "–" if value is None else f"{value:,.1f}"
