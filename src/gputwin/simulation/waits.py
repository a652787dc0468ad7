"""When each job of a run started and ended, and how long it waited: the one place that says it, as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.engine.state.lives import SEGMENTS, SPOTS
from gputwin.simulation.engine.state.records import Flags, Floats
from gputwin.simulation.run import Run


class JobTimes(NamedTuple):
    """Per job, in order of submission, s; NaN where there is none."""

    submit: Floats
    start: Floats
    """When it first started."""
    end: Floats
    wait: Floats
    """All it waited, before its first start and after every stop."""
    completion: Floats
    has_wait: Flags
    """False for what ran when the record began and holds its place from then on: nobody knows how long it waited."""


def job_times(run: Run) -> JobTimes:
    """Return start, end, wait and completion time of each job of a run, s."""
    records, workload = run.world.queue.jobs, run.workload
    start, wait = records["start"], records["start"] - records["submit"]
    if run.world.settings["changes"][0]:
        lives = run.world.lives.records
        start = lives["first_start"]
        wait = np.where(np.isnan(start), np.nan, lives["waited"])
    has_wait = ~workload.waits_not(records["start"])
    completion = np.where(workload.was_running, np.nan, records["end"] - records["submit"])
    return JobTimes(records["submit"], start, records["end"], np.where(has_wait, wait, np.nan), completion, has_wait)


def gpu_seconds(run: Run, begin: float, until: float) -> float:
    """Return the GPU-seconds that jobs held between two times."""
    records = run.world.queue.jobs
    if run.world.settings["changes"][0]:
        log = run.world.lives.segments[: run.world.lives.counts[SEGMENTS]]
        spots = run.world.lives.spots[: run.world.lives.counts[SPOTS]]
        asked = run.workload.requests[spots["request"]]
        segment = np.repeat(np.arange(log.size), log["spots"])
        gpu_milli = np.bincount(segment, asked["gpu_count"] * asked["gpu_milli"], log.size)
        start, end = log["start"], log["end"]
    else:
        job = np.flatnonzero(np.isfinite(records["start"]))
        start, end, gpu_milli = records["start"][job], records["end"][job], records["gpu_milli"][job]
    held = np.clip(end, begin, until) - np.clip(start, begin, until)
    return float((held * gpu_milli).sum()) / WHOLE_GPU_MILLI
