"""DemandSeries: several demands side by side in equal bins, and what was known at the end of each bin.

The one convention that keeps the future out: an *origin* `o` is the start of bin `o`. A forecast made at origin `o` may
use rows `0 … o-1` and nothing else, and its step 1 is row `o`. Amounts that arrive are summed over the bin; levels are
taken at the bin's end. So the level of row `o-1` is the level at the origin, and never one that later events made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from gputwin.core.errors import UserError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Target(StrEnum):
    """What a series measures."""

    ARRIVALS = "arrivals"
    """Requests of new instances, summed per bin."""
    IN_FORCE = "in-force"
    """Requests of the instances alive at the end of the bin."""
    REQUESTS = "requests"
    """Requests per second to a serving system, mean over the bin."""
    METRIC = "metric"
    """A quantity the trace itself sampled."""


LEVELS = frozenset({Target.IN_FORCE, Target.METRIC})
"""Targets that are states, which carry on where they stand."""


@dataclass(frozen=True)
class Replicas:
    """Instances alive, come and gone per bin of groups that are alike: one application, role and request each."""

    alive: Floats
    """Bins × groups, at the bin's end."""
    arrived: Floats
    departed: Floats
    young: Mapping[int, Floats]
    """Age in bins → bins × groups: those alive that came within so many bins."""
    requests: Floats
    """Groups × series: what one instance asks for, the same for all of a group."""
    application: Integers
    """Number of each group's application."""

    def head(self, bins: int) -> Replicas:
        """Return the first bins alone."""
        young = {age: counts[:bins] for age, counts in self.young.items()}
        return replace(
            self, alive=self.alive[:bins], arrived=self.arrived[:bins], departed=self.departed[:bins], young=young
        )


@dataclass(frozen=True)
class DemandSeries:
    """Demands in equal bins: `values` is bins × series; `covariates` (bins × anything) are known at each bin's end."""

    target: Target
    names: tuple[str, ...]
    units: tuple[str, ...]
    values: Floats
    bin_seconds: float
    start_seconds: float = 0.0
    origin_unix_seconds: float | None = None
    zone: str = "UTC"
    covariates: Mapping[str, Floats] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    missing: NDArray[np.bool_] | None = None
    """Bins × series: where nothing was sampled and the value is the one before, held; None where nowhere."""
    replicas: Replicas | None = None
    """The applications behind demand in force, where the trace tells them apart."""

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] != len(self.names) or len(self.units) != len(self.names):
            raise ValueError(f"values are {self.values.shape}, names {len(self.names)}, units {len(self.units)}")
        for name, covariate in self.covariates.items():
            if len(covariate) != len(self.values):
                raise ValueError(f"covariate {name} has {len(covariate)} rows, the series {len(self.values)}")

    def __len__(self) -> int:
        """Return the number of bins."""
        return len(self.values)

    @property
    def is_level(self) -> bool:
        """Return whether the values are a state that carries on, not amounts per bin."""
        return self.target in LEVELS

    def steps(self, seconds: float) -> int:
        """Return how many bins a time span is; a UserError unless it is a whole number of them."""
        steps = round(seconds / self.bin_seconds)
        if steps < 1 or abs(steps * self.bin_seconds - seconds) > 1e-6 * self.bin_seconds:
            raise UserError(f"{seconds:g} s is not a whole number of bins of {self.bin_seconds:g} s; choose a multiple")
        return steps

    def seasons(self) -> tuple[int, ...]:
        """Return the bins of a day and of a week, as far as they are whole, more than one, and seen twice."""
        days = (86_400.0, 604_800.0)
        whole = [d / self.bin_seconds for d in days]
        return tuple(round(w) for w in whole if w >= 2 and w == round(w) and 2 * w <= len(self))

    def times(self) -> Floats:
        """Return the start of every bin, s from the trace's origin."""
        return self.start_seconds + self.bin_seconds * np.arange(len(self), dtype=np.float64)

    def head(self, bins: int) -> DemandSeries:
        """Return the first bins alone: all that was known at origin `bins`."""
        covariates = {name: c[:bins] for name, c in self.covariates.items()}
        replicas = None if self.replicas is None else self.replicas.head(bins)
        missing = None if self.missing is None else self.missing[:bins]
        return replace(self, values=self.values[:bins], covariates=covariates, missing=missing, replicas=replicas)

    def known(self) -> NDArray[np.bool_]:
        """Return per bin whether every series has a value of its own, not one held from before."""
        if self.missing is None:
            return np.ones(len(self), dtype=bool)
        return np.asarray(~self.missing.any(axis=1), dtype=bool)

    def select(self, names: Sequence[str]) -> DemandSeries:
        """Return the series of these names, in this order, with their columns of the covariates that have one each."""
        unknown = [n for n in names if n not in self.names]
        if unknown:
            raise UserError(f"no series '{unknown[0]}'; there are: {', '.join(self.names)}")
        at = [self.names.index(n) for n in names]
        wide = len(self.names)
        covariates = {n: c[:, at] if c.ndim == 2 and c.shape[1] == wide else c for n, c in self.covariates.items()}
        replicas = None if self.replicas is None else replace(self.replicas, requests=self.replicas.requests[:, at])
        return replace(
            self,
            names=tuple(names),
            units=tuple(self.units[i] for i in at),
            values=self.values[:, at],
            missing=None if self.missing is None else self.missing[:, at],
            covariates=covariates,
            replicas=replicas,
        )
