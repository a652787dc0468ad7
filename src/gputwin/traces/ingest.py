"""From raw files to a canonical trace: find out what they are, read, conform, clean, and write all or nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from gputwin.core.atomic import atomic_directory
from gputwin.core.errors import InputError, UserError
from gputwin.traces.dataset import (
    META_FILE,
    InputFile,
    Trace,
    TraceMeta,
    fingerprint_of,
    write_meta,
    write_parts,
)
from gputwin.traces.parquetfile import is_parquet
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Frame, Input, Reader
from gputwin.traces.readers import mapped
from gputwin.traces.readers.mapped import Mapping
from gputwin.traces.rules import Context, clean
from gputwin.traces.schema import TABLES, Table, conform
from gputwin.traces.sources import Source, gather, sha256
from gputwin.traces.usage_files import with_usage

Progress = Callable[[str], None]
_WHOLE_WITHIN = 1e-6


def _silent(step: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Options:
    """How to ingest: the format where it is not to be detected, and what to do about bad data."""

    format: str | None = None
    strict: bool = False
    lenient: bool = False
    mapping: Mapping | None = None
    """What the columns of a table of the user's own mean."""
    guess: bool = False
    """Take the proposed mapping of an unknown table, unless there is a doubt about it."""
    zone: str | None = None
    """Of wall-clock times that name none: in a table of the user's own, or of Slurm's."""
    table: str | None = None
    """What the rows of such a table become: tasks or requests."""
    usage: tuple[Path, ...] = ()
    """Results of Prometheus range queries: what the jobs used."""
    accept: bool = False
    """Take the proposed mapping in spite of doubts."""


def ingest(
    paths: Sequence[Path],
    into: Path | None = None,
    options: Options | None = None,
    progress: Progress = _silent,
) -> Trace:
    """Return the canonical trace of the raw files `paths`, saved in the directory `into` where one is given."""
    options = options or Options()
    quality = QualityLog(strict=options.strict, lenient=options.lenient)
    with gather([Path(p) for p in paths]) as sources:
        reader, inputs = _mapped(sources, options) or _in_zone(identify(sources, options.format, quality), options.zone)
        progress(f"reading {reader.name}: {len(inputs)} file{'s' if len(inputs) != 1 else ''}")
        draft = reader.read(inputs, quality)
        given_files = [i.source.given for i in inputs]
        if options.usage:
            with gather(options.usage) as measured:
                draft = with_usage(draft, measured, quality)
                given_files += [s.given for s in measured]
        files = tuple(
            InputFile(given.name, given.stat().st_size, sha256(given)) for given in dict.fromkeys(given_files)
        )

        def finish(tables: dict[str, int], digests: dict[str, str], origin: float | None) -> TraceMeta:
            return TraceMeta(
                source=reader.name,
                title=reader.title,
                clock=draft.clock,
                zone=draft.zone,
                origin_unix_seconds=origin,
                inputs=files,
                rows_read=quality.rows_read,
                rows_kept=quality.rows_kept,
                rows_dropped=quality.rows_dropped,
                findings=tuple(quality.findings),
                tables=tables,
                fingerprint=fingerprint_of(digests),
            )

        return _build(draft, quality, into, finish, progress)


def _mapped(sources: Sequence[Source], options: Options) -> tuple[Reader, list[Input]] | None:
    """Return the reader of tables that a mapping comes with, and the tables; None where no mapping does."""
    mapping = options.mapping
    files = [s for s in sources if mapped.is_mapping_file(s)]
    if mapping is None and options.guess and not files:
        mapping = mapped.sure_guess(sources[0], options.zone, options.table, options.accept)
    if mapping is None and len(files) == 1:
        mapping = mapped.read_mapping(files[0])
    if mapping is None:
        return None
    mapping = replace(mapping, zone=options.zone or mapping.zone)
    inputs = [Input(s, mapped.MAPPING if s in files else mapped.TABLE) for s in sources]
    inputs.sort(key=lambda i: (i.source.name, i.source.label))
    names = sorted({i.source.given.name for i in inputs if i.kind == mapped.TABLE})
    return mapped.reader_with(mapping, ", ".join(names[:3]) + (", …" if len(names) > 3 else "")), inputs


