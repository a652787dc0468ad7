"""Trace: the canonical tables of one cluster's history, in memory or in a directory of Parquet files."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
from polars.io.plugins import register_io_source

from gputwin.core.atomic import atomic_directory
from gputwin.core.display import card
from gputwin.core.errors import InputError, shorten
from gputwin.traces.measures import ARRIVAL
from gputwin.traces.quality import Finding
from gputwin.traces.reader import Clock
from gputwin.traces.schema import SCHEMA_VERSION, TABLES, conform
from gputwin.traces.sources import sha256

META_FILE = "trace.json"
_QUICKLY_HASHED_BYTES = 64 << 20
# Left to itself Polars cuts row groups where its threads happened to cut the frame, and the bytes would differ.
_ROW_GROUP_ROWS = 122_880


@dataclass(frozen=True)
class InputFile:
    """A raw file the trace was made from."""

    file: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class TraceMeta:
    """Where the trace comes from, what its clock means, and what was found wrong with it."""

    source: str
    title: str = ""
    clock: str = Clock.RELATIVE
    zone: str = "UTC"
    origin_unix_seconds: float | None = None
    inputs: tuple[InputFile, ...] = ()
    rows_read: int = 0
    rows_kept: int = 0
    rows_dropped: int = 0
    findings: tuple[Finding, ...] = ()
    tables: Mapping[str, int] = field(default_factory=dict)
    fingerprint: str = ""
    schema_version: int = SCHEMA_VERSION

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> TraceMeta:
        """Return the record read back from plain data; a ValueError, TypeError or KeyError where it is no record."""
        data = dict(data)
        data["inputs"] = tuple(InputFile(**i) for i in data.get("inputs", ()))
        data["findings"] = tuple(Finding(**{**f, "examples": tuple(f["examples"])}) for f in data.get("findings", ()))
        meta = cls(**data)
        for name, value, wanted in (
            *(("tables", rows, int) for rows in dict(meta.tables).values()),
            *((name, getattr(meta, name), str) for name in ("source", "title", "zone", "fingerprint")),
            *((name, getattr(meta, name), int) for name in ("rows_read", "rows_kept", "rows_dropped")),
        ):
            if not isinstance(value, wanted):
                raise TypeError(f"{name}: {shorten(value)!r} is not {wanted.__name__}")
        ZoneInfo(meta.zone)
        return replace(meta, tables=dict(meta.tables), clock=Clock(meta.clock))


class Trace:
    """The canonical tables of one trace and its meta record. Frames are read from disk when first asked for."""

    def __init__(
        self, meta: TraceMeta, tables: Mapping[str, pl.DataFrame] | None = None, path: Path | None = None
    ) -> None:
        self.meta = meta
        self.path = path
        self._frames: dict[str, pl.DataFrame] = dict(tables or {})

    @classmethod
    def from_frames(cls, tables: Mapping[str, pl.DataFrame], meta: TraceMeta) -> Trace:
        """Return a trace of frames already in memory, brought to the canonical columns and types."""
        conformed = {name: conform(TABLES[name], frame.lazy()).collect() for name, frame in tables.items()}
        counts = {name: frame.height for name, frame in conformed.items()}
        return cls(replace(meta, tables=counts, fingerprint=fingerprint_frames(conformed)), conformed)

    @classmethod
    def open(cls, path: Path) -> Trace:
        """Return the trace saved in the directory `path`."""
        meta_path = path / META_FILE
        try:
            meta = TraceMeta.from_json(json.loads(meta_path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise InputError("not a trace directory", file=path, remedy="make one with: gputwin ingest") from None
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise InputError(f"damaged ({shorten(error, 200)})", file=meta_path, remedy="ingest again") from None
        if meta.schema_version != SCHEMA_VERSION:
            raise InputError(
                f"written with schema {meta.schema_version}, this is {SCHEMA_VERSION}",
                file=meta_path,
                remedy="ingest the raw files again",
            )
        _check_bytes(path, meta)
        for name, rows in meta.tables.items():
            _check_table(path / f"{name}.parquet", name, rows)
        return cls(meta, path=path)

    def has(self, table: str) -> bool:
        """Return whether the source had this table."""
        return table in self.meta.tables

    def scan(self, table: str) -> pl.LazyFrame:
        """Return a table lazily; one the source lacks is empty."""
        if table in self._frames:
            return self._frames[table].lazy()
        if self.path is not None and self.has(table):
            return pl.scan_parquet(self.path / f"{table}.parquet")
        return TABLES[table].empty().lazy()

    def frame(self, table: str) -> pl.DataFrame:
        """Return a table in memory; one the source lacks is empty."""
        if table not in self._frames:
            self._frames[table] = self.collect(self.scan(table))
        return self._frames[table]

    def collect(self, query: pl.LazyFrame) -> pl.DataFrame:
        """Return the result of a query on scanned tables; where a file is damaged, an InputError."""
        try:
            return query.collect()
        except pl.exceptions.ComputeError as error:
            raise InputError(
                f"a table cannot be read ({shorten(error, 200)})", file=self.path, remedy="ingest again"
            ) from None

    @property
    def tasks(self) -> pl.DataFrame:
        """Return the task table."""
        return self.frame("tasks")

    @property
    def instances(self) -> pl.DataFrame:
        """Return the instance table."""
        return self.frame("instances")

    @property
    def nodes(self) -> pl.DataFrame:
        """Return the node table."""
        return self.frame("nodes")

    @property
    def usage(self) -> pl.DataFrame:
        """Return the usage table."""
        return self.frame("usage")

    @property
    def requests(self) -> pl.DataFrame:
        """Return the request table."""
        return self.frame("requests")

    @property
    def series(self) -> pl.DataFrame:
        """Return the series table."""
        return self.frame("series")

    def save(self, path: Path) -> Trace:
        """Write the trace to the directory `path`, all or nothing, and return it as opened from there."""
        with atomic_directory(path, marker=META_FILE) as folder:
            digests = {}
            for name in self.meta.tables:
                write_table(self.frame(name), folder / f"{name}.parquet")
                digests[name] = sha256(folder / f"{name}.parquet")
            # Another version of Polars may have packed the same table into other bytes.
            write_meta(replace(self.meta, fingerprint=fingerprint_of(digests)), folder)
        return Trace.open(path)

    def __repr__(self) -> str:
        meta = self.meta
        rows = [f"{name}: {count:,} rows" for name, count in meta.tables.items()]
        findings = f"{len(meta.findings)} quality findings" if meta.findings else "no quality findings"
        return card(
            f"Trace {shorten(meta.title or meta.source)} ({meta.source}), clock {meta.clock}", [*rows, findings]
        )

    def _repr_html_(self) -> str:
        """Return the trace as a notebook shows it."""
        from gputwin.traces.notebook import trace_html

        return trace_html(self)

    def between(self, start: float, end: float) -> Trace:
        """Return the trace of tasks and requests that arrive in [start, end) s, with their instances and usage."""
        tasks = self.tasks.filter(ARRIVAL.is_between(start, end, closed="left"))
        tables = {"tasks": tasks, "nodes": self.nodes}
        for name in ("instances", "usage"):
            tables[name] = self.frame(name).join(tasks.select("job_id", "role"), on=["job_id", "role"], how="semi")
        tables["requests"] = self.requests.filter(pl.col("submit_time").is_between(start, end, closed="left"))
        tables["series"] = self.series.filter(pl.col("time").is_between(start, end, closed="left"))
        return Trace.from_frames({n: f for n, f in tables.items() if self.has(n)}, self.meta)


def _check_bytes(folder: Path, meta: TraceMeta) -> None:
    """Raise where a table is missing or, as far as looking is quick, not as it was written.

    On damaged Parquet, Polars may not only fail but take the whole process with it.
    """
    paths = {name: folder / f"{name}.parquet" for name in meta.tables}
    for name, path in paths.items():
        if name not in TABLES or not path.is_file():
            raise InputError(f"table '{shorten(name)}' is missing", file=folder, remedy="ingest again")
    if sum(path.stat().st_size for path in paths.values()) <= _QUICKLY_HASHED_BYTES and (
        fingerprint_of({name: sha256(path) for name, path in paths.items()}) != meta.fingerprint
    ):
        raise InputError("a table is damaged or was changed", file=folder, remedy="ingest again")


def _check_table(path: Path, name: str, rows: int) -> None:
    """Raise unless the Parquet file has the canonical table's columns and as many rows; reads its footer only."""
    try:
        is_right = pl.read_parquet_schema(path) == TABLES[name].schema
        found = pl.scan_parquet(path).select(pl.len()).collect().item()
    except (pl.exceptions.PolarsError, OSError) as error:
        raise InputError(f"not a readable table ({shorten(error, 200)})", file=path, remedy="ingest again") from None
    if not is_right or found != rows:
        problem = f"{found:,} rows instead of {rows:,}" if is_right else f"not the columns of the {name} table"
        raise InputError(problem, file=path, remedy="ingest again")


