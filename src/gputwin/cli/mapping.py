"""The mapping of a table of the user's own: from the command line's options, and the guess as a table."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from gputwin.cli.console import say, table
from gputwin.core.errors import UserError

if TYPE_CHECKING:
    from gputwin.traces.readers.mapped import Mapping


def mapping_of(
    text: str | None, file: Path | None, guess: bool, rows_become: str | None, zone: str | None
) -> Mapping | None:
    """Return the mapping that `--map` spells; None where there is none or it comes as a file."""
    if sum((text is not None, file is not None, guess)) > 1:
        raise UserError("--map, --map-file and --guess exclude one another; give one of them")
    if rows_become is not None or zone is not None:
        from gputwin.traces.readers.mapped.mapping import check_table, check_zone

        if rows_become is not None:
            check_table(rows_become)
        if zone is not None:
            check_zone(zone)
    if text is None:
        return None
    from gputwin.traces.readers.mapped import parse_map

    return parse_map(text, rows_become or "tasks", zone)


def show_guess(paths: Sequence[Path], zone: str | None, rows_become: str | None, accept: bool) -> bool:
    """Print the mapping that the first file's columns suggest, and why; return whether doubts are accepted.

    A person at a terminal is asked.
    """
    from gputwin.traces.readers.mapped import guess
    from gputwin.traces.sources import gather

    with gather([Path(p) for p in paths]) as sources:
        found = guess(sources[0], zone, rows_become)
    rows = [[r.field, r.column, r.why, r.example] for r in found.reasons]
    table(f"Proposed mapping: rows become {found.mapping.table}", ["field", "column", "why", "example"], rows)
    if found.unused:
        say(f"not used: {', '.join(found.unused)}")
    for doubt in found.doubts:
        say(f"unclear: {doubt}")
    say(f"--map '{found.mapping.text()}'")
    if not found.doubts or accept:
        return True
    return sys.stdin.isatty() and sys.stdout.isatty() and typer.confirm("Use this mapping?", default=False)
