"""`gputwin study`: run a study file, go on where it was ended, and say what to choose."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gputwin.cli.console import Json, Quiet, announce_compilation, emit, progress, say, show

if TYPE_CHECKING:
    from gputwin.studies.study import StudyOutcome
    from gputwin.studies.study.run import Progress

_SHOWN = 12


def run(
    file: Annotated[Path | None, typer.Argument(metavar="STUDY.yaml", help="What to run; see docs/studies.md.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Folder of runs and reports; $GPUTWIN_RUNS or runs."),
    ] = None,
    executor: Annotated[
        str, typer.Option("--executor", help="processes of this machine, or dask://host:port.")
    ] = "processes",
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes to use; one a processor where not given.")
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of a study file and end.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run every scenario of a study on every seed, compare them, and write a report.

    Each run is kept as it ends, under a key of what it is made from: run the study again, after Ctrl-C, a crash or a
    change of its file, and only what is missing is run.

    Examples:

        gputwin study schedulers.yaml -o runs

        gputwin study schedulers.yaml -o runs --executor dask://head:8786

        gputwin study --schema > study.schema.json
    """
    from gputwin.core.errors import UserError
    from gputwin.report.study import write_study
    from gputwin.studies.store import RunStore
    from gputwin.studies.study import read_study, run_study, study_schema
    from gputwin.studies.study.executors import open_executor
    from gputwin.studies.study.run import default_folder

    if schema:
        sys.stdout.write(study_schema() + "\n")
        return
    if file is None:
        raise UserError("name a study file; see: gputwin study --help")
    described = read_study(file)
    announce_compilation(quiet or json)
    store = RunStore(output or default_folder())
    with open_executor(executor) as pool, _watched(quiet or json) as (step, watch):
        outcome = run_study(described, store, file=file, executor=pool, workers=workers, progress=step, watch=watch)
    with progress(quiet or json) as told:
        told("comparing")
        report, found = write_study(store.folder / "studies" / described.name, outcome, told)
    data = {**found, "made": outcome.made, "report": str(report), "directory": str(store.folder)}
    emit(data, json, lambda: _render(outcome, report, store.folder), outcome.compared.means)


@contextmanager
def _watched(silent: bool) -> Iterator[tuple[Callable[[str], None], Callable[[Progress], None]]]:
    """Yield functions that show the step, and the table of scenarios as their runs end, on a terminal's stderr."""
    from gputwin.cli.settings import settings

    if silent or settings().verbose or not sys.stderr.isatty():
        with progress(silent) as say_step:
            share = "simulated {0.done} of {0.total} runs"
            yield say_step, lambda state: say_step(share.format(state), state.done / state.total)
        return
    from rich.console import Console, Group
    from rich.live import Live
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("{task.description}"), BarColumn(bar_width=30), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    task = bar.add_task("starting", total=None)
    with Live(bar, console=Console(stderr=True), transient=True, refresh_per_second=4) as live:

        def step(text: str) -> None:
            bar.update(task, description=text)

        def watch(state: Progress) -> None:
            bar.update(task, total=state.total, completed=state.done)
            live.update(Group(_live_table(state), bar))

        yield step, watch


def _live_table(state: Progress) -> Any:
    """Return the scenarios that have runs, shortest mean wait first."""
    from rich.table import Table

    from gputwin.core.units import format_duration

    rows = []
    for label in state.labels:
        waits = [w for figures in state.figures[label] if (w := figures["mean wait"]) is not None]
        if waits:
            rows.append((sum(waits) / len(waits), label, len(state.figures[label])))
    each = state.total // len(state.labels)
    grid = Table("scenario", "runs", "mean wait", box=None, header_style="bold")
    for wait, label, count in sorted(rows)[:_SHOWN]:
        grid.add_row(label, f"{count} of {each}", format_duration(wait))
    if len(state.labels) > _SHOWN:
        grid.caption = f"the best {min(_SHOWN, len(rows))} of {len(state.labels)} so far"
    return grid


def _render(outcome: StudyOutcome, report: Path, folder: Path) -> None:
    from gputwin.report.sections.comparison import differences
    from gputwin.report.study import all_table, job_table, shown_labels
    from gputwin.studies.study.verdict import verdict_of

    study, compared = outcome.planned.study, outcome.compared
    verdict = verdict_of(compared, study.limits)
    say(verdict.text)
    if verdict.front_text:
        say(f"· {verdict.front_text}")
    show(all_table(compared, verdict, bool(study.limits)))
    if len(compared.labels) > 1:
        shown = compared.only(shown_labels(compared, verdict))
        show(differences(shown))
        show(job_table(shown))
    total = len(outcome.planned.keys)
    say(f"{total:,} runs, {outcome.made:,} made now; list them with: gputwin runs list --runs {folder}")
    say(f"report: {report}")
