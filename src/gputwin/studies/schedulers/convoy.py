"""The convoy effect: how long everybody waits behind the one job at the head of a strict queue, and what jobs those are.

Under strict first come first served only the head of the queue is asked. Job k is the head from when the job before it
has started (or from its own submission) until its start, and everyone submitted meanwhile waits behind it. Blasgen et al.,
*The Convoy Phenomenon*, 1979; for gangs, Feitelson and Jette, JSSPP 1997.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gputwin.core.units import HOUR, percent
from gputwin.studies.schedulers.measure import Floats, Measured

CLASSES = ((0.0, 1.0), (1.0, 8.0), (8.0, np.inf))
"""GPUs of the job at the head: more than the first, at most the second; the first class has jobs without GPUs too."""


@dataclass(frozen=True)
class Convoy:
    """Who waited behind whom in a strict queue; per class of heads: its share of jobs and of the waiting behind heads."""

    behind_hours: float
    """Waiting behind the head, of all jobs together."""
    head_hours: float
    """Waiting of heads themselves, for room."""
    jobs_share: tuple[float, ...]
    behind_share: tuple[float, ...]
    longest: int
    """Jobs behind the head when most waited."""
    longest_gpus: float
    longest_hours: float
    """How many GPUs that head asked for, and how long it blocked the queue."""
    small_wait_hours: dict[str, float]
    """Mean wait of jobs of at most one GPU under each rule of overtaking."""

    def sentence(self) -> str:
        """Return what the convoy effect costs, in words."""
        total = self.behind_hours + self.head_hours
        if total == 0:
            return "Convoys: nobody waits under strict order."
        heads = ", ".join(
            f"{_words(k)} are {percent(self.jobs_share[k])} of jobs and hold up {percent(self.behind_share[k])}"
            for k in range(len(CLASSES))
        )
        small = ", ".join(f"{hours:.2f} h under {name}" for name, hours in self.small_wait_hours.items())
        gpus = f"{self.longest_gpus:g} GPU{'' if self.longest_gpus == 1 else 's'}"
        return (
            f"Convoys: under strict order {percent(self.behind_hours / total)} of all waiting is behind the one job at the "
            f"head of the queue. Of that, {heads}. At worst {self.longest:,} jobs waited behind one that asked for {gpus} "
            f"and was the head for {self.longest_hours:.1f} h. Jobs of at most one GPU wait {small}."
        )

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return {
            "waiting_behind_head_hours": self.behind_hours,
            "waiting_of_heads_hours": self.head_hours,
            "heads": [
                {
                    "gpus": _words(k),
                    "share_of_jobs": self.jobs_share[k],
                    "share_of_waiting_behind": self.behind_share[k],
                }
                for k in range(len(CLASSES))
            ],
            "longest_convoy": {"jobs": self.longest, "gpus": self.longest_gpus, "hours": self.longest_hours},
            "mean_wait_of_small_jobs_hours": self.small_wait_hours,
            "sentence": self.sentence(),
        }


def _words(k: int) -> str:
    low, high = CLASSES[k]
    if k == 0:
        return f"heads of at most {high:g} GPU"
    return f"heads of more than {low:g} GPUs" if high == np.inf else f"heads of {low + 1:g} to {high:g} GPUs"


def convoy(strict: Measured, others: dict[str, Measured]) -> Convoy:
    """Return the convoys of a strict queue; `others`: runs of the same jobs by other rules of overtaking."""
    started = ~np.isnan(strict.start)
    order = np.lexsort((np.flatnonzero(started), strict.submit[started]))
    submit, start, gpus = (x[started][order] for x in (strict.submit, strict.start, strict.gpus))
    begin, behind, count = _behind(submit, start)
    where = [(gpus > low) & (gpus <= high) | ((gpus <= 0) & (k == 0)) for k, (low, high) in enumerate(CLASSES)]
    total = float(behind.sum())
    worst = int(count.argmax()) if count.size else 0
    small = {
        name: float(np.nanmean((run.start - run.submit)[run.gpus <= 1]) / HOUR)
        for name, run in {"strict": strict, **others}.items()
        if (run.gpus <= 1).any()
    }
    return Convoy(
        behind_hours=total / HOUR,
        head_hours=float((start - begin).sum()) / HOUR,
        jobs_share=tuple(float(w.mean()) for w in where),
        behind_share=tuple(float(behind[w].sum()) / total if total else 0.0 for w in where),
        longest=int(count[worst]),
        longest_gpus=float(gpus[worst]),
        longest_hours=float(start[worst] - begin[worst]) / HOUR,
        small_wait_hours=small,
    )


def _behind(submit: Floats, start: Floats) -> tuple[Floats, Floats, Floats]:
    """Return, per job in order: when it became the head, s that others then waited behind it, and how many at its end."""
    begin = np.maximum(np.concatenate([[-np.inf], start[:-1]]), submit)
    at = np.arange(submit.size)
    there = np.maximum(np.searchsorted(submit, begin, side="right"), at + 1)
    by_end = np.maximum(np.searchsorted(submit, start, side="left"), there)
    before = np.concatenate([[0.0], np.cumsum(submit)])
    later = (by_end - there) * start - (before[by_end] - before[there])
    behind = (there - at - 1) * (start - begin) + later
    blocked = start > begin
    return begin, np.where(blocked, behind, 0.0), np.where(blocked, by_end - at - 1, 0).astype(np.float64)
