"""A model that learns as jobs finish, as a scheduler would: recent outcomes of jobs alike, older ones fading."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from gputwin.profiling.blending import blend
from gputwin.profiling.distribution import Grid, Mass
from gputwin.profiling.jobs import History, Ints, Submitted
from gputwin.profiling.keys import REPEAT, SIGNATURE, USER, telling_keys
from gputwin.profiling.memory import Memory, OutcomesByKey
from gputwin.profiling.model import MODELS, DurationModel, Lesson, ModelKind

CHAIN = (USER, "line", "shape", SIGNATURE, REPEAT)
"""Keys from coarse to fine; each updates what the coarser ones expect."""
STRENGTH = 1.0
FADING = 0.9
MOST = 32


@dataclass(frozen=True)
class Online(DurationModel):
    """All jobs' distribution, updated key by key with the outcomes known when the job arrives."""

    grid: Grid
    overall: Mass
    memory: Memory

    def distributions(self, jobs: Submitted) -> Mass:
        """Return what the keys' latest outcomes make of the overall distribution."""
        mass = np.repeat(self.overall, jobs.size, axis=0)
        codes = self.memory.codes(jobs)
        for name, (outcomes, bins) in self._by_key.items():
            blend(mass, outcomes, bins, codes[name], jobs.arrival, strength=STRENGTH, most=MOST, fading=FADING)
        return mass

    def observing(self, known: History) -> Online:
        """Return the model with further outcomes, each known from its job's end."""
        return replace(self, memory=self.memory.observing(known))

    def explain(self, jobs: Submitted) -> pl.DataFrame:
        """Return how far each key moves the median: one row per key that knew something."""
        mass = np.repeat(self.overall, jobs.size, axis=0)
        codes = self.memory.codes(jobs)
        before = self.grid.quantiles(mass, np.array([0.5]))[:, 0]
        frames = []
        for name, (outcomes, bins) in self._by_key.items():
            blend(mass, outcomes, bins, codes[name], jobs.arrival, strength=STRENGTH, most=MOST, fading=FADING)
            after = self.grid.quantiles(mass, np.array([0.5]))[:, 0]
            known = np.isfinite(outcomes.last(codes[name], jobs.arrival, MOST)).sum(axis=1).astype(np.float64)
            frames.append(
                pl.DataFrame({"row": np.arange(jobs.size), "reason": name, "value": known, "factor": after / before})
            )
            before = after
        if not frames:
            return pl.DataFrame({"row": np.arange(jobs.size), "reason": "all jobs", "value": np.nan, "factor": 1.0})
        return pl.concat(frames).sort("row", maintain_order=True)

    @cached_property
    def _by_key(self) -> dict[str, tuple[OutcomesByKey, Ints]]:
        by_key = self.memory.by_key
        return {n: (by_key[n], self.grid.bins(by_key[n].value)) for n in CHAIN if n in by_key}


def fit(lesson: Lesson, seed: int) -> Online:
    """Return the model that has seen a lesson's outcomes."""
    names = [name for name in telling_keys(lesson.past.jobs) if name in CHAIN]
    overall = lesson.grid.histogram(np.log(lesson.past.outcomes.duration), lesson.weights)
    return Online(lesson.grid, overall, Memory.of(lesson.past, names))


KIND = MODELS.add(
    ModelKind(
        "online",
        "recent outcomes of the user's jobs, of same requests and of repetitions, learned as jobs finish",
        fit,
        "Tsafrir, Etsion and Feitelson, TPDS 2007; Ferguson, Annals of Statistics 1973",
    )
)
