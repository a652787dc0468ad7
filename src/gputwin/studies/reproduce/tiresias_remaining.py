"""Least remaining GPU time first, with preemption at no cost, as the authors of Tiresias simulate it.

Remaining GPU time falls faster for larger jobs, so who goes first changes while jobs run; the engine's ranks of running jobs
are constant between events. Here all are sorted anew at each arrival and end; of equal ones, who went first stays first.
"""

from __future__ import annotations

from collections.abc import Sequence


def ends_by_remaining_gpu_time(jobs: Sequence[tuple[int, int, int, int]], gpus: int) -> dict[int, int]:
    """Return the end of each job (number, GPUs, submit, duration), s; who does not fit is passed over."""
    size = {number: count for number, count, _, _ in jobs}
    left = {number: seconds for number, _, _, seconds in jobs}
    coming = sorted(jobs, key=lambda job: job[2])
    present: list[int] = []
    running: list[int] = []
    ends: dict[int, int] = {}
    now = 0
    while coming or present:
        then = min([job[2] for job in coming[:1]] + [now + left[number] for number in running])
        for number in running:
            left[number] -= then - now
        now = then
        ends |= {number: now for number in present if left[number] == 0}
        present = [number for number in present if left[number] > 0]
        while coming and coming[0][2] == now:
            present.append(coming.pop(0)[0])
        present.sort(key=lambda number: left[number] * size[number])
        running, free = [], gpus
        for number in present:
            if size[number] <= free:
                running.append(number)
                free -= size[number]
    return ends
