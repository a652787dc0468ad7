"""`gputwin reproduce schedulers`: about twenty-five schedulers in one table, and what of the literature holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gputwin.cli.console import Json, Quiet, Seed, announce_compilation, emit, progress, say, table


def add_to(app: typer.Typer) -> None:
    """Add this command to `gputwin reproduce`."""
    app.command("schedulers")(schedulers)


def schedulers(
    philly: Annotated[
        Path | None,
        typer.Option("--philly", help="Jobs of Microsoft Philly; synthetic ones where not given."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", min=100, help="Jobs of each trace.")] = 10_000,
    load: Annotated[float, typer.Option("--load", min=0.1, max=2.0, help="Offered GPU load of the cluster.")] = 0.9,
    policy: Annotated[list[str] | None, typer.Option("--policy", help="Only these schedulers; repeatable.")] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE.md", help="Also write tables and text as Markdown.")
    ] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="Processes to use.")] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare schedulers on synthetic PAI 2020 and on Philly: completion, waits, fairness, fragmentation, energy.

    Clusters are sized so that the jobs offer them the load. What the literature says of one scheduler against another is
    judged by the figures. Takes longer the first time, when the engine is compiled.

    Examples:

        gputwin reproduce schedulers --philly philly_jobs_by_vc.csv

        gputwin reproduce schedulers --jobs 2000 --policy fifo --policy sjf --policy srtf --json
    """
    from gputwin.core.atomic import atomic_file
    from gputwin.studies.schedulers.contenders import CONTENDERS
    from gputwin.studies.schedulers.settings import recorded_setting, synthetic_setting
    from gputwin.studies.schedulers.study import COLUMNS, TIMES, compare_schedulers, contenders_named, tables_markdown

    chosen = contenders_named(policy) if policy else CONTENDERS
    announce_compilation(quiet or json)
    with progress(quiet or json) as step:
        step("choosing clusters")
        settings = [synthetic_setting("pai2020", jobs, seed, load)]
        if philly is None:
            settings.append(synthetic_setting("philly", jobs, seed, load))
        else:
            settings.append(recorded_setting("philly", str(philly), jobs, seed, load))
        compared = compare_schedulers(settings, chosen, seed=seed, workers=workers, progress=step)
    if output is not None:
        with atomic_file(output) as fresh:
            fresh.write_text(tables_markdown(compared), encoding="utf-8")

    def render() -> None:
        for one in compared:
            say(one.verdict())
        if philly is None:
            say("Philly's jobs are synthetic: give --philly FILE for the recorded ones.")
        for one in compared:
            rows, later = one.rows(), COLUMNS[TIMES:]
            table(one.title(), COLUMNS[:TIMES], [row[:TIMES] for row in rows], "; ".join(one.setting.notes))
            table(f"{one.setting.name}: the cluster", ("policy", *later), [[row[0], *row[TIMES:]] for row in rows])
            for family, text in one.paragraphs().items():
                say(f"{family}: {text}")

    emit({"settings": [one.to_json() for one in compared]}, json, render)
