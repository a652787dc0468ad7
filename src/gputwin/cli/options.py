"""Arguments and options that several verbs take, each declared once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gputwin.simulation.run import Scheduler

TraceArgument = Annotated[
    list[str], typer.Argument(metavar="TRACE", help="Trace directory, synthetic:NAME, or raw files.")
]
ClusterOption = Annotated[
    str | None,
    typer.Option("--cluster", help="YAML spec, node file, or a built-in; the trace's own nodes when not given."),
]
Order = Annotated[str, typer.Option("--order", help="Who goes next; NAME or NAME:parameter=value.")]
Placement = Annotated[str, typer.Option("--placement", help="Where it goes; NAME or NAME:parameter=value.")]
Backfill = Annotated[str, typer.Option("--backfill", help="Who may overtake.")]
Policies = Annotated[
    list[Path] | None, typer.Option("--policies", help="Python file with policies of your own; repeatable.")
]


def scheduler(order: str, backfill: str, placement: str, policies: Sequence[Path] | None) -> Scheduler:
    """Return the rules the options name, after loading the user's own."""
    from gputwin.simulation.policy import load_policies, parse_policy
    from gputwin.simulation.run import Scheduler

    for path in policies or ():
        load_policies(path)
    order_name, order_parameters = parse_policy(order)
    placement_name, placement_parameters = parse_policy(placement)
    return Scheduler(order_name, backfill, placement_name, order_parameters, placement_parameters)
