"""What is remembered of past jobs: their keys, how long they ran, and from when on that was known.

A job sees of the past only what had ended before it came, whatever else the memory holds: there is no look-ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
import polars as pl

from gputwin.profiling.jobs import Floats, History, Ints, Outcomes, Submitted
from gputwin.profiling.keys import FEW, KEYS, SIGNATURE, UNSEEN, KeyTable, few_text, texts

LAST = 3
UNKNOWN = -1.0


@dataclass(frozen=True)
class OutcomesByKey:
    """Outcomes sorted by key and then by when they became known; `first[k] : first[k + 1]` are those of key k."""

    first: Ints
    known_from: Floats
    value: Floats

    @classmethod
    def of(cls, codes: Ints, keys: int, known_from: Floats, value: Floats) -> OutcomesByKey:
        """Return the outcomes of numbered keys; rows without a key or a time are left out."""
        rows = np.flatnonzero((codes >= 0) & (known_from < np.inf))
        rows = rows[np.lexsort((known_from[rows], codes[rows]))]
        first = np.searchsorted(codes[rows], np.arange(keys + 1))
        return cls(first.astype(np.int64), known_from[rows], value[rows])

    def recent(self, codes: Ints, arrival: Floats) -> Floats:
        """Return, of the outcomes known at arrival, the last and the median of the last three; -1 where there is none."""
        result = np.full((codes.size, 2), UNKNOWN)
        _recent(self.first, self.known_from, self.value, codes, arrival, result)
        return result

    def last(self, codes: Ints, arrival: Floats, count: int) -> Floats:
        """Return the last `count` outcomes known at arrival, latest first; NaN where there are fewer."""
        result = np.full((codes.size, count), np.nan)
        _last(self.first, self.known_from, self.value, codes, arrival, result)
        return result


@dataclass(frozen=True)
class Memory:
    """Values of keys, numbered, and a row per outcome: `known_from` s, `log_duration`, `learned`, each key's number."""

    tables: Mapping[str, KeyTable]
    history: pl.DataFrame

    @classmethod
    def of(cls, past: History, names: Iterable[str]) -> Memory:
        """Return the memory of a history's finished jobs, by these keys."""
        names = list(names)
        columns = texts(past.jobs, names)
        tables = {name: KeyTable.of(name, columns[name]) for name in names}
        codes = {name: table.codes(columns[name]) for name, table in tables.items()}
        return cls(tables, _rows(codes, past.outcomes, learned=True))

    def codes(self, jobs: Submitted) -> dict[str, Ints]:
        """Return the number of each job's value of each key; -1 where it has not been seen."""
        if jobs.size <= FEW:
            rows = jobs.frame.to_dicts()
            return {
                name: np.array([table.code(few_text(row, name)) for row in rows], np.int64)
                for name, table in self.tables.items()
            }
        implied = self._implied
        columns = texts(jobs, [name for name in self.tables if name not in implied])
        codes = {name: self.tables[name].codes(columns[name]) for name in columns.columns}
        if implied:
            seen = codes[SIGNATURE]
            new = np.flatnonzero(seen < 0)
            others = texts(jobs.take(new), list(implied))
            for name, by_signature in implied.items():
                codes[name] = by_signature[np.maximum(seen, 0)]
                codes[name][new] = self.tables[name].codes(others[name])
        return codes

    @cached_property
    def _implied(self) -> dict[str, Ints]:
        """Return the code that each known signature implies for every key it contains: one look instead of many."""
        if SIGNATURE not in self.tables or self.history.is_empty():
            return {}
        whole = set(KEYS[SIGNATURE])
        signature = self.history[SIGNATURE].to_numpy()
        result = {}
        for name in self.tables:
            if name != SIGNATURE and whole.issuperset(KEYS[name]):
                result[name] = np.full(self.tables[SIGNATURE].size, UNSEEN)
                result[name][signature] = self.history[name].to_numpy()
        return result

    def observing(self, known: History) -> Memory:
        """Return a memory that also holds how these jobs ended, each from its end on."""
        columns = texts(known.jobs, list(self.tables))
        tables = {name: table.extended(columns[name]) for name, table in self.tables.items()}
        codes = {name: table.codes(columns[name]) for name, table in tables.items()}
        return Memory(tables, pl.concat([self.history, _rows(codes, known.outcomes, learned=False)]))

    @cached_property
    def by_key(self) -> dict[str, OutcomesByKey]:
        """Return log durations by key, each known from its job's end; kept, since sorting takes longer than looking."""
        return self._by_key(self.history["known_from"].to_numpy())

    @cached_property
    def settled(self) -> dict[str, OutcomesByKey]:
        """Return log durations by key, those learned in training known at any time."""
        learned = self.history["learned"].to_numpy()
        return self._by_key(np.where(learned, -np.inf, self.history["known_from"].to_numpy()))

    def _by_key(self, known_from: Floats) -> dict[str, OutcomesByKey]:
        value = self.history["log_duration"].to_numpy()
        return {
            name: OutcomesByKey.of(self.history[name].to_numpy(), table.size, known_from, value)
            for name, table in self.tables.items()
        }


def _rows(codes: Mapping[str, Ints], outcomes: Outcomes, *, learned: bool) -> pl.DataFrame:
    frame = pl.DataFrame({"known_from": outcomes.end, "log_duration": np.log(outcomes.duration), **codes})
    return frame.with_columns(pl.lit(learned).alias("learned")).filter(pl.col("known_from").is_finite())


@numba.njit(cache=True)
def known_until(first: Ints, known_from: Floats, code: int, arrival: float) -> int:  # pragma: no cover - compiled
    """Return one past the last outcome of the key that was known before `arrival`."""
    begin = first[code]
    return int(begin + np.searchsorted(known_from[begin : first[code + 1]], arrival))


@numba.njit(cache=True)
def _recent(
    first: Ints, known_from: Floats, value: Floats, codes: Ints, arrival: Floats, result: Floats
) -> None:  # pragma: no cover - compiled
    for i in range(codes.size):
        if codes[i] < 0:
            continue
        begin = first[codes[i]]
        end = known_until(first, known_from, codes[i], arrival[i])
        if end == begin:
            continue
        result[i, 0] = value[end - 1]
        result[i, 1] = np.median(value[max(begin, end - LAST) : end])


@numba.njit(cache=True)
def _last(
    first: Ints, known_from: Floats, value: Floats, codes: Ints, arrival: Floats, result: Floats
) -> None:  # pragma: no cover - compiled
    for i in range(codes.size):
        if codes[i] >= 0:
            begin = first[codes[i]]
            end = known_until(first, known_from, codes[i], arrival[i])
            for k in range(min(result.shape[1], end - begin)):
                result[i, k] = value[end - 1 - k]
