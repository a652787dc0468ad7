"""Synthetic traces: made from published figures alone, the same for the same name, size and seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from gputwin.core.errors import UserError
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.reader import Clock, Draft, Frame
from gputwin.traces.synthetic.instances import make_instances
from gputwin.traces.synthetic.recipe import RECIPES, Recipe
from gputwin.traces.synthetic.usage import usage_chunks


@dataclass(frozen=True)
class Synthetic:
    """A synthetic trace: `tasks` and `nodes`, and `instances` where asked for, in canonical columns.

    Usage is as long as two rows per instance and is therefore made in pieces, on demand.
    """

    recipe: Recipe
    jobs: int
    seed: int
    tables: dict[str, pl.DataFrame]

    @property
    def name(self) -> str:
        """Return the recipe's name."""
        return self.recipe.name

    @property
    def clock(self) -> Clock:
        """Return what its times mean."""
        return self.recipe.clock

    @property
    def zone(self) -> str:
        """Return the time zone its days are in."""
        return self.recipe.zone

    def iter_usage(self) -> Iterator[pl.DataFrame]:
        """Yield the usage table in parts: what instances used, then how machines stood; none without instances."""
        if "instances" in self.tables:
            yield from usage_chunks(self.tables, self.seed)

    def usage(self) -> pl.DataFrame:
        """Return the whole usage table."""
        return pl.concat(self.iter_usage())

    def draft(self) -> Draft:
        """Return the tables as a reader would give them, usage in parts."""
        tables: dict[str, Frame] = dict(self.tables)
        if "instances" in self.tables:
            tables["usage"] = self.iter_usage
        return Draft(tables, clock=self.clock, zone=self.zone)

    def to_trace(self) -> Trace:
        """Return the trace in memory, usage included where there are instances."""
        tables = dict(self.tables)
        if "instances" in tables:
            tables["usage"] = self.usage()
        meta = TraceMeta(
            source=f"synthetic:{self.name}?jobs={self.jobs}&seed={self.seed}",
            title=self.recipe.title,
            clock=self.clock,
            zone=self.zone,
            origin_unix_seconds=0.0 if self.clock is Clock.WEEKDAY else None,
            rows_read=sum(t.height for t in tables.values()),
            rows_kept=sum(t.height for t in tables.values()),
        )
        return Trace.from_frames(tables, meta)


def generate(name: str, *, jobs: int, seed: int, instances: bool = False) -> Synthetic:
    """Return a synthetic trace of `jobs` jobs; with `instances` also where each instance ran, and what it used.

    A smaller trace spans less time, or is of a smaller cluster (`dlrm2025`), under the same load per GPU.
    """
    recipe = RECIPES.get(name)
    if jobs < 1:
        raise UserError(f"a synthetic trace has at least one job, not {jobs}")
    if instances and not recipe.has_instances:
        having = ", ".join(r.name for r in RECIPES if r.has_instances)
        raise UserError(f"'{name}' has no instances: its original has none; known: {having}")
    tables = recipe.make(jobs, seed)
    if instances:
        tables["instances"] = make_instances(tables["tasks"], tables["nodes"], seed)
    return Synthetic(recipe, jobs, seed, tables)
