"""Somebody's own log: a table in CSV, TSV, Parquet or JSON lines, and a mapping that says what its columns mean.

The mapping comes as text (`job_id=id,submit=submitted_at`), or as a file given together with the table. Times may be
Unix s, ms, us or ns, ISO text with or without a zone, or in a format of their own; durations `00:10:00`, `1-02:03:04`,
`2.5h` or seconds; amounts `8Gi`, `16GB`, `500m`. Where a start is not known it follows from the wait or from end and
duration, and an end from the duration. Memory written as bare numbers needs a unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from gputwin.core.errors import InputError, shorten
from gputwin.traces.quality import QualityLog
from gputwin.traces.reader import READERS, Clock, Draft, Input, Reader
from gputwin.traces.readers.mapped import frames
from gputwin.traces.readers.mapped.fields import fields_of
from gputwin.traces.readers.mapped.guess import Guess, Reason, guess, proposal, unit_in_name
from gputwin.traces.readers.mapped.mapping import FILE_NAME, Mapping, is_mapping_file, parse_map, read_mapping
from gputwin.traces.readers.mapped.tables import read_text_columns
from gputwin.traces.sources import Source

MAPPING, TABLE = "mapping", "table"


def recognise(source: Source) -> str | None:
    """Return the kind of a mapping file; a table is known only by the mapping that comes with it."""
    return MAPPING if is_mapping_file(source) else None


def read(inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Raise: without its mapping a table cannot be read, and `ingest` has found none."""
    given = [i.source for i in inputs if i.kind == MAPPING]
    raise InputError(
        "a second mapping file" if len(given) > 1 else "no mapping comes with the table",
        file=inputs[-1].source.label,
        remedy="give one mapping file, or say the columns: job_id=id,submit=submitted_at",
    )


def read_with(mapping: Mapping, inputs: Sequence[Input], quality: QualityLog) -> Draft:
    """Return the tables of the files by this mapping."""
    clock = frames.Clock()
    parts = []
    inputs = [i for i in inputs if i.kind == TABLE]
    for given in inputs:
        source = given.source
        complete = with_units(mapping, source)
        table = read_text_columns(source, complete.columns, quality)
        frame = frames.MAKERS[mapping.table](frames.Parsed(table, complete, source, quality, clock))
        parts.append(_told_apart(frame, source, mapping, len(inputs)))
    if not parts:
        raise InputError("a mapping alone is no trace", remedy="give the table it is for as well")
    if clock.zoneless:
        names = ", ".join(dict.fromkeys(clock.zoneless))
        quality.find("F25", inputs[0].source.label, len(set(clock.zoneless)), detail=names)
    meaning = Clock.ABSOLUTE if clock.is_absolute else Clock.RELATIVE
    files = {FILE_NAME: mapping.to_yaml()}
    return Draft({mapping.table: pl.concat(parts)}, meaning, mapping.zone or "UTC", files)


def _told_apart(frame: pl.DataFrame, source: Source, mapping: Mapping, files: int) -> pl.DataFrame:
    """Return the frame; rows of several files that were numbered get the file's name into their id."""
    key = "job_id" if mapping.table == "tasks" else "request_id"
    if files == 1 or key in mapping.fields:
        return frame
    return frame.with_columns((pl.lit(source.name + ":") + pl.col(key)).alias(key))


def with_units(mapping: Mapping, source: Source) -> Mapping:
    """Return the mapping with units that column names give (`mem_gb`); bare sizes whose unit nobody gives are refused."""
    known = fields_of(mapping.table)
    fields = dict(mapping.fields)
    for name, meaning in mapping.fields.items():
        if meaning.value is None and not meaning.unit and (unit := unit_in_name(meaning.column, known[name].kind)):
            fields[name] = replace(meaning, unit=unit)
    return replace(mapping, fields=fields)


def sure_guess(source: Source, zone: str | None, table: str | None, accept: bool = False) -> Mapping:
    """Return the guessed mapping of a table; a doubt that is not accepted is an error that says what to confirm."""
    found = guess(source, zone, table)
    if found.doubts and not accept:
        raise InputError(
            f"what the columns mean is not clear: {shorten('; '.join(found.doubts), 400)}",
            file=source.label,
            remedy=f"correct and pass {_option(found.mapping)}",
        )
    return found.mapping


def offer(source: Source) -> str | None:
    """Return what to do about a file of no known format: the mapping its columns suggest; None where they do not."""
    found = proposal(source)
    if found is None:
        return None
    doubts = f" (doubtful: {shorten('; '.join(found.doubts), 200)})" if found.doubts else ""
    return f"if its columns mean this, pass {_option(found.mapping)}{doubts}; --guess shows why"


def _option(mapping: Mapping) -> str:
    table = "" if mapping.table == "tasks" else f" --table {mapping.table}"
    return f"--map '{shorten(mapping.text(), 500)}'{table}"


def reader_with(mapping: Mapping, title: str) -> Reader:
    """Return the reader of tables by this mapping; it takes every file for one."""

    def read_tables(inputs: Sequence[Input], quality: QualityLog) -> Draft:
        return read_with(mapping, inputs, quality)

    return Reader(READER.name, title, (), read_tables, lambda source: TABLE)


READER = READERS.add(
    Reader("mapped", "a table of your own (CSV, TSV, Parquet, JSON lines) with a mapping", (), read, recognise)
)

__all__ = [
    "FILE_NAME",
    "MAPPING",
    "READER",
    "TABLE",
    "Guess",
    "Mapping",
    "Reason",
    "guess",
    "is_mapping_file",
    "offer",
    "parse_map",
    "proposal",
    "read_mapping",
    "reader_with",
    "sure_guess",
]