def _in_zone(found: tuple[Reader, list[Input]], zone: str | None) -> tuple[Reader, list[Input]]:
    """Return the reader, reading wall-clock times of the zone, and its files."""
    reader, inputs = found
    if zone is None:
        return found
    read = reader.read_in_zone
    if read is None:
        raise UserError(f"--zone {zone}: the times of {reader.title} do not depend on one; leave it out")
    return replace(reader, read=lambda given, quality: read(given, quality, zone)), inputs


def identify(sources: Sequence[Source], format: str | None, quality: QualityLog) -> tuple[Reader, list[Input]]:
    """Return the one reader these files belong to and the kind of each file it knows."""
    readers = [READERS.get(format)] if format else list(READERS)
    known: dict[str, list[Input]] = {}
    strangers: list[Source] = []
    for source in sources:
        matches = [(r, kind) for r in readers if source.head and (kind := r.kind_of(source))]
        for reader, kind in matches:
            known.setdefault(reader.name, []).append(Input(source, kind))
        if not matches:
            strangers.append(source)
    if not known:
        raise _not_recognised(strangers, readers)
    if len(known) > 1:
        most = max(len(i) for i in known.values())
        best = [name for name, inputs in known.items() if len(inputs) == most]
        if len(best) > 1 or most < len(sources) - len(strangers):
            raise InputError(
                f"the files are of more than one format: {', '.join(sorted(known))}",
                file=sources[0].given.parent,
                remedy="pass --format, or fewer files",
            )
        known = {best[0]: known[best[0]]}
    ((name, inputs),) = known.items()
    # In whatever order the files are given, they make the same trace.
    inputs.sort(key=lambda i: (i.source.name, i.source.label))
    if len(sources) == len(strangers) + len(inputs) and len(sources) == 1:
        return READERS.get(name), inputs
    names = pl.DataFrame({"file": [s.label for s in strangers]}, schema={"file": pl.String})
    quality.find("F01", "files", len(strangers), examples=names)
    return READERS.get(name), inputs


def _not_recognised(strangers: Sequence[Source], readers: Sequence[Reader]) -> InputError:
    """Return the most helpful error: what is wrong with the file, or which format it almost is."""
    source = strangers[0]
    try:
        if not is_parquet(source):
            source.check_text()
    except InputError as error:
        return error
    near = [
        (len(kind.required & set(source.header)) / len(kind.required), reader.name, kind)
        for reader in readers
        for kind in reader.csv_kinds
        if kind.header and kind.required
    ]
    score, name, kind = max(near, key=lambda n: n[0], default=(0.0, "", None))
    if kind is not None and score >= 0.5:
        return InputError(
            f"looks like {name} ({kind.kind}) but lacks column {', '.join(map(repr, kind.missing(source)))}",
            file=source.label,
            row=1,
            remedy="restore the column's name",
        )
    formats = ", ".join(r.name for r in readers)
    if len(readers) > 1 and (offer := mapped.offer(source)):
        return InputError("not a file of any known format", file=source.label, remedy=offer)
    return InputError(
        "not a file of any known format" if len(readers) > 1 else f"not a {formats} file",
        file=source.label,
        remedy=f"known formats: {formats}" if len(readers) > 1 else "try without --format",
    )


def _build(
    draft: Draft,
    quality: QualityLog,
    into: Path | None,
    finish: Callable[[dict[str, int], dict[str, str], float | None], TraceMeta],
    progress: Progress,
) -> Trace:
    """Return the cleaned trace, in memory or in `into`."""
    draft, origin = _with_origin(draft)
    counts: dict[str, int] = {}
    digests: dict[str, str] = {}
    if into is None:
        frames = {name: pl.concat(parts) for name, parts in _cleaned(draft, origin, quality, progress)}
        return Trace.from_frames(frames, finish(counts, digests, origin))
    with atomic_directory(into, marker=META_FILE) as folder:
        for name, parts in _cleaned(draft, origin, quality, progress):
            path = folder / f"{name}.parquet"
            counts[name] = write_parts(parts, TABLES[name].schema, path)
            digests[name] = sha256(path)
        for file, text in draft.files.items():
            (folder / file).write_text(text, encoding="utf-8")
        write_meta(finish(counts, digests, origin), folder)
    return Trace.open(into)


