"""One server that interrupts or shares, simulated plainly: what the engine does not do is checked against this.

Nothing here is shared with the models or the engine; each function is a few lines of event list.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def preempt(submit: Floats, service: Floats, key: Callable[[int, float], float]) -> Floats:
    """Return when each job ends, where the job of the least `key(job, time left)` always runs and work is kept."""
    end = np.zeros(submit.size)
    heap: list[tuple[float, int, float]] = []
    now = 0.0
    for j, arrival in enumerate(submit):
        now = _run(heap, now, float(arrival), end)
        # The running job's key may have changed as it ran; it alone has.
        if heap:
            _, running, left = heapq.heappop(heap)
            heapq.heappush(heap, (key(running, left), running, left))
        heapq.heappush(heap, (key(j, float(service[j])), j, float(service[j])))
    _run(heap, now, np.inf, end)
    return end


def _run(heap: list[tuple[float, int, float]], now: float, until: float, end: Floats) -> float:
    """Run the first job of the heap, and the next, until this time; return it."""
    while heap and now + heap[0][2] <= until:
        _, job, left = heapq.heappop(heap)
        now += left
        end[job] = now
    if heap and until > now:
        order, job, left = heap[0]
        heap[0] = (order, job, left - (until - now))
    return until


def share(submit: Floats, service: Floats, speed: Callable[[int], float] = lambda n: 1.0) -> Floats:
    """Return when each job ends, where the n jobs present run at speed(n)/n each."""
    end = np.zeros(submit.size)
    heap: list[tuple[float, int]] = []
    now, attained = 0.0, 0.0
    for j in range(submit.size + 1):
        until = float(submit[j]) if j < submit.size else np.inf
        while heap:
            rate = speed(len(heap)) / len(heap)
            done = now + (heap[0][0] - attained) / rate
            if done > until:
                attained += (until - now) * rate
                break
            now, attained = done, heap[0][0]
            end[heapq.heappop(heap)[1]] = done
        now = until
        if j < submit.size:
            if not heap:
                attained = 0.0
            heapq.heappush(heap, (attained + float(service[j]), j))
    return end


def least_attained(submit: Floats, service: Floats) -> Floats:
    """Return when each job ends, where those that have run least run, sharing the server among them."""
    end = np.zeros(submit.size)
    # Levels of jobs with the same attained service, least first; each a heap of (size, job).
    levels: deque[tuple[float, list[tuple[float, int]]]] = deque()
    now = 0.0
    for j in range(submit.size + 1):
        until = float(submit[j]) if j < submit.size else np.inf
        while levels:
            attained, members = levels[0]
            upto = members[0][0]
            if len(levels) > 1:
                upto = min(upto, levels[1][0])
            reached = now + (upto - attained) * len(members)
            if reached > until:
                levels[0] = (attained + (until - now) / len(members), members)
                break
            now = reached
            levels[0] = (upto, members)
            while members and members[0][0] <= upto:
                end[heapq.heappop(members)[1]] = now
            if not members:
                levels.popleft()
            elif len(levels) > 1 and levels[1][0] <= upto:
                levels.popleft()
                level, others = levels.popleft()
                small, large = sorted((members, others), key=len)
                for item in small:
                    heapq.heappush(large, item)
                levels.appendleft((level, large))
        now = until
        if j < submit.size:
            levels.appendleft((0.0, [(float(service[j]), j)]))
    return end


def preempt_on_servers(submit: Floats, service: Floats, urgency: Sequence[int], servers: int) -> Floats:
    """Return when each job ends on several servers, where the most urgent (least number), then the earliest, run."""
    end = np.zeros(submit.size)
    left = service.astype(float).copy()
    waiting: list[tuple[int, int]] = []
    running: dict[int, float] = {}
    now = 0.0
    for j in range(submit.size + 1):
        until = float(submit[j]) if j < submit.size else np.inf
        while running:
            job = min(running, key=running.__getitem__)
            if running[job] > until:
                break
            now = running.pop(job)
            end[job] = now
            if waiting:
                _, following = heapq.heappop(waiting)
                running[following] = now + left[following]
        now = until
        if j == submit.size:
            break
        if len(running) < servers:
            running[j] = now + left[j]
            continue
        weakest = max(running, key=lambda r: (urgency[r], r))
        if (urgency[j], j) < (urgency[weakest], weakest):
            left[weakest] = running.pop(weakest) - now
            heapq.heappush(waiting, (urgency[weakest], weakest))
            running[j] = now + left[j]
        else:
            heapq.heappush(waiting, (urgency[j], j))
    return end
