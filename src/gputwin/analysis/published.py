"""What others published of a trace, beside what its file says: which claims reproduce and which do not."""

from __future__ import annotations

from typing import NamedTuple

import narwhals as nw
import polars as pl

from gputwin.analysis.frames import Frame, aggregate
from gputwin.analysis.topic import Remark, Topic
from gputwin.analysis.words import duration
from gputwin.core.units import HOUR, MINUTE, format_duration


class Claim(NamedTuple):
    """A published mean of `measure` (a column of the prepared tasks, s), and how far rounding may take it."""

    source: str
    measure: str
    what: str
    published_seconds: float
    tolerance_seconds: float


CLAIMS: dict[str, tuple[Claim, ...]] = {
    # The write-up of a public notebook on the 2025 trace gives both means in words, to the second and to the minute.
    "dlrm2025": (
        Claim("a public notebook on this trace", "wait", "mean wait", 3 * MINUTE + 13, 0.5),
        Claim("a public notebook on this trace", "runtime", "mean runtime", 28 * HOUR + 46 * MINUTE, 30.0),
    )
}


def published(frame: Frame, source: str) -> Topic | None:
    """Return published claims beside this trace's figures, s; None where none are known of the source."""
    claims = CLAIMS.get(source, ())
    if not claims:
        return None
    found = aggregate(
        frame,
        (),
        *(nw.col(c.measure).mean().alias(c.measure) for c in claims),
        *(nw.col(c.measure).count().alias(f"{c.measure}_tasks") for c in claims),
    ).row(0, named=True)
    rows = [
        {
            "claim": c.what,
            "source": c.source,
            "published_seconds": c.published_seconds,
            "trace_seconds": found[c.measure],
            "tasks": found[f"{c.measure}_tasks"],
            "difference_seconds": found[c.measure] - c.published_seconds,
            "reproduces": abs(found[c.measure] - c.published_seconds) <= c.tolerance_seconds,
        }
        for c in claims
        if found[c.measure] is not None
    ]
    if not rows:
        return None
    remarks = tuple(
        Remark(
            f"Published by {r['source']}: {r['claim']} {_exact(r['published_seconds'])}. The file gives "
            f"{_exact(r['trace_seconds'])} over the {r['tasks']:,} tasks where it is known"
            + (
                ": it reproduces."
                if r["reproduces"]
                else f", {duration(abs(r['difference_seconds']))} "
                f"{'less' if r['difference_seconds'] < 0 else 'more'}: the claim does not reproduce."
            ),
            not r["reproduces"],
        )
        for r in rows
    )
    return Topic("published", "Published figures", {"claims": pl.DataFrame(rows)}, remarks)


def _exact(seconds: float) -> str:
    return (
        f"{seconds // HOUR:.0f} h {seconds % HOUR // MINUTE:02.0f} min" if seconds >= HOUR else format_duration(seconds)
    )
