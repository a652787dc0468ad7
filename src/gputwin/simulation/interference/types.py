"""Which type each job is of: its application's, where the table knows it, or one that is drawn."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import polars as pl

from gputwin.simulation.engine.state.records import Flags, Ints


@dataclass(frozen=True)
class JobTypes:
    """The type of each job, and whose had to be drawn."""

    kinds: Ints
    is_drawn: Flags

    @property
    def drawn(self) -> int:
        """Return how many types were drawn."""
        return int(self.is_drawn.sum())


def job_types(tasks: pl.DataFrame, job_ids: pl.Series, types: tuple[str, ...], seed: int) -> JobTypes:
    """Return the type of each job by its row in `types`.

    A job whose application is called like a type is of that type. Any other gets one by chance, all types being equally
    likely: by a hash of the seed and its application, else its tenant, user or own name, so that what comes from one
    application is of one type, whatever the order of jobs and the other rules.
    """
    names = pl.coalesce("application", "tenant", "user", "job_id").cast(pl.String)
    first = tasks.group_by("job_id").agg(names.first().alias("name"))
    wanted = pl.DataFrame({"job_id": job_ids}).join(first, on="job_id", how="left", maintain_order="left")["name"]
    known = {name.lower(): t for t, name in enumerate(types)}
    kind_of = {name: known.get(name.lower(), _drawn(name, len(types), seed)) for name in wanted.unique().drop_nulls()}
    kinds = np.array([kind_of.get(name, 0) for name in wanted], np.int64)
    told = {name for name in kind_of if name.lower() in known}
    return JobTypes(kinds, ~wanted.is_in(list(told)).fill_null(False).to_numpy())


def _drawn(name: str, types: int, seed: int) -> int:
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % types
