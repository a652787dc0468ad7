"""From what a user names (a trace directory, `synthetic:…`, raw files) to the trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qsl

from gputwin.core.errors import InputError, UserError, shorten
from gputwin.traces.dataset import META_FILE, Trace
from gputwin.traces.ingest import Options, Progress, ingest
from gputwin.traces.reader import READERS

SYNTHETIC = "synthetic:"
DEFAULT_JOBS = 10_000
MOST_JOBS = 100_000_000
_RUN_FILE = "run.json"
"""What a folder has in which `gputwin simulate` saved a run."""


def open_trace(name: str | Sequence[str], format: str | None = None, progress: Progress = lambda step: None) -> Trace:
    """Return the trace called `name`: a trace directory, `synthetic:NAME?jobs=N&seed=S`, or raw files."""
    names = [name] if isinstance(name, str) else list(name)
    if format is not None:
        # A misspelt name is a mistake even where no raw file is read.
        READERS.get(format)
    if len(names) == 1:
        is_made = names[0].startswith(SYNTHETIC) or (Path(names[0]) / META_FILE).is_file()
        if format is not None and is_made:
            problem = f"is a trace already, so the format '{format}' of raw files has no effect"
            raise InputError(problem, file=names[0], remedy="leave it out, or give the raw files")
        if names[0].startswith(SYNTHETIC):
            return synthetic_trace(names[0], progress)
        if (Path(names[0]) / META_FILE).is_file():
            return Trace.open(Path(names[0]))
        if (Path(names[0]) / _RUN_FILE).is_file():
            raise InputError(
                "a saved run, not a trace",
                file=names[0],
                remedy=f"give the trace it was made from, or run it again: gputwin simulate {names[0]}/scenario.yaml",
            )
    return ingest([Path(n) for n in names], options=Options(format=format), progress=progress)


def synthetic_trace(name: str, progress: Progress = lambda step: None) -> Trace:
    """Return the generated trace that `synthetic:NAME?jobs=N&seed=S` names."""
    from gputwin.traces.synthetic import generate

    kind, _, query = name.removeprefix(SYNTHETIC).partition("?")
    settings = {"jobs": DEFAULT_JOBS, "seed": 0}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in settings:
            raise UserError(f"'{name}': unknown setting '{key}'; known: jobs, seed")
        try:
            settings[key] = int(value)
        except ValueError:
            raise UserError(f"'{name}': {key} must be a whole number, not '{shorten(value)}'") from None
    check_jobs(settings["jobs"])
    progress(f"generating {settings['jobs']:,} {kind} jobs")
    return generate(kind, jobs=settings["jobs"], seed=settings["seed"]).to_trace()


def check_jobs(jobs: int) -> None:
    """Raise a UserError unless the number of jobs to generate makes sense."""
    if not 1 <= jobs <= MOST_JOBS:
        raise UserError(f"jobs must be between 1 and {MOST_JOBS:,}, not {jobs:,}")
