"""Arguments and options that several verbs take, each declared once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from gputwin.simulation.scenario import Scenario

TraceArgument = Annotated[
    list[str], typer.Argument(metavar="TRACE", help="Trace directory, synthetic:NAME, or raw files.")
]
ClusterOption = Annotated[
    str | None,
    typer.Option("--cluster", help="YAML spec, node file, or a built-in; the trace's own nodes when not given."),
]
Order = Annotated[
    str | None, typer.Option("--order", help="Who goes next; NAME or NAME:parameter=value.", show_default="fifo")
]
Placement = Annotated[
    str | None,
    typer.Option("--placement", help="Where it goes; NAME or NAME:parameter=value.", show_default="first-fit"),
]
Backfill = Annotated[str | None, typer.Option("--backfill", help="Who may overtake.", show_default="greedy")]
Policies = Annotated[
    list[Path] | None, typer.Option("--policies", help="Python file with policies of your own; repeatable.")
]


def scenario_from(
    context: typer.Context,
    trace: Sequence[str],
    policies: Sequence[Path] | None,
    fields: Mapping[str, Any],
    beside: Sequence[str] = (),
) -> Scenario:
    """Return the scenario that the options describe, or the one in the YAML file that stands instead of a trace.

    `fields` are the scenario's as the options give them; `beside` names the options that say nothing of a scenario and
    may stand beside a file.
    """
    from gputwin.core.errors import InputError, UserError
    from gputwin.simulation.scenario import FILE_ENDINGS, read_scenario, scenario_of

    files = [str(path) for path in policies or ()]
    if len(trace) == 1 and trace[0].endswith(FILE_ENDINGS):
        ours = ("trace", "policies", "output", "json", "quiet", *beside)
        given = [
            option.opts[-1]
            for option in context.command.params
            if option.name not in ours and _is_given(context, str(option.name))
        ]
        if given:
            raise UserError(f"{trace[0]} says it all; put {', '.join(given)} into the file")
        scenario = read_scenario(Path(trace[0]))
        try:
            return scenario.with_(policies=[*scenario.policies, *files]).check()
        except InputError as error:
            raise InputError(error.problem, file=trace[0], field=error.field, remedy=error.remedy) from None
    named = trace[0] if len(trace) == 1 else list(trace)
    known = {k: v for k, v in fields.items() if v is not None}
    return scenario_of({"trace": named, "policies": files, **known}).check()


def given_options(context: typer.Context) -> dict[str, str]:
    """Return the options that were given, and not left at their defaults: how each is written, by name."""
    return {str(o.name): o.opts[-1] for o in context.command.params if _is_given(context, str(o.name))}


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def keep_apart(traces: Sequence[str], *folders: Path) -> None:
    """Raise a user error where a result would be written over a trace that it is made from."""
    from gputwin.core.errors import UserError

    own = {Path(name).resolve() for name in traces}
    for folder in folders:
        if folder.resolve() in own:
            raise UserError(f"'{folder}' is the trace itself and would be lost; name another folder")
