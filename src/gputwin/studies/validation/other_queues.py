"""Queues the engine has no rule for, simulated plainly: impatience, little room, fork-join, closed networks."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from gputwin.queueing.network import Station

Floats = NDArray[np.float64]


def with_patience(submit: Floats, service: Floats, patience: Floats, servers: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return each job's time in the queue and whether it left unserved, in order of arrival."""
    free = [0.0] * servers
    wait, gone = np.zeros(submit.size), np.zeros(submit.size, np.bool_)
    for j, arrival in enumerate(submit):
        due = max(free[0], float(arrival)) - float(arrival)
        if due > patience[j]:
            wait[j], gone[j] = patience[j], True
        else:
            wait[j] = due
            heapq.heapreplace(free, float(arrival) + due + float(service[j]))
    return wait, gone


def with_room(submit: Floats, service: Floats, servers: int, room: int) -> tuple[Floats, NDArray[np.bool_]]:
    """Return each job's wait and whether it was turned away, where at most `room` are in the system."""
    free = [0.0] * servers
    ends: list[float] = []
    wait, lost = np.zeros(submit.size), np.zeros(submit.size, np.bool_)
    for j, arrival in enumerate(submit):
        while ends and ends[0] <= arrival:
            heapq.heappop(ends)
        if len(ends) >= room:
            lost[j] = True
            continue
        start = max(free[0], float(arrival))
        wait[j] = start - arrival
        heapq.heapreplace(free, start + float(service[j]))
        heapq.heappush(ends, start + float(service[j]))
    return wait, lost


def fork_join_responses(submit: Floats, service: Floats) -> Floats:
    """Return each job's time until its last part is done; `service` is [job, part], each part on a server of its own."""
    gaps = np.diff(submit, prepend=submit[0])
    step = np.vstack([np.zeros((1, service.shape[1])), service[:-1] - gaps[1:, None]])
    walk = np.cumsum(step, axis=0)
    # Lindley's recursion: the wait is how far the walk is above its lowest point so far.
    wait = walk - np.minimum.accumulate(walk, axis=0)
    return np.asarray((wait + service).max(axis=1))


def closed_rounds(jobs: int, stations: list[Station], rng: np.random.Generator, rounds: int) -> float:
    """Return rounds per second of jobs that visit each station in turn, exponential service, after a warm-up."""
    queue: list[list[int]] = [[] for _ in stations]
    busy = [0] * len(stations)
    events: list[tuple[float, int, int]] = []
    done, now, begin = 0, 0.0, 0.0

    def enter(job: int, at: int) -> None:
        limit = stations[at].servers
        if limit is None or busy[at] < limit:
            busy[at] += 1
            heapq.heappush(events, (now + float(rng.exponential(stations[at].demand)), job, at))
        else:
            queue[at].append(job)

    for job in range(jobs):
        enter(job, 0)
    warm = rounds // 10
    while done < rounds:
        now, job, at = heapq.heappop(events)
        busy[at] -= 1
        if queue[at]:
            enter(queue[at].pop(0), at)
        following = (at + 1) % len(stations)
        if following == 0:
            done += 1
            if done == warm:
                begin = now
        enter(job, following)
    return (rounds - warm) / (now - begin)
