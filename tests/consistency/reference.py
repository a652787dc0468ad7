"""The figures of a task table worked out task by task, in plain Python: what every verb's figures are held against."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from gputwin.traces.lifetimes import Window


@dataclass(frozen=True)
class Life:
    """One task: the job, what it asks for, and when it asked for and held it; None where nobody knows."""

    job: str
    gpus: float
    cores: float
    arrived: float | None
    asked: float | None
    began: float | None
    held: float | None
    is_alive: bool
    wait: float | None
    queued: tuple[float, float] | None


def lives(tasks: pl.DataFrame, window: Window) -> list[Life]:
    """Return the tasks' lives, by the rule written down in `gputwin.traces.lifetimes`."""
    return [_life(row, window) for row in tasks.iter_rows(named=True)]


def _life(row: dict[str, Any], window: Window) -> Life:
    submit, start, end = row["submit_time"], row["start_time"], row["end_time"]
    runtime = row["duration_seconds"]
    if runtime is None and end is not None and start is not None:
        runtime = end - start
    gpus = row["instances"] * (row["gpu_count"] or 0) * (1000 if row["gpu_milli"] is None else row["gpu_milli"]) / 1000
    cores = row["instances"] * (row["cpu_milli"] or 0) / 1000
    arrived = submit if submit is not None else start
    asked, began, held = arrived, start if start is not None else submit, runtime
    is_alive = runtime is None and end is None and (row["is_running"] or row["status"] == "running")
    if row["was_running"]:
        asked = began = window.first
        held = None if end is None else end - window.first
    if is_alive and began is not None:
        held = window.last - began
    if began is None:
        held = None
    wait = None if submit is None or start is None else start - submit
    queued = None if wait is None else (submit, start)
    if row["status"] == "waiting" and start is None and submit is not None:
        queued = (submit, window.last if end is None else end)
    return Life(row["job_id"], gpus, cores, arrived, asked, began, held, is_alive, wait, queued)


def within(first: float, last: float, window: Window) -> float:
    """Return how much of an interval lies in the window, s."""
    return max(min(last, window.until) - max(first, window.begin), 0.0)


def held_intervals(tasks: Iterable[Life]) -> Iterator[tuple[Life, float, float]]:
    """Yield each task with the times between which it held its request."""
    for task in tasks:
        if task.began is not None and task.held is not None:
            yield task, task.began, task.began + task.held


def gpu_hours(tasks: Iterable[Life]) -> float:
    """Return GPUs × hours held over the whole record."""
    return math.fsum(t.gpus * (last - first) for t, first, last in held_intervals(tasks)) / 3600


def gpus_held(tasks: Iterable[Life], window: Window) -> float:
    """Return the GPUs held on average over the window."""
    return math.fsum(t.gpus * within(a, b, window) for t, a, b in held_intervals(tasks)) / window.seconds


def gpus_queued(tasks: Iterable[Life], window: Window) -> float:
    """Return the GPUs that waiting tasks ask for on average over the window."""
    return math.fsum(t.gpus * within(*t.queued, window) for t in tasks if t.queued) / window.seconds


def offered_gpu_seconds(tasks: Iterable[Life], window: Window) -> float:
    """Return the GPU-seconds that would be held in the window if every task started when it was asked for."""
    known = [t for t in tasks if t.asked is not None and t.held is not None]
    return math.fsum(t.gpus * within(t.asked, t.asked + t.held, window) for t in known)  # type: ignore[operator,arg-type]


def in_force(tasks: Iterable[Life], window: Window, time: float) -> tuple[float, float]:
    """Return the GPUs and cores of the tasks that are there, waiting or running, just before `time`."""
    gpus = cores = 0.0
    for t in tasks:
        if t.held is not None and t.began is not None:
            end = math.inf if t.is_alive else t.began + t.held
        elif t.queued is not None:
            end = math.inf if t.queued[1] == window.last else t.queued[1]
        else:
            continue
        if t.asked is not None and t.asked < time <= end:
            gpus, cores = gpus + t.gpus, cores + t.cores
    return gpus, cores
