"""How a run looks in a terminal: the verdict, waits and their causes, the cluster, tenants."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gputwin.cli.console import say, show
from gputwin.cli.settings import settings

if TYPE_CHECKING:
    from gputwin.report.page import Prose, TablePart
    from gputwin.simulation.result import SimulationResult
    from gputwin.simulation.waits_by_tenant import TenantView
    from gputwin.studies.comparison import Comparison


def show_run(
    result: SimulationResult, view: TenantView, output: Path | None, compared: Comparison | None = None
) -> None:
    """Print a run; where another is given, how it compares comes first and the run itself is cut short."""
    from gputwin.cli.show import show_comparison
    from gputwin.report.sections.quota_tree import quota_parts
    from gputwin.report.sections.run import causes_tables, waits_table
    from gputwin.simulation.verdict import rules_words, run_verdict

    s, m = result.summary, result.manifest
    if compared is not None:
        show_comparison(compared)
    say(run_verdict(result).text)
    if view.tenants.height > 1:
        for sentence in view.sentences():
            say(f"· {sentence}")
    say(f"{s['jobs']:,} jobs on {m['cluster']} ({m['nodes']:,} nodes, {m['gpus']:,} GPUs): {rules_words(result)}")
    if s["jobs_already_running"]:
        say(
            f"{s['jobs_already_running']:,} of them ran when the trace began: they hold their place from then on and "
            "count as waiting only where there was no room for them"
        )
    brief = compared is not None and not settings().full
    if not brief:
        show(waits_table(result))
    for shown in causes_tables(result):
        show(shown)
    if brief:
        say("the run's quantiles, cluster, stops and tenants: --full")
    else:
        _show_details(result, view)
        _show_parts(quota_parts(result))
    for why, count in s["tasks_left_out"].items():
        say(f"{count:,} tasks not simulated: {why}")
    if output is not None:
        say(f"run: {output}")


def _show_details(result: SimulationResult, view: TenantView) -> None:
    """Print outcomes, the cluster, what interrupted jobs, power and tenants."""
    from gputwin.cli.tenants import show_tenant_tables
    from gputwin.report.sections.run_details import details_parts
    from gputwin.report.sections.tenants import NO_TENANTS
    from gputwin.simulation.verdict import shares_words

    cluster, *others = details_parts(result)
    _show_parts([cluster])
    if line := shares_words(result.summary.get("tenant_shares"), view.who):
        say(line)
    _show_parts(others)
    if view.tenants.height > 1:
        if view.who != "tenant":
            say(NO_TENANTS)
        show_tenant_tables(view.tenants, view.blocking, who=view.who)


def _show_parts(parts: Sequence[TablePart | Prose]) -> None:
    from gputwin.core.table import Table

    for part in parts:
        if isinstance(part, Table):
            show(part)
        else:
            say(part.text)
