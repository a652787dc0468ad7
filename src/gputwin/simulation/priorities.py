"""Priorities for the jobs of a trace that has none: drawn by given shares, from the seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from gputwin.core.errors import InputError
from gputwin.core.rng import stream
from gputwin.core.units import percent
from gputwin.simulation.workload import Workload

USUAL = {0: 0.3, 1: 0.6, 2: 0.1}
"""Priority → share of jobs, where schedulers are compared on a trace without priorities."""


def draw(jobs: int, shares: Mapping[int, float], seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the priority of each job; the same seed gives the same."""
    levels, parts = zip(*sorted(shares.items()), strict=True)
    return stream(seed, "priorities").choice(np.array(levels, np.int64), jobs, p=np.array(parts) / sum(parts))


def shares_words(shares: Mapping[int, float], seed: int) -> str:
    """Return what was drawn, as users are shown it."""
    shown = ", ".join(f"{percent(share)} of jobs {level}" for level, share in sorted(shares.items()))
    return f"priorities are drawn, seed {seed}: {shown}"


def with_priorities(
    workload: Workload, shares: Mapping[int, float] | None, seed: int, rule: str, note: Callable[[str], None]
) -> Workload:
    """Return the jobs with drawn priorities, where `shares` are given; `note` gets a line on that, or that `rule` has none.

    `rule`: what goes by priorities in the scenario, "" where nothing does.
    """
    known = workload.jobs["priority"]
    has_own = workload.size > 0 and bool((known != known[0]).any())
    if shares is None:
        if rule and not has_own and workload.size > 1:
            note(
                f"all jobs of the trace have the same priority, so {rule} changes nothing; "
                "--priorities 0=0.9,1=0.1 draws some"
            )
        return workload
    if has_own:
        raise InputError("the trace has priorities of its own", field="priorities", remedy="leave it out")
    note(shares_words(shares, seed))
    jobs = workload.jobs.copy()
    jobs["priority"] = draw(workload.size, shares, seed)
    return replace(workload, jobs=jobs)
