"""Where an analysis runs: Polars in this process, DuckDB, or a Spark cluster that reads the trace's Parquet files itself.

The analyses are the same functions. What differs is who holds the tables: an engine hands out its own lazy frame of a
table, and keeps what several analyses read.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from gputwin.analysis.frames import Frame, lazy
from gputwin.core.errors import UserError, shorten
from gputwin.core.extras import require
from gputwin.traces.dataset import Trace, write_table

ENGINES = ("polars", "duckdb", "spark")
LOCAL = "local[*]"
"""Where Spark runs by default: in a process of this machine."""


class Engine(ABC):
    """Tables of one trace as lazy frames of an engine."""

    @abstractmethod
    def scan(self, table: str) -> Any:
        """Return a table as the engine's own lazy frame."""

    @abstractmethod
    def keep(self, frame: Frame, texts: tuple[str, ...]) -> Frame:
        """Return the frame, computed once for all that read it; `texts` are columns of names to group by."""


class _Polars(Engine):
    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def scan(self, table: str) -> Any:
        return self._trace.scan(table)

    def keep(self, frame: Frame, texts: tuple[str, ...]) -> Frame:
        ready = self._trace.collect(frame.to_native())
        # Numbers are quicker to group by than texts.
        return lazy(ready.with_columns(pl.col(list(texts)).cast(pl.Categorical)).lazy())


class _Files:
    """Where the Parquet files of a trace lie; a table that it lacks, or that is in memory, is written beside."""

    def __init__(self, trace: Trace, temporary: str) -> None:
        self._trace, self._temporary = trace, Path(temporary)

    def path(self, table: str) -> str:
        if self._trace.path is not None and self._trace.has(table):
            return str(self._trace.path.resolve() / f"{table}.parquet")
        target = self._temporary / f"{table}.parquet"
        if not target.exists():
            write_table(self._trace.frame(table), target)
        return str(target)


class _DuckDB(Engine):
    def __init__(self, files: _Files, connection: Any) -> None:
        self._files, self._connection, self._kept = files, connection, 0

    def scan(self, table: str) -> Any:
        return self._connection.read_parquet(self._files.path(table))

    def keep(self, frame: Frame, texts: tuple[str, ...]) -> Frame:
        self._kept += 1
        frame.to_native().create(f"kept{self._kept}")
        return lazy(self._connection.table(f"kept{self._kept}"))


class _Spark(Engine):
    def __init__(self, files: _Files, session: Any) -> None:
        self._files, self._session = files, session

    def scan(self, table: str) -> Any:
        return self._session.read.parquet(self._files.path(table))

    def keep(self, frame: Frame, texts: tuple[str, ...]) -> Frame:
        return lazy(frame.to_native().persist())


@contextmanager
def engine_for(trace: Trace, name: str = "polars") -> Iterator[Engine]:
    """Yield the engine called `name`: polars, duckdb, spark, or spark:MASTER as in spark:spark://host:7077.

    DuckDB and Spark read a saved trace where it lies; tables in memory are written to a temporary folder first.
    """
    kind, _, master = name.partition(":")
    if kind not in ENGINES or (master and kind != "spark"):
        raise UserError(f"unknown engine '{shorten(name)}'; known: {', '.join(ENGINES)}, spark:MASTER")
    if kind == "polars":
        yield _Polars(trace)
        return
    with tempfile.TemporaryDirectory(prefix="gputwin-") as temporary:
        if kind == "duckdb":
            duckdb = require("duckdb", extra="duckdb")
            with duckdb.connect() as connection:
                # Its bar goes to stdout, into the JSON that is asked for there.
                connection.execute("SET enable_progress_bar = false")
                yield _DuckDB(_Files(trace, temporary), connection)
            return
        session, is_ours = _session(master or LOCAL)
        try:
            yield _Spark(_Files(trace, temporary), session)
        finally:
            if is_ours:
                session.stop()


def _session(master: str) -> tuple[Any, bool]:
    """Return a Spark session, and whether it was made here: one that exists already is used as it is."""
    sql = require("pyspark.sql", extra="spark")
    if (active := sql.SparkSession.getActiveSession()) is not None:
        return active, False
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise UserError("Spark needs Java, and there is none on this machine; install Java 17, or take --engine duckdb")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
    }
    if master.startswith("local"):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        settings["spark.sql.shuffle.partitions"] = "4"
    builder = sql.SparkSession.builder.master(master).appName("gputwin")
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate(), True
    except Exception as error:
        raise UserError(f"no Spark session at '{master}' ({shorten(error, 200)}); check the master's address") from None
