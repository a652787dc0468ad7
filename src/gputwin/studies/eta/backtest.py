"""How good are predicted starts? Tested in time order on the waits of a trace, beside the obvious answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.display import Shown
from gputwin.core.errors import UserError
from gputwin.core.units import percent
from gputwin.profiling.jobs import Flags, Floats
from gputwin.studies.eta.ahead import Rules
from gputwin.studies.eta.baselines import by_size, by_user
from gputwin.studies.eta.calibration import calibrated, log_time
from gputwin.studies.eta.points import BLOCK, STATES, Points, points_of
from gputwin.studies.eta.record import Moment, Record

PROMISED = 0.8
ETA, SIMULATION, WITHOUT, USER, SIZE = (
    "eta: simulation, calibrated",
    "simulation alone",
    "calibration without simulation",
    "the user's last waits",
    "waits by size",
)
LEARNING = 0.1
"""Share of the jobs that come before the first moment, so that durations can be learned."""


@dataclass(frozen=True)
class Score:
    """How one way of predicting did on points of one state; times in s.

    `off_by` is the typical factor between predicted and actual (30 s added to both). `interval_score` (Gneiting and
    Raftery, JASA 2007, on the logarithms of the same times) is the width plus ten times what lies outside: less is
    better.
    """

    method: str
    state: str
    points: int
    coverage: float
    below: float
    above: float
    median_width_seconds: float
    median_error_seconds: float
    off_by: float
    interval_score: float


@dataclass(frozen=True, repr=False)
class Backtest(Shown):
    """Scores by method and state, and the points behind them (`frame`)."""

    scores: tuple[Score, ...]
    frame: pl.DataFrame
    moments: int
    not_started: int
    """Points left out because the job did not start within the record."""

    def score(self, method: str, state: str) -> Score | None:
        """Return one score; None where there is no such point."""
        return next((s for s in self.scores if (s.method, s.state) == (method, state)), None)

    def _title(self) -> str:
        return f"Back-test of predicted starts at {self.moments:,} moments"

    def _lines(self) -> list[str]:
        return [verdict(self)]

    def to_json(self) -> dict[str, Any]:
        """Return the scores as plain data."""
        return {
            "moments": self.moments,
            "points": self.frame.height,
            "points_not_started": self.not_started,
            "scores": [asdict(s) for s in self.scores],
        }


def moments_of(record: Record, count: int, until: float = np.inf) -> list[Moment]:
    """Return moments at the submission of jobs evenly spread over those submitted before `until`, the earliest left out."""
    jobs = int(np.searchsorted(record.submit, until, side="left"))
    if not jobs:
        return []
    rows = np.unique(np.linspace(jobs * LEARNING, jobs - 1, count).astype(np.int64))
    return [record.moment(float(record.submit[row])) for row in rows]


def backtest(
    record: Record, rules: Rules, count: int, progress: Callable[[str, float], None] = lambda text, share: None
) -> Backtest:
    """Return how predictions at `count` moments did, each from what was known then."""
    moments = moments_of(record, count)
    if not any(m.pending.size for m in moments):
        raise UserError("no job of the trace waits at any of the moments, so there is nothing to test")
    parts = []
    for first in range(0, len(moments), BLOCK):
        progress("simulating ahead", first / len(moments))
        parts.append(points_of(record, moments[first : first + BLOCK], rules))
    points = Points.together(parts)
    progress("scoring", 1.0)
    found = {
        ETA: calibrated(points),
        SIMULATION: points.simulated,
        WITHOUT: calibrated(points, simulation=False),
        USER: by_user(record, points),
        SIZE: by_size(record, points),
    }
    started = np.isfinite(points.wait)
    # All ways are scored on the same points: those for which there were enough earlier ones.
    scored = started & ~np.isnan(np.hstack([q for m, q in found.items() if m != SIMULATION])).any(axis=1)
    if not scored.any():
        raise UserError("too few jobs waited to test predictions; take more --moments or a longer trace")
    scores = []
    for state in ("all", *STATES):
        rows = scored if state == "all" else scored & (points.state == STATES.index(state))
        scores += [_score(m, state, q, points.wait, rows) for m, q in found.items() if rows.any()]
    return Backtest(
        tuple(s for s in scores if s is not None),
        _frame(record, points, found, scored),
        len(moments),
        int((~started).sum()),
    )


def _score(method: str, state: str, quantiles: Floats, wait: Floats, rows: Flags) -> Score | None:
    rows = rows & ~np.isnan(quantiles).any(axis=1)
    if not rows.any():
        return None
    low, middle, high = quantiles[rows].T
    actual = wait[rows]
    below, above = actual < low, actual > high
    y, a, b = log_time(actual), log_time(low), log_time(high)
    missed = np.maximum(a - y, 0.0) + np.maximum(y - b, 0.0)
    return Score(
        method,
        state,
        int(rows.sum()),
        float((~below & ~above).mean()),
        float(below.mean()),
        float(above.mean()),
        float(np.median(high - low)),
        float(np.median(np.abs(middle - actual))),
        float(np.exp(np.abs(log_time(middle) - y).mean())),
        float((b - a + 2 / (1 - PROMISED) * missed).mean()),
    )


def _frame(record: Record, points: Points, found: dict[str, Floats], scored: Flags) -> pl.DataFrame:
    names = {ETA: "eta", SIMULATION: "simulation", WITHOUT: "calibration", USER: "user", SIZE: "size"}
    ends = ("low", "middle", "high")
    frame = pl.DataFrame(
        {
            "time": points.at,
            "job_id": record.workload.job_ids.gather(points.job),
            "state": [STATES[s] for s in points.state],
            "waited_seconds": points.waited,
            "actual_seconds": points.wait,
            **{f"{names[m]}_{end}_seconds": q[:, k] for m, q in found.items() for k, end in enumerate(ends)},
            "is_scored": scored,
        }
    )
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))


def verdict(test: Backtest) -> str:
    """Return in a sentence whether the intervals keep their promise and whether they say more than the obvious."""
    state = STATES[0] if test.score(ETA, STATES[0]) else "all"
    ours = test.score(ETA, state)
    if ours is None:
        return "Too few points to say how good predicted starts are."
    text = (
        f"The 80 % intervals held {percent(ours.coverage, 1)} of {ours.points:,} starts of jobs "
        f"{'just submitted' if state != 'all' else 'that wait'}"
    )
    whole = test.score(ETA, "all")
    if whole is not None and state != "all":
        text += f" and {percent(whole.coverage, 1)} of all {whole.points:,}"
    others = [s for m in (USER, SIZE, SIMULATION, WITHOUT) if (s := test.score(m, state))]
    if not others:
        return f"{text}."
    best = min(others, key=lambda s: s.interval_score)
    is_better = ours.interval_score < best.interval_score
    return (
        f"{text}. Interval score {ours.interval_score:.2f} against {best.interval_score:.2f} of the next best, "
        f"{best.method}: eta says {'more' if is_better else 'no more than that'}."
    )
