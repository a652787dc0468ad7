"""`gputwin runs`: the store of finished runs: what is there, one run, several side by side, and making room."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gputwin.cli.console import Json, Quiet, emit, say, show, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gputwin.studies.store import RunStore, StoredRun

app = typer.Typer(
    help="""Finished runs in a store: list, show, compare, prune.

    Examples:

        gputwin runs list --runs runs

        gputwin runs compare 3f2a91c0 b07d55e1 --runs runs
    """,
    no_args_is_help=True,
)
_SHORT = 8
Runs = Annotated[Path | None, typer.Option("--runs", metavar="DIR", help="Folder of runs; $GPUTWIN_RUNS or runs.")]
StudyName = Annotated[str | None, typer.Option("--study", metavar="NAME", help="Only runs that this study uses.")]


def _store(folder: Path | None) -> RunStore:
    from gputwin.studies.store import RunStore
    from gputwin.studies.study.run import default_folder

    store = RunStore(folder or default_folder(), create=False)
    store.recover()
    return store


@app.command("list")
def list_runs(
    runs: Runs = None,
    study: StudyName = None,
    trace: Annotated[str | None, typer.Option("--trace", help="Part of its name, or of its fingerprint.")] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", help="Name of the cluster.")] = None,
    where: Annotated[
        list[str] | None, typer.Option("--where", metavar="FIELD=VALUE", help="A scenario's field; repeatable.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="At most so many.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List finished runs, newest first.

    Examples:

        gputwin runs list --runs runs

        gputwin runs list --runs runs --study schedulers --where order=sjf --json
    """
    store = _store(runs)
    found = store.list(study=study, trace=trace, cluster=cluster, fields=_fields(where), limit=limit)
    emit({"runs": [run.to_json() for run in found]}, json, lambda: _show_list(found))


def _fields(where: Sequence[str] | None) -> dict[str, str]:
    from gputwin.core.errors import UserError

    found = {}
    for text in where or ():
        field, sign, value = text.partition("=")
        if not sign or not field:
            raise UserError(f"--where {text}: give FIELD=VALUE, as in order=sjf")
        found[field] = value
    return found


def _show_list(found: Sequence[StoredRun]) -> None:
    from gputwin.core.units import format_duration
    from gputwin.simulation.scenario import fields_apart

    count = len(found)
    say(f"{count:,} finished run{'' if count == 1 else 's'}.")
    if not found:
        return
    apart = fields_apart([run.scenario for run in found], ("trace_fingerprint",)) if count > 1 else [{}]
    rows = [
        [
            run.key[:_SHORT],
            ", ".join(f"{k} {v}" for k, v in fields.items() if k != "trace") or "–",
            f"{run.jobs:,}",
            format_duration(run.metrics.get("mean wait")),
            run.cluster,
            run.trace,
            " ".join(run.studies) or "–",
            f"{run.created:%Y-%m-%d %H:%M}",
        ]
        for run, fields in zip(found, apart, strict=True)
    ]
    table("Runs", ["key", "differs in", "jobs", "mean wait", "cluster", "trace", "study", "made (UTC)"], rows)


@app.command("show")
def show_run(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Key of a run, or its first digits.")],
    runs: Runs = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show one run: its scenario, its figures, and where it is.

    Examples:

        gputwin runs show 3f2a91c0 --runs runs

        gputwin runs show 3f2a91c0 --runs runs --json
    """
    from gputwin.report.sections.comparison import shown_metric

    store = _store(runs)
    run = store.find(key)

    def render() -> None:
        say(f"{run.jobs:,} jobs of {run.trace} on {run.cluster} ({run.nodes:,} nodes, {run.gpus:,} GPUs).")
        known = [(name, value) for name, value in run.metrics.items() if value is not None]
        table("Figures", ["metric", "value"], [[name, shown_metric(name, value)] for name, value in known])
        say("Scenario")
        say(run.scenario.to_yaml().rstrip())
        say(f"\nWhy a job waited: gputwin explain {run.folder} longest")

    emit({**run.to_json(), "summary": store.open(run.key).summary}, json, render)


@app.command("compare")
def compare_runs(
    keys: Annotated[list[str] | None, typer.Argument(metavar="KEY", help="Keys or their first digits.")] = None,
    runs: Runs = None,
    study: StudyName = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Put runs side by side; the first is the baseline. Runs on the same trace and seed are compared with each other.

    Examples:

        gputwin runs compare 3f2a91c0 b07d55e1 --runs runs

        gputwin runs compare --study schedulers --runs runs --json
    """
    from gputwin.core.errors import UserError
    from gputwin.report.sections.comparison import differences, side_by_side
    from gputwin.studies.comparison import compare, label_runs
    from gputwin.studies.comparison.verdict import recommendation
    from gputwin.studies.study.lazy import LazyResult

    store = _store(runs)
    if bool(keys) == bool(study):
        raise UserError("give keys of runs, or --study NAME")
    found = [store.find(key) for key in keys] if keys else list(store.of_study(study or ""))
    if len(found) < 2:
        raise UserError(f"{len(found)} runs: give two or more; see: gputwin runs list --runs {store.folder}")
    compared = compare(label_runs([LazyResult(run.folder) for run in found]))

    def render() -> None:
        say(recommendation(compared))
        show(side_by_side(compared))
        show(differences(compared))

    data = {
        "recommendation": recommendation(compared),
        **compared.to_json(),
    }
    emit(data, json, render)


@app.command("prune")
def prune_runs(
    keys: Annotated[list[str] | None, typer.Argument(metavar="KEY", help="Keys or their first digits.")] = None,
    runs: Runs = None,
    study: StudyName = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="Only runs made before, as in 30d.")
    ] = None,
    outdated: Annotated[
        bool,
        typer.Option("--outdated", help="Only runs of another version of the simulator, which nothing finds any more."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Remove the runs for which all that is given holds; a run that is in use stays.

    Examples:

        gputwin runs prune --older-than 30d --runs runs

        gputwin runs prune --outdated --dry-run --runs runs
    """
    from datetime import UTC, datetime, timedelta

    from gputwin.core.errors import UserError
    from gputwin.core.units import parse_duration

    store = _store(runs)
    before = None if older_than is None else datetime.now(UTC) - timedelta(seconds=parse_duration(older_than))
    if not (keys or study or before or outdated):
        raise UserError("say which runs: keys, --study, --older-than or --outdated")
    chosen = [store.find(key).key for key in keys] if keys else None
    gone = store.prune(keys=chosen, study=study, before=before, outdated=outdated, dry_run=dry_run)
    word = "would be removed" if dry_run else "removed"
    data = {
        "removed": [] if dry_run else [r.key for r in gone],
        "would_remove": [r.key for r in gone] if dry_run else [],
    }
    emit(data, json, lambda: say(f"{len(gone):,} run{'' if len(gone) == 1 else 's'} {word}."))
