"""Goodput and badput of a run: what of the GPU-hours held did work that counts, and what was lost or overhead."""

from __future__ import annotations

import numpy as np
import polars as pl

from gputwin.core.units import HOUR
from gputwin.simulation.engine.state.records import WHOLE, Floats
from gputwin.simulation.engine.world import GAVE_UP
from gputwin.simulation.run import Run

PARTS = {
    "useful": "work that counts",
    "lost": "work done again, or in vain",
    "overhead": "saving, restarting, resizing",
    "slowed": "more than the work takes at full speed",
}
"""Where the GPU-hours that jobs held went."""


def goodput_of(run: Run, segments: pl.DataFrame | None = None, gpus: Floats | None = None) -> dict[str, float | None]:
    """Return GPU-hours by part (`PARTS`), and goodput: the useful share of all, None where nothing was held.

    Useful is the work of finished jobs, and of others what they would go on from; all work of a job that gave up is lost.
    Work counts with the GPUs its job asks for. `segments` and the `gpus` each holds, where that may be another number
    (`held.py`): then the parts sum to the GPU-hours held. Slowed is below 0 where fewer GPUs, or faster ones, were enough.
    """
    jobs, lives = run.world.queue.jobs, run.world.lives.records
    asked = jobs["gpu_milli"] / WHOLE / HOUR
    gave_up = jobs["outcome"] == GAVE_UP
    done = np.minimum(jobs["done"], jobs["duration"])
    slowed = sum(
        run.world.lives.factors[name] for name in ("slow_model", "slow_spread", "slow_neighbours", "slow_size")
    )
    hours = {
        "useful": float((asked * np.where(gave_up, 0.0, done)).sum()),
        "lost": float((asked * (lives["lost"] + np.where(gave_up, done, 0.0))).sum()),
        "overhead": float((asked * lives["overheads"]).sum()),
        "slowed": float((asked * slowed).sum()),
    }
    if segments is not None and gpus is not None:
        row, seconds = segments["job"].to_numpy(), (segments["end_time"] - segments["start_time"]).to_numpy()
        ran = np.bincount(row, seconds, jobs.size)
        more = np.bincount(row, seconds * (gpus / HOUR - asked[row]), jobs.size)
        more_in_overhead = float(
            (np.divide(more, ran, out=np.zeros(ran.size), where=ran > 0) * lives["overheads"]).sum()
        )
        hours["overhead"] += more_in_overhead
        hours["slowed"] += float(more.sum()) - more_in_overhead
    held_hours = sum(max(value, 0.0) for value in hours.values())
    shares = {f"{name}_gpu_hours": value for name, value in hours.items()}
    return {**shares, "goodput": hours["useful"] / held_hours if held_hours > 0 else None}
