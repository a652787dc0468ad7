"""Sessions among requests that list their prompt's prefix blocks: who continues whom, and how much a cache could keep."""

from __future__ import annotations

import numpy as np
import polars as pl

_MOST_REQUESTS = 500_000
_SHORTEST = 2
"""Blocks a request must share to continue another: the first is often a system prompt that all share."""


def sessions(timed: pl.DataFrame) -> pl.DataFrame:
    """Return one row: `sessions`, turns per session, share of follow-ups, gap between turns s, share of blocks seen before.

    Empty where no request lists prefix blocks. A request continues the latest one whose blocks, all but the last (which
    may be partly filled), it begins with.
    """
    known = timed.filter(pl.col("prefix_blocks").list.len() > 0).sort("submit_time", maintain_order=True)
    known = known.head(_MOST_REQUESTS)
    if known.is_empty():
        return pl.DataFrame()
    ends: dict[int, tuple[int, float]] = {}
    turns: list[int] = []
    gaps: list[float] = []
    seen: set[int] = set()
    blocks = repeated = follow_ups = 0
    for time, prefix in zip(known["submit_time"].to_list(), known["prefix_blocks"].to_list(), strict=True):
        chain = _chain(prefix)
        blocks += len(chain)
        # A block is reusable only together with all blocks before it.
        repeated += sum(h in seen for h in chain)
        seen.update(chain)
        found = next((ends[h] for h in reversed(chain[_SHORTEST - 1 :]) if h in ends), None)
        if found is None:
            session = len(turns)
            turns.append(1)
        else:
            session, before = found
            turns[session] += 1
            follow_ups += 1
            gaps.append(time - before)
        if len(chain) > _SHORTEST:
            ends[chain[-2]] = (session, time)
    sizes = np.asarray(turns)
    row = {
        "sessions": sizes.size,
        "turns_mean": float(sizes.mean()),
        "turns_p95": float(np.quantile(sizes, 0.95)),
        "turns_max": int(sizes.max()),
        "follow_up_share": follow_ups / known.height,
        "gap_p50_seconds": float(np.median(gaps)) if gaps else None,
        "blocks_seen_share": repeated / blocks,
    }
    return pl.DataFrame([row], infer_schema_length=None)


def _chain(prefix: list[int]) -> list[int]:
    """Return a number for each beginning of the list of blocks, the same for the same beginning."""
    value, chain = 0, []
    for block in prefix:
        value = hash((value, block))
        chain.append(value)
    return chain
