"""What several processes do to one store at once, in a module that they can import."""

from __future__ import annotations

import os
import time
from pathlib import Path

from gputwin.simulation.result import SimulationResult
from gputwin.studies.store import RunStore


def write_all(folder: Path, saved: Path, keys: list[str], study: str) -> int:
    """Return how many of the runs this process made itself."""
    store, made = RunStore(folder), 0

    def make() -> SimulationResult:
        nonlocal made
        made += 1
        time.sleep(0.002)
        return SimulationResult.open(saved)

    for key in keys:
        store.run(key, make, study=study)
    return made


def die_while_writing(folder: Path, saved: Path, key: str, at: str) -> None:
    """End without any notice before the files are whole ("half"), or before they are entered ("whole")."""
    store = RunStore(folder)
    result = SimulationResult.open(saved)
    with store.claim(key):
        if at == "half":
            half = store.folder_of(key).with_name(f".0123456789ab.{key}")
            half.mkdir(parents=True)
            (half / "jobs.parquet").write_bytes(b"PAR1")
        else:
            store._index.begin(key)
            result.save(store.folder_of(key))
        os._exit(9)
