"""A stored run whose tables are read when they are looked at, so that hundreds can be compared in little memory."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from gputwin.core.errors import InputError
from gputwin.simulation.result import SimulationResult, saved_record

_TABLES = ("jobs", "segments", "series", "placements", "nodes", "groups")


class LazyResult(SimulationResult):
    """A run in a folder: summary and manifest in memory, tables read anew each time."""

    folder: Path

    def __init__(self, folder: Path) -> None:
        try:
            summary, manifest = saved_record(folder)
            own = {"folder": folder, "summary": summary, "manifest": manifest}
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"not a saved run ({error})", file=folder, remedy="run the study again") from None
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> pl.DataFrame:
        if name not in _TABLES:
            raise AttributeError(name)
        return pl.read_parquet(self.folder / f"{name}.parquet")
