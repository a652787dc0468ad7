"""A GPU shared in time: processor sharing that pays for switching between jobs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gputwin.core.errors import UserError
from gputwin.queueing.steady import UnstableError, check_positive, check_stable


@dataclass(frozen=True)
class TimeShared:
    """A device shared in time, in steady state."""

    efficiency: float
    """Share of time that is compute while two or more jobs are on the device."""
    busy: float
    """Share of time with a job on the device."""
    mean_jobs: float
    response: float
    """s from arrival to end."""
    switching: float
    """s of a job's response in which the device was switching rather than computing for anyone."""


def slice_time(compute: float, switch_seconds: float, frequency: float) -> float:
    """Return the time a job takes on a device it has for itself between switches: T = compute + switch × frequency.

    `frequency` is how many switches happen during the job.
    """
    if compute < 0 or switch_seconds < 0 or frequency < 0:
        raise UserError("compute, switch time and number of switches cannot be negative")
    return compute + switch_seconds * frequency


def time_shared(
    arrival_rate: float, mean_compute: float, slice_seconds: float, switch_seconds: float, most_jobs: int | None = None
) -> TimeShared:
    """Return M/G/1 processor sharing with switch cost, as a GPU that gives jobs short slices in turn.

    Alone, a job runs at full speed; with others each slice costs a switch, so that all together advance at
    slice/(slice + switch). Generalised processor sharing (Cohen, "The Multiple Phase Service Network with Generalized
    Processor Sharing", 1979): the number of jobs depends on the distribution of compute through its mean alone.
    Slices are taken as short beside jobs. `most_jobs` on the device turns further ones away; without it the load must
    be below the efficiency.
    """
    check_positive(arrival_rate=arrival_rate, mean_compute=mean_compute, slice_seconds=slice_seconds)
    if switch_seconds < 0:
        raise UserError(f"switch time cannot be negative, not {switch_seconds:g}")
    load = arrival_rate * mean_compute
    efficiency = slice_seconds / (slice_seconds + switch_seconds)
    ratio = load / efficiency
    if most_jobs is not None:
        if most_jobs < 1:
            raise UserError(f"a device holds at least one job, not {most_jobs}")
        jobs = np.arange(most_jobs + 1)
        weight = np.concatenate([[1.0], load * ratio ** np.arange(most_jobs)])
        share = weight / weight.sum()
        mean_jobs, busy = float(share @ jobs), 1 - float(share[0])
        entering, together = arrival_rate * (1 - float(share[-1])), float(share[2:].sum())
    else:
        if load < 1 <= ratio:
            raise UnstableError(
                f"the load is {load:.3g}, but switching leaves {efficiency:.3g} of the device: "
                "the queue grows without end; use longer slices"
            )
        check_stable(ratio, 1)
        empty = 1 / (1 + load / (1 - ratio))
        mean_jobs, busy = empty * load / (1 - ratio) ** 2, 1 - empty
        entering, together = arrival_rate, busy - empty * load
    response = mean_jobs / entering
    # Job-seconds spent beside a switch: all jobs on the device wait while it switches.
    alone = busy - together
    switching = (1 - efficiency) * (mean_jobs - alone) / entering
    return TimeShared(efficiency, busy, mean_jobs, response, switching)
