"""RunStore: a folder of finished runs, each under the key of what it was made from, and their index."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from gputwin.core.errors import InputError, UserError
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.result import RUN_FILE, SimulationResult, saved_record
from gputwin.simulation.scenario import Scenario, leaves
from gputwin.studies.comparison.compare import figures_of
from gputwin.studies.store.claims import claimed
from gputwin.studies.store.index import INDEX_FILE, Execution, Index, StoredRun
from gputwin.studies.store.keys import KEY_LENGTH, engine_digest, run_key
from gputwin.traces.dataset import Trace

_LEAST_PREFIX = 4


class RunStore:
    """Finished runs in a folder. Any number of threads and processes may use it at once.

    Below the folder: `runs/KEY` as `SimulationResult.save` writes it, `index.sqlite`, and `claims/KEY` while KEY is
    being run. A row of the index is entered after its run is whole on disk.
    """

    def __init__(self, folder: Path, *, create: bool = True) -> None:
        self.folder = Path(folder)
        if not create and not (self.folder / INDEX_FILE).is_file():
            raise InputError(
                "not a folder of runs", file=self.folder, remedy="make one with: gputwin study FILE -o DIR"
            )
        self._index = Index(self.folder)
        self._held: set[str] = set()

    @property
    def id(self) -> str:
        """Return what tells this store from all others."""
        return self._index.id

    def changes(self) -> int:
        """Return how often the index was written to: as long as it is the same, so are all lists."""
        return self._index.changes()

    @staticmethod
    def key(scenario: Scenario, trace: Trace, cluster: Cluster | None = None) -> str:
        """Return the key of the scenario's run on the trace (`run_key`)."""
        return run_key(scenario, trace, cluster)

    def folder_of(self, key: str) -> Path:
        """Return where the run with this key is, or would be."""
        return self.folder / "runs" / key

    def get(self, key: str) -> StoredRun | None:
        """Return the finished run with this key; None where there is none."""
        found = self._index.rows("key = ?", (key,))
        if found and not (found[0].folder / RUN_FILE).is_file():
            # Somebody removed the folder by hand.
            self._index.remove([key])
            return None
        return found[0] if found else None

    def known(self, keys: Sequence[str]) -> set[str]:
        """Return which of these keys have a finished run."""
        found = self._index.keys().intersection(keys)
        return {key for key in found if (self.folder_of(key) / RUN_FILE).is_file()}

    def find(self, prefix: str) -> StoredRun:
        """Return the run whose key begins with `prefix`; none or several are a user error."""
        is_key = len(prefix) >= _LEAST_PREFIX and set(prefix) <= set("0123456789abcdef")
        found = self._index.rows("substr(key, 1, ?) = ?", (len(prefix), prefix)) if is_key else []
        if len(found) != 1:
            problem = f"{len(found)} runs have a key that begins with" if found else "no run has a key that begins with"
            raise UserError(f"{problem} '{prefix}'; see: gputwin runs list --runs {self.folder}")
        return found[0]

    def open(self, key: str) -> SimulationResult:
        """Return the result of the finished run with this key."""
        return SimulationResult.open(self.folder_of(key))

    def list(
        self,
        *,
        study: str | None = None,
        trace: str | None = None,
        cluster: str | None = None,
        fields: Mapping[str, str] | None = None,
        limit: int | None = None,
    ) -> Sequence[StoredRun]:
        """Return finished runs, newest first.

        `trace` is a part of its name or the beginning of its fingerprint, `cluster` a name, `fields` values of the
        scenario by dotted path, as in {"order": "sjf", "checkpoints.rule": "young"}.
        """
        where = ["1"]
        values: Sequence[Any] = []
        if study is not None:
            where.append("key IN (SELECT key FROM members WHERE study = ?)")
            values = [*values, study]
        if trace is not None:
            where.append("(instr(trace, ?) OR substr(trace_fingerprint, 1, ?) = ?)")
            values = [*values, trace, len(trace), trace]
        if cluster is not None:
            where.append("cluster = ?")
            values = [*values, cluster]
        found = self._index.rows(" AND ".join(where), values)
        if fields:
            found = [run for run in found if _has(run, fields)]
        return found if limit is None else found[:limit]

    def of_study(self, study: str) -> Sequence[StoredRun]:
        """Return the finished runs of a study in its own order, the baseline's first."""
        order = self._index.order_of(study)
        return sorted(self.list(study=study), key=lambda run: (order.get(run.key, len(order)), run.key))

    def executions(self) -> Sequence[Execution]:
        """Return every start of a run, finished or not, in the order of their beginning."""
        return self._index.executions()

    @contextmanager
    def claim(self, key: str, *, wait: bool = True) -> Iterator[bool]:
        """Yield whether this key is ours to run until the end of the context; `wait` until nobody else runs it.

        A claim ends with its process, however that ends. What a dead process left half written is removed, and what it
        left whole but not entered is entered.
        """
        with claimed(self.folder / "claims" / key, wait=wait) as is_ours:
            if is_ours:
                self._tidy(key)
                self._held.add(key)
            try:
                yield is_ours
            finally:
                if is_ours:
                    self._held.discard(key)

    def put(
        self, key: str, result: SimulationResult, *, study: str | None = None, execution: int | None = None
    ) -> StoredRun:
        """Keep a finished run under its key and return its row; what is there already stays."""
        if key not in self._held:
            with self.claim(key):
                return self.put(key, result, study=study, execution=execution)
        if self.get(key) is None:
            result.save(self.folder_of(key))
        self._index.add(_row(key, result.summary, result.manifest), _named(study), execution)
        found = self.get(key)
        assert found is not None
        return found

    def run(self, key: str, make: Callable[[], SimulationResult], *, study: str | None = None) -> StoredRun:
        """Return the run with this key; where it is not there, it is made and kept. Two processes never make it at once."""
        found = self.get(key)
        if found is None:
            with self.claim(key):
                # Another process may have made it while we waited.
                found = self.get(key)
                if found is None:
                    execution = self._index.begin(key)
                    return self.put(key, make(), study=study, execution=execution)
        if study is None or study in found.studies:
            return found
        self._index.use(key, study)
        return replace(found, studies=tuple(sorted((*found.studies, study))))

    def join(self, keys: Sequence[str], study: str | None) -> None:
        """Enter that a study uses these runs, in this order."""
        if study is not None and keys:
            self._index.join(keys, study)

    def recover(self) -> int:
        """Return how many runs were entered that a crash had left whole but not entered; half written ones are removed."""
        runs = self.folder / "runs"
        if not runs.is_dir():
            return 0
        known = self._index.keys()
        open_keys = {path.name[-KEY_LENGTH:] for path in runs.iterdir()} - known
        for key in sorted(open_keys):
            # One that is claimed is being written now.
            with self.claim(key, wait=False):
                pass
        return len(self._index.keys() - known)

    def prune(
        self,
        *,
        keys: Sequence[str] | None = None,
        study: str | None = None,
        before: datetime | None = None,
        outdated: bool = False,
        dry_run: bool = False,
    ) -> Sequence[StoredRun]:
        """Remove the runs for which all that is given holds, and return them; nothing given, nothing removed.

        `before` is the time they were made, `outdated` those that another version of the engine made, which no scenario
        finds any more. A run that is in use stays.
        """
        if keys is None and study is None and before is None and not outdated:
            return []
        found = [
            run
            for run in self.list(study=study)
            if (keys is None or run.key in keys)
            and (before is None or run.created < before)
            and (not outdated or run.engine != engine_digest())
        ]
        if dry_run:
            return found
        removed = []
        for run in found:
            with claimed(self.folder / "claims" / run.key, wait=False) as is_ours:
                if is_ours:
                    self._index.remove([run.key])
                    shutil.rmtree(run.folder, ignore_errors=True)
                    removed.append(run)
        return removed

    def _tidy(self, key: str) -> None:
        """Remove what a dead writer of this key left half written; enter what it left whole."""
        for path in self.folder_of(key).parent.glob(f".*.{key}"):
            shutil.rmtree(path, ignore_errors=True)
        folder = self.folder_of(key)
        if not folder.exists() or self._index.rows("key = ?", (key,)):
            return
        try:
            self._index.add(_row(key, *saved_record(folder)), (), self._index.last_execution(key))
        except (OSError, ValueError, KeyError):
            shutil.rmtree(folder, ignore_errors=True)


def _row(key: str, summary: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    scenario = manifest["scenario"]
    named = scenario["trace"]
    return {
        "key": key,
        "created": time.time(),
        "trace": named if isinstance(named, str) else " ".join(named),
        "trace_fingerprint": manifest["trace_fingerprint"],
        "cluster": manifest["cluster"],
        "nodes": manifest["nodes"],
        "gpus": manifest["gpus"],
        "jobs": summary["jobs"],
        "engine": engine_digest(),
        "scenario": json.dumps(scenario),
        "metrics": json.dumps(figures_of(summary)),
    }


def _named(study: str | None) -> tuple[str, ...]:
    return () if study is None else (study,)


def _has(run: StoredRun, fields: Mapping[str, str]) -> bool:
    found = leaves(run.scenario.model_dump(mode="json"))
    return all(found.get(path, "none") == value for path, value in fields.items())
