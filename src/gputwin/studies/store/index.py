"""The store's index in SQLite: one row per finished run, which studies use it, and a log of executions.

Every change is one immediate transaction, so several processes may write at once. A connection lasts one transaction:
nothing is shared between threads or processes. SQLite's rollback journal is used, which works on network file systems.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from gputwin.core.errors import InputError
from gputwin.simulation.scenario import Scenario, scenario_of
from gputwin.studies.comparison.compare import with_keys

INDEX_FILE = "index.sqlite"
VERSION = 1
_BUSY_SECONDS = 120.0
_TABLES = """
CREATE TABLE IF NOT EXISTS runs (
  key TEXT PRIMARY KEY, created REAL NOT NULL, trace TEXT NOT NULL, trace_fingerprint TEXT NOT NULL,
  cluster TEXT NOT NULL, nodes INTEGER NOT NULL, gpus INTEGER NOT NULL, jobs INTEGER NOT NULL,
  engine TEXT NOT NULL, scenario TEXT NOT NULL, metrics TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS members (
  study TEXT NOT NULL, key TEXT NOT NULL, place INTEGER, PRIMARY KEY (study, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS executions (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL, started REAL, finished REAL, host TEXT NOT NULL, process INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS about (id TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS members_by_key ON members (key);
CREATE INDEX IF NOT EXISTS executions_by_key ON executions (key);
"""
_COLUMNS = (
    "key",
    "created",
    "trace",
    "trace_fingerprint",
    "cluster",
    "nodes",
    "gpus",
    "jobs",
    "engine",
    "scenario",
    "metrics",
)


@dataclass(frozen=True)
class StoredRun:
    """A finished run in the store; `metrics` are its headline figures, `studies` the names of those that use it."""

    key: str
    created: datetime
    trace: str
    trace_fingerprint: str
    cluster: str
    nodes: int
    gpus: int
    jobs: int
    engine: str
    scenario_data: Mapping[str, Any]
    metrics: Mapping[str, float | None]
    studies: tuple[str, ...]
    folder: Path

    @property
    def scenario(self) -> Scenario:
        """Return the scenario that gives this run again."""
        return scenario_of(self.scenario_data)

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return {
            "key": self.key,
            "created": self.created.isoformat(timespec="seconds"),
            "trace": self.trace,
            "trace_fingerprint": self.trace_fingerprint,
            "cluster": self.cluster,
            "nodes": self.nodes,
            "gpus": self.gpus,
            "jobs": self.jobs,
            "scenario": dict(self.scenario_data),
            "metrics": with_keys(self.metrics),
            "studies": list(self.studies),
            "run_directory": str(self.folder),
        }


@dataclass(frozen=True)
class Execution:
    """One start of a run; `finished` is None where it did not come to its end, times in s since 1970."""

    key: str
    started: float | None
    finished: float | None
    host: str
    process: int


class Index:
    """The SQLite file of a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / INDEX_FILE
        if not self._is_made():
            folder.mkdir(parents=True, exist_ok=True)
            with self._transaction() as database:
                for statement in _TABLES.split(";"):
                    database.execute(statement)
                database.execute("INSERT INTO about SELECT ? WHERE NOT EXISTS (SELECT * FROM about)", (uuid4().hex,))
                database.execute(f"PRAGMA user_version = {VERSION}")

    def _is_made(self) -> bool:
        if not self.path.is_file():
            return False
        with self._connection() as database:
            try:
                made = int(database.execute("PRAGMA user_version").fetchone()[0])
            except sqlite3.DatabaseError as error:
                raise InputError(
                    f"not an index of runs ({error})", file=self.path, remedy="name a folder of runs"
                ) from None
        if made > VERSION:
            raise InputError("made by a newer gputwin", file=self.path, remedy="update gputwin or name another folder")
        return made == VERSION

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)) as database:
            yield database

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connection() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    @property
    def id(self) -> str:
        """Return what tells this index from all others."""
        with self._connection() as database:
            return str(database.execute("SELECT id FROM about").fetchone()[0])

    def changes(self) -> int:
        """Return SQLite's counter of changes to the file (bytes 24 to 27 of its header)."""
        with (self.folder / INDEX_FILE).open("rb") as file:
            return int.from_bytes(file.read(28)[24:], "big")

    def begin(self, key: str) -> int:
        """Return the number of an execution that starts now."""
        with self._transaction() as database:
            found = database.execute(
                "INSERT INTO executions (key, started, host, process) VALUES (?, ?, ?, ?)",
                (key, time.time(), socket.gethostname(), os.getpid()),
            )
            return int(found.lastrowid or 0)

    def last_execution(self, key: str) -> int | None:
        """Return the number of the last start of a run; None where none is known."""
        with self._connection() as database:
            found = database.execute("SELECT max(id) FROM executions WHERE key = ?", (key,)).fetchone()
        return None if found[0] is None else int(found[0])

    def add(self, row: Mapping[str, Any], studies: Sequence[str], execution: int | None) -> None:
        """Enter a finished run, the studies that use it, and that its execution has ended; a row that is there stays."""
        with self._transaction() as database:
            values = [row[name] for name in _COLUMNS]
            marks = ", ".join("?" for _ in _COLUMNS)
            database.execute(f"INSERT OR IGNORE INTO runs ({', '.join(_COLUMNS)}) VALUES ({marks})", values)
            self._join(database, row["key"], studies)
            if execution is not None:
                database.execute("UPDATE executions SET finished = ? WHERE id = ?", (time.time(), execution))
            else:
                database.execute(
                    "INSERT INTO executions (key, finished, host, process) VALUES (?, ?, ?, ?)",
                    (row["key"], time.time(), socket.gethostname(), os.getpid()),
                )

    def join(self, keys: Sequence[str], study: str) -> None:
        """Enter that a study uses these runs, in this order."""
        with self._transaction() as database:
            database.executemany(
                "INSERT INTO members (study, key, place) VALUES (?, ?, ?) "
                "ON CONFLICT (study, key) DO UPDATE SET place = excluded.place",
                [(study, key, place) for place, key in enumerate(keys)],
            )

    def use(self, key: str, study: str) -> None:
        """Enter that a study uses this run."""
        with self._transaction() as database:
            self._join(database, key, (study,))

    def order_of(self, study: str) -> dict[str, int]:
        """Return the place of each run in the study that uses it."""
        with self._connection() as database:
            rows = database.execute("SELECT key, place FROM members WHERE study = ? AND place NOT NULL", (study,))
            return {str(key): int(place) for key, place in rows}

    @staticmethod
    def _join(database: sqlite3.Connection, key: str, studies: Sequence[str]) -> None:
        for study in studies:
            database.execute("INSERT OR IGNORE INTO members (study, key) VALUES (?, ?)", (study, key))

    def remove(self, keys: Sequence[str]) -> None:
        """Forget runs; the log of executions stays."""
        with self._transaction() as database:
            for key in keys:
                database.execute("DELETE FROM runs WHERE key = ?", (key,))
                database.execute("DELETE FROM members WHERE key = ?", (key,))

    def keys(self) -> set[str]:
        """Return the keys of all finished runs."""
        with self._connection() as database:
            return {key for (key,) in database.execute("SELECT key FROM runs")}

    def rows(self, where: str = "1", values: Sequence[Any] = ()) -> list[StoredRun]:
        """Return the finished runs for which the SQL condition holds, newest first."""
        with self._connection() as database:
            database.execute("BEGIN")
            found = database.execute(
                f"SELECT {', '.join(_COLUMNS)} FROM runs WHERE {where} ORDER BY created DESC, key", tuple(values)
            ).fetchall()
            members: dict[str, list[str]] = {}
            if len(found) == 1:
                joined = database.execute("SELECT key, study FROM members WHERE key = ? ORDER BY study", (found[0][0],))
            else:
                joined = database.execute("SELECT key, study FROM members ORDER BY study")
            for key, study in joined:
                members.setdefault(key, []).append(study)
        return [self._stored(dict(zip(_COLUMNS, row, strict=True)), members) for row in found]

    def _stored(self, row: dict[str, Any], members: Mapping[str, Sequence[str]]) -> StoredRun:
        key = row["key"]
        return StoredRun(
            **{name: row[name] for name in _COLUMNS if name not in ("created", "scenario", "metrics")},
            created=datetime.fromtimestamp(row["created"], UTC),
            scenario_data=json.loads(row["scenario"]),
            metrics=json.loads(row["metrics"]),
            studies=tuple(members.get(key, ())),
            folder=self.folder / "runs" / key,
        )

    def executions(self) -> list[Execution]:
        """Return every start of a run, in the order of their beginning."""
        with self._connection() as database:
            rows = database.execute("SELECT key, started, finished, host, process FROM executions ORDER BY id")
            return [Execution(*row) for row in rows.fetchall()]
