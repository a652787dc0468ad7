"""The server's folder: traces, runs, and documents made of them, each under an id that cannot lead anywhere else."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import polars as pl

from gputwin.core.atomic import atomic_file
from gputwin.core.errors import UserError, shorten
from gputwin.simulation.job_selection import JobQuery, select_jobs
from gputwin.simulation.result import RUN_FILE, SimulationResult
from gputwin.simulation.scenario import scenario_of
from gputwin.studies.comparison import rules_in_words
from gputwin.studies.store import RunStore, StoredRun
from gputwin.traces.dataset import META_FILE, Trace

ID_PATTERN = r"^[a-z0-9][a-z0-9-]{0,63}$"
_ID = re.compile(ID_PATTERN)
_OPEN_RUNS = 4


class MissingError(UserError):
    """No such trace, run or task."""


def check_id(id_: str, what: str) -> str:
    """Return the id; one that is no id is told like one that is not there."""
    if not _ID.fullmatch(id_):
        raise MissingError(f"no {what} '{shorten(id_, 64)}'")
    return id_


def slug(text: str, limit: int = 40) -> str:
    """Return text as the beginning of an id: small letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:limit].strip("-") or "trace"


@dataclass(frozen=True)
class Workspace:
    """A folder of traces and runs."""

    root: Path

    @classmethod
    def at(cls, root: Path) -> Workspace:
        """Return the workspace in the folder `root`, made where it is not there; leftovers of uploads go away."""
        root = root.resolve()
        for name in ("traces", "runs", "documents", "scratch"):
            (root / name).mkdir(parents=True, exist_ok=True)
        for left in (root / "scratch").iterdir():
            shutil.rmtree(left, ignore_errors=True)
        return cls(root)

    def scratch(self) -> Path:
        """Return a new empty folder for an upload."""
        return Path(tempfile.mkdtemp(dir=self.root / "scratch"))

    # Traces

    def trace_ids(self) -> list[str]:
        """Return the ids of all traces, the latest first."""
        return _latest(self.root / "traces", META_FILE)

    def trace_path(self, id_: str) -> Path:
        """Return the folder of a trace."""
        path = self.root / "traces" / check_id(id_, "trace")
        if not (path / META_FILE).is_file():
            raise MissingError(f"no trace '{id_}'")
        return path

    def trace(self, id_: str) -> Trace:
        """Return a trace, opened."""
        return Trace.open(self.trace_path(id_))

    def trace_record(self, id_: str) -> dict[str, Any]:
        """Return what a list shows of a trace."""
        path = self.trace_path(id_)
        return _trace_record(path, (path / META_FILE).stat().st_mtime_ns)

    # Runs

    @cached_property
    def store(self) -> RunStore:
        """Return the runs; a study that wrote into this folder has put its own there."""
        return RunStore(self.root)

    def runs(self) -> list[dict[str, Any]]:
        """Return what a list shows of each run, the latest first."""
        return list(_run_records(self.store, self.store.changes()))

    def run_path(self, id_: str) -> Path:
        """Return the folder of a run."""
        path = self.root / "runs" / check_id(id_, "run")
        if not (path / RUN_FILE).is_file():
            raise MissingError(f"no run '{id_}'")
        return path

    def run(self, id_: str) -> SimulationResult:
        """Return a run, opened; the last few are kept open."""
        path = self.run_path(id_)
        return _opened_run(path, (path / RUN_FILE).stat().st_mtime_ns)

    def run_record(self, id_: str) -> dict[str, Any]:
        """Return what a list shows of a run."""
        self.run_path(id_)
        found = _records_by_id(self.store, self.store.changes()).get(id_)
        if found is None:
            raise MissingError(f"no run '{id_}'")
        return found

    def jobs(self, id_: str, query: JobQuery) -> tuple[int, pl.DataFrame]:
        """Return how many jobs of a run are as asked for, and one page of them."""
        path = self.run_path(id_)
        return _selected(path, (path / RUN_FILE).stat().st_mtime_ns, query)

    def remove_run(self, id_: str) -> None:
        """Remove a run."""
        self.run_path(id_)
        if not self.store.prune(keys=[id_]):
            raise UserError(f"the run '{id_}' is in use; try again")

    def trace_of_run(self, id_: str) -> str | None:
        """Return the id of the trace a run was made from, where it is still there."""
        trace = str(self.run_record(id_)["trace"])
        return trace if (self.root / "traces" / trace / META_FILE).is_file() else None

    # Documents

    def document_path(self, key: str) -> Path:
        """Return the file of the document with this key."""
        return self.root / "documents" / f"{key}.json"

    def document(self, key: str) -> dict[str, Any] | None:
        """Return a document made before; None where it is not there."""
        path = self.document_path(key)
        try:
            return _read_json(path, path.stat().st_mtime_ns)
        except (OSError, ValueError):
            return None


