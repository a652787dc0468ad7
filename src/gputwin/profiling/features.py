"""Numbers a duration model reads of a job at submit: its request, when it came, how jobs like it went before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from gputwin.core.rng import stream
from gputwin.profiling.jobs import Floats, History, Ints, Submitted
from gputwin.profiling.keys import FEW, SIGNATURE, UNSEEN, USER, telling_keys
from gputwin.profiling.memory import Memory

DAY = 86_400.0
PARTS = 5
"""Training rows are encoded from the other parts, split by job: no job's outcome is in its own features."""
SHRINKAGE = 1.0
"""Jobs' worth of the overall mean mixed into each key's mean."""
MOST_COUNTED = 20.0
ABSENT = -1.0
_RECENT_KEYS = (SIGNATURE, USER, "tenant")
_LOGGED = (
    "instances",
    "cpu_milli",
    "memory_mib",
    "gpu_memory_mib",
    "disk_mib",
    "rdma_percent",
    "max_per_node",
    "requested_seconds",
)


_GPU = pl.col("gpu_count").cast(pl.Float64) * pl.col("gpu_milli").fill_null(1000)
_REQUEST = (
    *(pl.col(c).cast(pl.Float64).log1p().alias(f"log_{c}") for c in _LOGGED),
    _GPU.log1p().alias("log_gpu_milli"),
    pl.col("priority").cast(pl.Float64),
)
"""The request as numbers: amounts as log(1 + x), priority as it is."""
_AT = pl.col("arrival_time")
_ARRIVAL = (
    (_AT / DAY).alias("arrival_day"),
    (_AT % DAY / 3600).alias("arrival_hour"),
    (_AT // DAY % 7).alias("arrival_weekday"),
)
"""Day, hour of day and day of week of the arrival, on the trace's clock."""


def request_features(jobs: Submitted) -> pl.DataFrame:
    """Return the request as numbers, -1 where the source does not say."""
    return jobs.frame.select(_REQUEST).fill_null(ABSENT)


@dataclass(frozen=True)
class Encoding:
    """Sum of log durations, weight and number of training jobs by value of one key."""

    total: Floats
    weight: Floats
    count: Floats

    @classmethod
    def of(cls, codes: Ints, size: int, values: Floats, weights: Floats) -> Encoding:
        """Return the sums over rows whose key is known."""
        seen = codes >= 0
        known, weight = codes[seen], weights[seen]
        return cls(
            np.bincount(known, values[seen] * weight, size).astype(np.float64),
            np.bincount(known, weight, size).astype(np.float64),
            np.bincount(known, weight > 0, size).astype(np.float64),
        )

    def columns(self, codes: Ints, mean: float) -> tuple[Floats, Floats]:
        """Return each row's shrunk mean log duration and the number of jobs behind it (at most 20)."""
        known = (codes >= 0) & (codes < self.total.size)
        if not known.any():
            return np.full(codes.size, mean), np.zeros(codes.size)
        at = np.where(known, codes, 0)
        total, weight = np.where(known, self.total[at], 0.0), np.where(known, self.weight[at], 0.0)
        count = np.where(known, self.count[at], 0.0)
        return (total + SHRINKAGE * mean) / (weight + SHRINKAGE), np.minimum(count, MOST_COUNTED)


@dataclass(frozen=True)
class Features:
    """How to turn jobs into numbers, learned from a history: encodings of keys, and how the keys' last jobs went.

    `names` are the columns kept, those that differ between training jobs.
    """

    names: tuple[str, ...]
    mean: float
    encodings: Mapping[str, Encoding]
    memory: Memory

    def matrix(self, jobs: Submitted, codes: Mapping[str, Ints] | None = None) -> Floats:
        """Return one row of numbers per job; of recent outcomes it sees those from before its arrival."""
        codes = self.memory.codes(jobs) if codes is None else codes
        encoded = {name: encoding.columns(codes[name], self.mean) for name, encoding in self.encodings.items()}
        return _stacked(_columns(jobs, self.memory, codes, encoded), self.names, jobs.size)

    def observing(self, known: History) -> Features:
        """Return features that also know how these jobs ended, each from its end on; encodings stay as trained."""
        return replace(self, memory=self.memory.observing(known))


def learn_features(past: History, weights: Floats) -> Features:
    """Return the features learned from a history."""
    values = np.log(past.outcomes.duration)
    mean = float(np.average(values, weights=weights))
    memory = Memory.of(past, telling_keys(past.jobs))
    codes = memory.codes(past.jobs)
    encodings = {name: Encoding.of(codes[name], memory.tables[name].size, values, weights) for name in codes}
    columns = _columns(past.jobs, memory, codes, {n: e.columns(codes[n], mean) for n, e in encodings.items()})
    return Features(tuple(name for name, column in columns.items() if np.ptp(column) > 0), mean, encodings, memory)


def training_rows(features: Features, past: History, weights: Floats, seed: int, draw: int = 0) -> Floats:
    """Return the rows of the history the features were learned from, each job encoded from other jobs alone.

    Which others those are is random; each `draw` takes its own.
    """
    values = np.log(past.outcomes.duration)
    codes = features.memory.codes(past.jobs)
    part = _parts(past.jobs, seed, draw)
    encoded = {
        name: _out_of_part(codes[name], encoding.total.size, values, weights, part, features.mean)
        for name, encoding in features.encodings.items()
    }
    return _stacked(_columns(past.jobs, features.memory, codes, encoded), features.names, past.size)


def _parts(jobs: Submitted, seed: int, draw: int) -> Ints:
    """Return the part of each row; tasks of one job are in one part."""
    job = jobs.job
    shuffled: Ints = stream(seed, "encoding", draw).permutation(int(job.max()) + 1)
    return shuffled[job] % PARTS


def _out_of_part(
    codes: Ints, size: int, values: Floats, weights: Floats, part: Ints, mean: float
) -> tuple[Floats, Floats]:
    """Return the encoding of each row made from the rows of other parts."""
    means, counts = np.empty(codes.size), np.empty(codes.size)
    for p in range(PARTS):
        here = part == p
        others = Encoding.of(np.where(here, UNSEEN, codes), size, values, weights)
        means[here], counts[here] = others.columns(codes[here], mean)
    return means, counts


def _few_columns(jobs: Submitted) -> dict[str, Floats]:
    """Return `_plain_columns` of a few jobs, for which setting up a query costs more than the work."""
    rows = jobs.frame.to_dicts()
    columns: dict[str, list[float]] = {}
    for row in rows:
        numbers = {f"log_{c}": ABSENT if row[c] is None else float(np.log1p(row[c])) for c in _LOGGED}
        milli = 1000 if row["gpu_milli"] is None else row["gpu_milli"]
        numbers["log_gpu_milli"] = ABSENT if row["gpu_count"] is None else float(np.log1p(row["gpu_count"] * milli))
        numbers["priority"] = ABSENT if row["priority"] is None else float(row["priority"])
        at = row["arrival_time"]
        numbers["arrival_day"] = ABSENT if at is None else at / DAY
        numbers["arrival_hour"] = ABSENT if at is None else at % DAY / 3600
        numbers["arrival_weekday"] = ABSENT if at is None else at // DAY % 7
        for name, value in numbers.items():
            columns.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in columns.items()}


def _plain_columns(jobs: Submitted) -> dict[str, Floats]:
    if 0 < jobs.size <= FEW:
        return _few_columns(jobs)
    frame = jobs.frame.select(*_REQUEST, *_ARRIVAL).fill_null(ABSENT)
    return {name: frame[name].to_numpy() for name in frame.columns}


def _columns(
    jobs: Submitted, memory: Memory, codes: Mapping[str, Ints], encoded: Mapping[str, tuple[Floats, Floats]]
) -> dict[str, Floats]:
    """Return all features by name: request and arrival, encodings, and recent outcomes known at arrival."""
    columns = _plain_columns(jobs)
    for name, pair in encoded.items():
        columns[f"{name}_mean"], columns[f"{name}_jobs"] = pair
    for name in _RECENT_KEYS:
        if name in codes:
            found = memory.by_key[name].recent(codes[name], jobs.arrival)
            columns[f"{name}_last"], columns[f"{name}_last3"] = found.T
    return columns


def _stacked(columns: Mapping[str, Floats], names: tuple[str, ...], size: int) -> Floats:
    result = np.empty((size, len(names)))
    for k, name in enumerate(names):
        result[:, k] = columns[name]
    return result
