"""Identifiers as columns: fixed-width hexadecimal strings, made all at once."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

DIGITS_PER_WORD = 4
_ROWS_AT_ONCE = 1 << 20


@cache
def _digits() -> NDArray[np.uint32]:
    """Return the four hexadecimal digits of every 16-bit word, as the bytes of one number each."""
    return np.frombuffer(b"".join(b"%04x" % word for word in range(1 << 16)), dtype=np.uint32)


def hex_strings(words: NDArray[np.uint16]) -> pl.Series:
    """Return one string per row of 16-bit words, most significant word first."""
    characters = _digits()[words].view(np.uint8)
    return pl.Series(characters).cast(pl.List(pl.UInt8)).cast(pl.Binary).cast(pl.String)


def random_identifiers(rng: np.random.Generator, rows: int, digits: int) -> pl.Series:
    """Return `rows` random identifiers of `digits` hexadecimal digits."""
    parts = [
        hex_strings(_random_words(rng, min(_ROWS_AT_ONCE, rows - done), digits // DIGITS_PER_WORD))
        for done in range(0, rows, _ROWS_AT_ONCE)
    ]
    return pl.concat(parts) if parts else pl.Series(dtype=pl.String)


def ordered_identifiers(rng: np.random.Generator, seconds: NDArray[np.int64], digits: int) -> pl.Series:
    """Return random identifiers for rows sorted by `seconds`, ascending among rows of the same second.

    Rows then stand in the canonical order (time, identifier) without a sort of strings.
    """
    prefix = rng.integers(0, 1 << 32, size=len(seconds), dtype=np.int64)
    key = np.sort((seconds << 32) | prefix)
    key[1:] += key[1:] == key[:-1]  # two of one second with the same prefix: once in ten thousand traces
    words = _random_words(rng, len(seconds), digits // DIGITS_PER_WORD)
    words[:, 0] = (key >> 16) & 0xFFFF
    words[:, 1] = key & 0xFFFF
    return hex_strings(words)


def _random_words(rng: np.random.Generator, rows: int, words: int) -> NDArray[np.uint16]:
    return rng.integers(0, 1 << 16, size=(rows, words), dtype=np.uint16)