def document_key(kind: str, **settings: Any) -> str:
    """Return the name under which a document of this kind and these settings is kept."""
    text = json.dumps([kind, settings], sort_keys=True, default=str)
    return f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def write_json(path: Path, data: Any) -> None:
    """Write data to a file, all or nothing."""
    with atomic_file(path) as fresh:
        fresh.write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


@lru_cache(maxsize=64)
def _read_json(path: Path, changed: int) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return data


@lru_cache(maxsize=_OPEN_RUNS)
def _opened_run(path: Path, changed: int) -> SimulationResult:
    return SimulationResult.open(path)


@lru_cache(maxsize=256)
def _selected(path: Path, changed: int, query: JobQuery) -> tuple[int, pl.DataFrame]:
    return select_jobs(_opened_run(path, changed), query)


@lru_cache(maxsize=4)
def _run_records(store: RunStore, changes: int) -> list[dict[str, Any]]:
    return [_run_record(run) for run in store.list()]


@lru_cache(maxsize=4)
def _records_by_id(store: RunStore, changes: int) -> dict[str, dict[str, Any]]:
    return {record["id"]: record for record in _run_records(store, changes)}


@lru_cache(maxsize=2048)
def _trace_record(path: Path, changed: int) -> dict[str, Any]:
    meta = Trace.open(path).meta
    return {
        "id": path.name,
        "title": shorten(meta.title or meta.source or path.name, 120),
        "source": shorten(meta.source, 120),
        "tables": {shorten(name): rows for name, rows in meta.tables.items()},
        "rows_kept": meta.rows_kept,
        "rows_dropped": meta.rows_dropped,
        "findings": len(meta.findings),
        "fingerprint": meta.fingerprint,
        "added": changed / 1e9,
        "is_serving": "requests" in meta.tables and meta.tables.get("tasks", 0) == 0,
    }


@lru_cache(maxsize=4096)
def _rules(scenario: str) -> str:
    return rules_in_words(scenario_of(json.loads(scenario)))


def _run_record(run: StoredRun) -> dict[str, Any]:
    return {
        "id": run.key,
        "trace": Path(run.trace).name,
        "rules": shorten(_rules(json.dumps(run.scenario_data, sort_keys=True)), 300),
        "cluster": shorten(run.cluster, 80),
        "nodes": run.nodes,
        "gpus": run.gpus,
        "jobs": run.jobs,
        "mean_wait_seconds": run.metrics.get("mean wait"),
        "p95_wait_seconds": run.metrics.get("p95 wait"),
        "gpu_allocation": run.metrics.get("GPU allocation"),
        "made": run.created.timestamp(),
        "studies": list(run.studies),
    }


def _latest(folder: Path, marker: str) -> list[str]:
    """Return the names of the folders in which `marker` is, the latest first."""
    found = [(p.stat().st_mtime_ns, p.parent.name) for p in folder.glob(f"*/{marker}") if _ID.fullmatch(p.parent.name)]
    return [name for _, name in sorted(found, reverse=True)]