def write_table(frame: pl.DataFrame, path: Path | io.BytesIO) -> None:
    """Write one table as Parquet."""
    _write_parquet(frame.lazy(), path)


def write_parts(parts: Iterable[pl.DataFrame], schema: pl.Schema, path: Path) -> int:
    """Write a table that comes in parts as one Parquet file, the same as if it came whole; return its rows."""
    rows = 0

    def batches(
        columns: list[str] | None, predicate: pl.Expr | None, limit: int | None, batch_rows: int | None
    ) -> Iterator[pl.DataFrame]:
        nonlocal rows
        for part in parts:
            rows += part.height
            yield part

    _write_parquet(register_io_source(batches, schema=schema), path)
    return rows


def _write_parquet(frame: pl.LazyFrame, path: Path | io.BytesIO) -> None:
    frame.sink_parquet(path, compression="zstd", compression_level=1, row_group_size=_ROW_GROUP_ROWS)


def write_meta(meta: TraceMeta, folder: Path) -> None:
    """Write the meta record as `trace.json`."""
    text = json.dumps(meta.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    (folder / META_FILE).write_text(text + "\n", encoding="utf-8")


def fingerprint_of(digests: Mapping[str, str]) -> str:
    """Return the fingerprint of a trace from the digests of its tables' Parquet bytes."""
    text = "".join(f"{name}:{digests[name]}\n" for name in sorted(digests))
    return hashlib.sha256(text.encode()).hexdigest()


def fingerprint_frames(tables: Mapping[str, pl.DataFrame]) -> str:
    """Return the fingerprint of frames in memory: the one they would have on disk."""
    digests = {}
    for name, frame in tables.items():
        buffer = io.BytesIO()
        write_table(frame, buffer)
        digests[name] = hashlib.sha256(buffer.getbuffer()).hexdigest()
    return fingerprint_of(digests)