def _with_origin(draft: Draft) -> tuple[Draft, float | None]:
    """Return the draft and what its time zero is in Unix seconds; an absolute clock needs all tables to say it."""
    if draft.clock is Clock.ABSOLUTE:
        tables = {name: _whole(frame) for name, frame in draft.tables.items()}
        return replace(draft, tables=tables), _earliest(tables)
    return draft, 0.0 if draft.clock is Clock.WEEKDAY else None


def _cleaned(
    draft: Draft, origin: float | None, quality: QualityLog, progress: Progress
) -> Iterator[tuple[str, Iterator[pl.DataFrame]]]:
    """Yield each table's parts, to be cleaned as they are taken; tables given as functions are made one at a time."""
    tables = dict(draft.tables)
    context = Context()
    shift = origin if draft.clock is Clock.ABSOLUTE and origin is not None else 0.0
    for name, table in TABLES.items():
        if name not in tables:
            continue
        progress(f"cleaning {name}")
        yield name, _cleaned_parts(table, tables.pop(name), shift, context, quality)


def _cleaned_parts(
    table: Table, made: Frame, shift: float, context: Context, quality: QualityLog
) -> Iterator[pl.DataFrame]:
    """Yield the table's parts cleaned; one part where it has a key, whose repeats only the whole table shows."""
    for part in [_whole(made)] if table.key else _parts(made):
        frame = conform_counted(table, part, quality)
        if shift:
            frame = frame.with_columns(pl.col(c) - shift for c in table.time_columns)
        frame = clean(table, frame, context, quality)
        if table.name == "tasks":
            frame = frame.sort("submit_time", "job_id", "role", nulls_last=True, maintain_order=True)
        yield frame


def _parts(made: Frame) -> Iterator[pl.DataFrame]:
    result = made if isinstance(made, pl.DataFrame) else made()
    return iter([result]) if isinstance(result, pl.DataFrame) else result


def _whole(made: Frame) -> pl.DataFrame:
    return pl.concat(_parts(made), how="diagonal_relaxed")


def _earliest(tables: dict[str, pl.DataFrame]) -> float:
    """Return the earliest time of any table, rounded down to a whole second."""
    earliest = math.inf
    for name, frame in tables.items():
        for column in TABLES[name].time_columns:
            if column in frame.columns:
                values = frame[column].cast(pl.Float64)
                low = values.filter(values.is_finite() & (values > 0)).min()
                earliest = min(earliest, math.inf if low is None else float(low))  # type: ignore[arg-type]
    return 0.0 if math.isinf(earliest) else float(math.floor(earliest))


def conform_counted(table: Table, frame: pl.DataFrame, quality: QualityLog) -> pl.DataFrame:
    """Return the frame with canonical columns; values rounded or too large for their type are counted."""
    conformed = conform(table, frame.lazy()).collect()
    for column in table.columns:
        if column.name not in frame.columns or not column.dtype.is_integer():
            continue
        given = frame[column.name]
        if column.default is None:
            lost = conformed[column.name].is_null() & given.is_not_null()
            quality.find("F11", table.name, int(lost.sum()), detail=column.name)
        if given.dtype.is_float():
            uneven = (given.is_finite() & ((given - given.round()).abs() > _WHOLE_WITHIN)).fill_null(False)
            shown = frame.select(c for c in ("_row", *table.key, column.name) if c in frame.columns)
            quality.find("F10", table.name, int(uneven.sum()), detail=column.name, examples=shown.filter(uneven))
    return conformed
