"""Queues by GPU time as the authors of Tiresias simulate them: what their rule does that the paper's does not say.

Three things differ from the order `las`: limits need not be a geometric series; who waits goes to the end of its queue at
each event, so within a queue those who run come first; and a job changes its queue only at an event: an arrival, an end, or
a time that is worked out from seconds where GPU-seconds are meant, and so mostly comes late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class _Job:
    number: int
    gpus: int
    submit: int
    seconds: int
    served: int = 0
    queue: int = 0
    runs: bool = False


def ends_by_queues(
    jobs: Sequence[tuple[int, int, int, int]], limits: Sequence[int], gpus: int, *, by_gpu_time: bool = True
) -> dict[int, int]:
    """Return the end of each job (number, GPUs, submit, duration), s; `limits` of queues are in GPU-seconds, or seconds."""
    coming = [_Job(*job) for job in sorted(jobs, key=lambda job: job[2])]
    queues: list[list[_Job]] = [[] for _ in range(len(limits) + 1)]
    present: list[_Job] = []
    ends: dict[int, int] = {}
    now = 0
    while coming or present:
        then = _next_event(now, coming, present, limits, by_gpu_time)
        for job in present:
            job.served += (then - now) * job.runs
        now = then
        for job in [job for job in present if job.served == job.seconds]:
            ends[job.number] = now
            present.remove(job)
            queues[job.queue].remove(job)
        while coming and coming[0].submit == now:
            present.append(coming.pop(0))
            queues[0].append(present[-1])
        for job in present:
            service = job.served * (job.gpus if by_gpu_time else 1)
            if job.runs and job.queue < len(limits) and service >= limits[job.queue]:
                queues[job.queue].remove(job)
                job.queue += 1
                queues[job.queue].append(job)
        _choose(queues, gpus)
    return ends


def _next_event(now: int, coming: list[_Job], present: list[_Job], limits: Sequence[int], by_gpu_time: bool) -> int:
    """Return the next arrival, end, or time at which a queue's limit is thought to be reached."""
    times = [job.submit for job in coming[:1]]
    for job in present:
        if job.runs:
            times.append(now + job.seconds - job.served)
            if job.queue < len(limits):
                # Seconds are taken from GPU-seconds here, as the authors do.
                left = limits[job.queue] - job.served
                times.append(now + max(left // job.gpus if by_gpu_time else left, 0))
    return min(times)


def _choose(queues: list[list[_Job]], gpus: int) -> None:
    """Let jobs run in order of queues, who does not fit being passed over; then who waits goes to the end of its queue."""
    for queue in queues:
        for job in queue:
            job.runs = job.gpus <= gpus
            gpus -= job.gpus * job.runs
        queue.sort(key=lambda job: not job.runs)
