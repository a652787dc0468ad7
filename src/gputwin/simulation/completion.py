"""Where the time from submission to end went, in whole nanoseconds: the parts sum to it exactly.

The engine counts seconds in floating point, so that sums of its parts are right but for rounding. Here each part becomes a
whole number of nanoseconds, and so does the completion time. What rounding leaves between them, a few nanoseconds, is
given to the largest part. Whole numbers then add up in any order, for a job and for all jobs together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from gputwin.core.units import format_duration, percent
from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES

PER_SECOND = 1_000_000_000
SLOWDOWNS = ("gpu_model", "spread", "neighbours", "size")
"""What slows a job; the columns of the jobs are named alike."""
_COLUMNS = {
    "service": "duration_seconds",
    **{f"wait_{cause}": f"wait_{cause}_seconds" for cause in CAUSE_NAMES},
    **{f"slow_{name}": f"slow_{name}_seconds" for name in SLOWDOWNS},
    "lost": "lost_seconds",
    "overhead": "overhead_seconds",
}
_WORDS = {
    "service": "of work at full speed",
    "wait": "of waiting",
    "slow_gpu_model": "lost to slower GPUs",
    "slow_spread": "lost to being spread over nodes",
    "slow_neighbours": "lost to neighbours on its GPUs",
    "slow_size": "more for running on fewer GPUs",
    "lost": "of work that was lost and done again",
    "overhead": "of saving, restarting and resizing",
}


def completion_of(jobs: pl.DataFrame) -> pl.DataFrame:
    """Return the parts of the completion time of every finished job, ns: they sum to its column `completion` exactly."""
    return _parts(jobs)[0]


def rounding_of(jobs: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return what rounding had left of each finished job's completion time, ns, before the largest part got it."""
    return _parts(jobs)[1]


def _parts(jobs: pl.DataFrame) -> tuple[pl.DataFrame, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    finished = jobs.filter((pl.col("outcome") == "finished") & pl.col("jct_seconds").is_not_null())
    columns = {part: column for part, column in _COLUMNS.items() if column in finished.columns}
    if f"wait_{CAUSE_NAMES[0]}" not in columns:
        columns["wait"] = "wait_seconds"
    parts = np.stack([_nanoseconds(finished[column]) for column in columns.values()], axis=1)
    whole = _nanoseconds(finished["jct_seconds"])
    left = whole - parts.sum(axis=1)
    parts[np.arange(whole.size), parts.argmax(axis=1)] += left
    return pl.DataFrame({**dict(zip(columns, parts.T, strict=True)), "completion": whole}), left


def _nanoseconds(seconds: pl.Series) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    # Whole seconds apart: a product of all of it would have too few digits for nanoseconds.
    values: np.ndarray[tuple[int], np.dtype[np.float64]] = seconds.to_numpy().astype(np.float64)
    whole = np.floor(values)
    rest: np.ndarray[tuple[int], np.dtype[np.int64]] = np.rint((values - whole) * PER_SECOND).astype(np.int64)
    rest += whole.astype(np.int64) * PER_SECOND
    return rest


def completion_totals(jobs: pl.DataFrame) -> dict[str, int]:
    """Return the nanoseconds that all finished jobs spent on each part; those of the parts sum to `completion`."""
    return {column.name: _sum(column) for column in completion_of(jobs)}


def _sum(nanoseconds: pl.Series) -> int:
    """Return the sum, which may be more than 64 bits hold."""
    return int((nanoseconds // PER_SECOND).sum()) * PER_SECOND + int((nanoseconds % PER_SECOND).sum())


def completion_parts(totals: dict[str, int]) -> dict[str, float]:
    """Return the same in seconds, with waits in one."""
    waits = sum(value for part, value in totals.items() if part.startswith("wait"))
    parts = {part: value for part, value in totals.items() if not part.startswith("wait") and part != "completion"}
    order = ("service", "wait", "lost", "overhead", *(f"slow_{name}" for name in SLOWDOWNS))
    return {part: {**parts, "wait": waits}[part] / PER_SECOND for part in order if part == "wait" or part in parts}


def mean_parts(summary: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return each part with its mean over finished jobs and its share; below 0 where it made jobs faster."""
    parts: dict[str, float] = summary.get("completion_parts_seconds") or {}
    total, finished = sum(parts.values()), summary["outcomes"].get("finished", 0)
    if not finished or total <= 0:
        return []
    return [
        (part.replace("_", " "), f"{'-' if v < 0 else ''}{format_duration(abs(v) / finished)}", percent(v / total, 1))
        for part, v in parts.items()
        if v
    ]


def completion_lines(nanoseconds: dict[str, int]) -> list[str]:
    """Return in a sentence where a job's time from submission to end went; nothing where it only waited and worked."""
    parts = completion_parts(nanoseconds) if nanoseconds else {}
    if not any(value for part, value in parts.items() if part not in ("service", "wait")):
        return []
    told = [f"{format_duration(abs(value))} {_words(part, value)}" for part, value in parts.items() if value]
    whole = format_duration(nanoseconds["completion"] / PER_SECOND)
    return [f"From submission to end it took {whole}: {', '.join(told)}."]


def _words(part: str, value: float) -> str:
    return "gained on faster GPUs" if part == "slow_gpu_model" and value < 0 else _WORDS[part]
