"""One run of a study as a task for any executor: everything by value but the trace, which each worker opens once."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.simulate import simulate_scenario
from gputwin.studies.comparison.compare import figures_of
from gputwin.studies.store import RunStore, engine_digest
from gputwin.studies.store.index import INDEX_FILE
from gputwin.traces.dataset import META_FILE, Trace
from gputwin.traces.locate import open_trace


@dataclass(frozen=True)
class TraceReference:
    """A trace by reference: where it was saved, what it is called, and the fingerprint it must have."""

    saved: str
    name: str | tuple[str, ...]
    format: str | None
    fingerprint: str


@dataclass(frozen=True)
class StoreReference:
    """A store by reference; `id` shows a worker whether it sees the same one at that path."""

    folder: str
    id: str

    def open(self) -> RunStore | None:
        """Return the store, or None where this process does not see it."""
        if not (Path(self.folder) / INDEX_FILE).is_file():
            return None
        store = RunStore(Path(self.folder))
        return store if store.id == self.id else None


@dataclass(frozen=True)
class Task:
    """One run: what it is, on what, and where it is kept; `engine` is the engine that must run it."""

    key: str
    scenario: Scenario
    cluster: Cluster
    trace: TraceReference
    store: StoreReference
    study: str
    engine: str


@dataclass(frozen=True)
class Done:
    """A run that has ended; `result` is there only where the worker could not keep it itself."""

    key: str
    metrics: Mapping[str, float | None]
    seconds: float
    result: SimulationResult | None = None


def execute(task: Task) -> Done:
    """Return the end of a task: the run is in the store, or in what comes back where the worker does not see the store."""
    if task.engine != engine_digest():
        raise UserError("a worker has another version of gputwin than this one; install the same on all")
    begin = time.monotonic()
    store = task.store.open()
    if store is None:
        result = _simulate(task)
        return Done(task.key, figures_of(result.summary), time.monotonic() - begin, result)
    run = store.run(task.key, lambda: _simulate(task), study=task.study)
    return Done(task.key, run.metrics, time.monotonic() - begin)


def _simulate(task: Task) -> SimulationResult:
    return simulate_scenario(task.scenario, _open(task.trace), task.cluster)


@lru_cache(maxsize=4)
def _open(reference: TraceReference) -> Trace:
    """Return the trace: as it was saved where this process sees that, else opened by its name."""
    saved = Path(reference.saved)
    found = Trace.open(saved) if (saved / META_FILE).is_file() else open_trace(reference.name, reference.format)
    if found.meta.fingerprint != reference.fingerprint:
        raise UserError(
            f"{reference.name} has the fingerprint {found.meta.fingerprint[:12]} on a worker, {reference.fingerprint[:12]} "
            "here; give all the same trace"
        )
    return found
