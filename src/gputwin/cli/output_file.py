"""`-o FILE` of every verb: the ending says what is written; a name without one of these endings is a folder.

.json is the whole result, .csv and .parquet its main table, .txt what a person sees, .html the report.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO, TextIOWrapper
from pathlib import Path

from gputwin.core.atomic import atomic_file, check_ours
from gputwin.core.errors import UserError
from gputwin.core.overwriting import may_overwrite

FORMS = {".json": "json", ".csv": "csv", ".parquet": "parquet", ".txt": "table"}
REPORT = ".html"
OTHER_FILES = frozenset({".jsonl", ".ndjson", ".tsv", ".yaml", ".yml", ".gz", ".zst", ".zip", ".tar", ".tgz"})
"""Endings of files that no verb writes: a folder is hardly meant to be called so."""
FOLDER_ONLY = frozenset({"demo", "generate", "ingest", "merge", "slice", "split", "study", "tune", "fetch"})
"""What these verbs write are several files; a name that ends like one file is a mistake."""
MARKERS: dict[str, tuple[str, ...]] = {
    "analyze": ("analysis.json",),
    "autoscale": ("autoscale.json", "pools.json", "choice.json"),
    "demo": ("index.sqlite", "raw/.synthetic"),
    "fetch": (".downloads/checksums.json",),
    "forecast": ("forecast.json",),
    "generate": ("trace.json",),
    "ingest": ("trace.json",),
    "merge": ("trace.json",),
    "mig": ("mig.json",),
    "place": ("placement.json", "moves.parquet", "over_time.parquet"),
    "plan": ("plan.json",),
    "profile": ("model/model.json",),
    "queueing": ("queueing.json",),
    "simulate": ("run.json",),
    "slice": ("trace.json",),
    "split": ("train/trace.json", "test/trace.json"),
    "study": ("index.sqlite",),
    "tune": ("simulations.jsonl", "tuning.json"),
}
"""Verb that writes a folder → files by which it knows a folder of its own."""


def is_file_name(path: Path | None) -> bool:
    """Return whether a path ends like a file that every verb can write."""
    return path is not None and path.suffix.lower() in (*FORMS, REPORT)


def refuse_file_name(verb: str, path: Path) -> None:
    """Raise: this verb writes a folder."""
    raise UserError(f"'{path}' ends like a file, and {verb} writes a folder; name a folder")


def check_folder(verb: str, path: Path) -> None:
    """Raise where the verb would write into a folder that is not its own, before it does hours of work."""
    if verb not in MARKERS:
        return
    if path.suffix.lower() in OTHER_FILES and not path.is_dir():
        refuse_file_name(verb, path)
    check_ours(path, *MARKERS[verb])


@contextmanager
def printed_to(path: Path) -> Iterator[str]:
    """Yield the form in which the result is printed; what is printed goes to the file, all or nothing."""
    suffix = path.suffix.lower()
    if suffix not in FORMS:
        raise UserError(f"'{path}' ends in none of {', '.join(FORMS)}; choose one of these endings")
    check_replaceable_file(path)
    with (
        atomic_file(path) as fresh,
        fresh.open("wb") as raw,
        TextIOWrapper(raw, encoding="utf-8", newline="") as text,
        redirect_stdout(text),
    ):
        yield FORMS[suffix]
        text.flush()
    sys.stdout.write(f"{path}\n")


@contextmanager
def report_to(path: Path) -> Iterator[Path]:
    """Yield a folder for the verb to write to; its report takes the place of the file, and nothing else is left."""
    from gputwin.report.write import check_replaceable

    check_replaceable(path)
    shown = StringIO()
    with tempfile.TemporaryDirectory(prefix="gputwin-") as made:
        folder = Path(made) / "made"
        with redirect_stdout(shown):
            yield folder
        reports = sorted(folder.glob("*.html"))
        if len(reports) != 1:
            raise UserError(
                f"there is no report to write to '{path}'; name a folder, or a file that ends in .json or .csv"
            )
        with atomic_file(path) as fresh:
            fresh.write_bytes(reports[0].read_bytes())
    lines = [line for line in shown.getvalue().splitlines() if made not in line]
    sys.stdout.write("".join(f"{line}\n" for line in [*lines, str(path)]))


def check_replaceable_file(path: Path) -> None:
    """Raise where a file is there, unless forced: it may be the log that the question is about."""
    if path.is_file() and not may_overwrite():
        raise UserError(f"'{path}' is there already; pass --force to overwrite it, or name another file")
