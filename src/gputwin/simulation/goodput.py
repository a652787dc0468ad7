"""Goodput and badput of a run: what of the GPU-hours held did work that counts, and what was lost or overhead."""

from __future__ import annotations

import numpy as np

from gputwin.core.units import HOUR
from gputwin.simulation.engine.state.records import WHOLE
from gputwin.simulation.engine.world import GAVE_UP
from gputwin.simulation.run import Run

PARTS = {
    "useful": "work that counts",
    "lost": "work done again, or in vain",
    "overhead": "saving, restarting, resizing",
    "slowed": "time above that at full speed",
}
"""Where the GPU-hours that jobs held went."""


def goodput_of(run: Run) -> dict[str, float | None]:
    """Return GPU-hours by part (`PARTS`), and goodput: the useful share of all, None where nothing was held.

    Each second of a job counts with the GPUs it asks for. Useful is the work of finished jobs, and of others what they
    would go on from; all work of a job that gave up is lost. Less than 0 is slowed where GPUs are faster than full speed.
    """
    jobs, lives = run.world.queue.jobs, run.world.lives.records
    gpus = jobs["gpu_milli"] / WHOLE / HOUR
    gave_up = jobs["outcome"] == GAVE_UP
    done = np.minimum(jobs["done"], jobs["duration"])
    slowed = sum(
        run.world.lives.factors[name] for name in ("slow_model", "slow_spread", "slow_neighbours", "slow_size")
    )
    hours = {
        "useful": float((gpus * np.where(gave_up, 0.0, done)).sum()),
        "lost": float((gpus * (lives["lost"] + np.where(gave_up, done, 0.0))).sum()),
        "overhead": float((gpus * lives["overheads"]).sum()),
        "slowed": float((gpus * slowed).sum()),
    }
    held = sum(max(value, 0.0) for value in hours.values())
    shares = {f"{name}_gpu_hours": value for name, value in hours.items()}
    return {**shares, "goodput": hours["useful"] / held if held > 0 else None}
