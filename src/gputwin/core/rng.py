"""Random streams: one per purpose, all from one seed, so that adding a draw to one never shifts another."""

from __future__ import annotations

import zlib

import numpy as np


def stream(seed: int, *purpose: str | int) -> np.random.Generator:
    """Return an independent generator for `purpose`, the same for the same seed on every machine."""
    key = tuple(p if isinstance(p, int) else zlib.crc32(p.encode()) for p in purpose)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
