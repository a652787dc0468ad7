"""Keys: columns that make jobs alike, from repetitions of one job to everything with the same role.

Jobs of one group repeat one another (Weng et al., "MLaaS in the Wild", NSDI'22, section 5.2); where the source names no
groups, the user's requests stand in for them (Tsafrir, Etsion and Feitelson, TPDS 2007).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from gputwin.profiling.jobs import SHAPE, SUBMIT_COLUMNS, Ints, Submitted

REPEAT, SIGNATURE, USER = "repeat", "signature", "user"
KEYS: Mapping[str, tuple[str, ...]] = {
    REPEAT: ("group", "application", "role"),
    SIGNATURE: ("user", "tenant", "workload", "role", *SHAPE),
    "shape": ("workload", "role", *SHAPE),
    "line": ("user", "tenant", "workload", "role"),
    USER: ("user",),
    "tenant": ("tenant",),
    "workload": ("workload",),
    "role": ("role",),
    "qos": ("qos",),
}
"""Name of a key and its columns, from the finest to the coarsest."""
UNSEEN = -1
FEW = 64
_SEPARATOR = "\x1f"


def texts(jobs: Submitted, names: Sequence[str]) -> pl.DataFrame:
    """Return each job's keys as text, one column per key; null for a repetition of what has no name."""
    if jobs.size <= FEW:
        rows = jobs.frame.to_dicts()
        return pl.DataFrame([pl.Series(name, [few_text(row, name) for row in rows], pl.String) for name in names])
    wanted = {c for name in names for c in KEYS[name]}
    as_text = jobs.frame.select(_text_of(c).alias(c) for c in SUBMIT_COLUMNS if c in wanted)
    return as_text.select(_joined(name).alias(name) for name in names)


def _text_of(column: str) -> pl.Expr:
    whole = pl.col(column).cast(pl.Int64) if column == "requested_seconds" else pl.col(column)
    return whole.cast(pl.String).fill_null("")


def _joined(name: str) -> pl.Expr:
    text = pl.concat_str(KEYS[name], separator=_SEPARATOR)
    if name == REPEAT:
        return pl.when((pl.col("group") != "") | (pl.col("application") != "")).then(text)
    return text


def few_text(row: dict[str, Any], name: str) -> str | None:
    """Return one job's key as text, the same as `texts` has it: for a few jobs, a frame costs more than the work."""
    if name == REPEAT and not row["group"] and not row["application"]:
        return None
    values = (row[c] for c in KEYS[name])
    return _SEPARATOR.join("" if v is None else v if isinstance(v, str) else str(int(v)) for v in values)


def telling_keys(jobs: Submitted) -> tuple[str, ...]:
    """Return the keys that tell these jobs apart, none that splits them just as a finer one does."""
    found: dict[tuple[int, int], str] = {}
    frame = texts(jobs, list(KEYS))
    for name in KEYS:
        column = frame[name]
        groups = column.drop_nulls().n_unique()
        if groups > 1 or (groups == 1 and name == REPEAT):
            # Among nested keys, as many groups means the same groups.
            found.setdefault((groups, column.null_count()), name)
    return tuple(name for name in KEYS if name in found.values())


@dataclass(frozen=True)
class KeyTable:
    """The values of one key seen in training, numbered."""

    name: str
    values: pl.Series

    @classmethod
    def of(cls, name: str, column: pl.Series) -> KeyTable:
        """Return the table of the distinct values of a column of key texts, in order of appearance."""
        return cls(name, column.drop_nulls().unique(maintain_order=True))

    def extended(self, column: pl.Series) -> KeyTable:
        """Return the table with the values of `column` it has not seen numbered after its own."""
        return KeyTable(self.name, pl.concat([self.values, column.drop_nulls()]).unique(maintain_order=True))

    @property
    def size(self) -> int:
        """Return how many values there are."""
        return self.values.len()

    @cached_property
    def _numbered(self) -> pl.DataFrame:
        numbers = pl.int_range(self.size, dtype=pl.Int64, eager=True)
        return pl.DataFrame({self.name: self.values, "code": numbers})

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {value: code for code, value in enumerate(self.values)}

    def code(self, text: str | None) -> int:
        """Return the number of one key text; -1 where it was not seen, or is null."""
        return UNSEEN if text is None else self._codes.get(text, UNSEEN)

    def codes(self, column: pl.Series) -> Ints:
        """Return the number of each key text; -1 where it was not seen, or is null."""
        if column.len() <= FEW:
            # A join costs as much for one row as for thousands.
            return np.array([self.code(value) for value in column], np.int64)
        joined = column.to_frame(self.name).join(self._numbered, on=self.name, how="left", maintain_order="left")
        return joined["code"].fill_null(UNSEEN).to_numpy()
