"""Why some of Gavel's printed completion times cannot follow from the published jobs and throughputs.

A job is drawn with a length, its time on V100s, and its steps follow from that. So where only V100s are used the throughputs
do not matter; where others are used they do. And no job can end sooner than on its fastest GPUs without a wait.
"""

from __future__ import annotations

import random
from bisect import bisect
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from gputwin.core.units import HOUR

TYPES, DISTRIBUTED = 26, 19
"""Job types that are drawn from, and how many of them, the first ones, can run on several GPUs."""
SIZES = (1, 2, 4, 8)
_LIMITS = (0.7, 0.8, 0.95)
"""Below which of these a drawn number makes a job of which size."""
SEEDS = 200


def drawn_seconds(seed: int, count: int, *, several_gpus: bool) -> list[float]:
    """Return lengths of jobs, s on V100s, by the authors' rule of drawing (Narayanan et al., section 7.1) for a seed.

    20 % take 10^3 to 10^4 minutes, the others 10^1.5 to 10^3, uniform in the exponent; 70 % ask for one GPU, 10 % for 2,
    15 % for 4 and 5 % for 8. A type that cannot run on several GPUs is drawn again, which moves all later draws.
    """
    dice = random.Random(seed + 2)
    lengths = []
    for _ in range(count):
        size = SIZES[bisect(_LIMITS, dice.uniform(0, 1))]
        low, high = (3, 4) if dice.random() >= 0.8 else (1.5, 3)
        lengths.append(60.0 * 10.0 ** dice.uniform(low, high))
        while dice.choice(range(TYPES)) >= DISTRIBUTED and several_gpus and size > 1:
            pass
    return lengths


@dataclass(frozen=True)
class Evidence:
    """What the jobs allow at the least, and what was printed; all means of the measured jobs, h."""

    trace: str
    on_v100: float
    """On V100s, without a wait."""
    on_fastest: float
    """Each on its fastest GPUs, without a wait."""
    printed: dict[str, float]
    """Policy → printed mean at the lowest rate."""
    of_seeds: tuple[float, float, float]
    """Least, mean and largest length on V100s of jobs drawn by the same rule with other seeds."""

    def sentences(self) -> list[str]:
        """Return what follows, in words; nothing where the figures agree with the jobs."""
        said = []
        least = self.printed.get("fifo_perf", np.inf)
        if least < self.on_fastest:
            said.append(
                f"fifo_perf was printed as {least:.2f} h at the lowest rate, less than the {self.on_fastest:.2f} h that "
                "these jobs take on their fastest GPUs without a wait: figures of policies that use P100 and K80 were made "
                "with other throughputs than those published. Where only V100s are used throughputs do not matter, and "
                "the figures agree."
            )
        gap = self.printed.get("fifo", self.on_v100) - self.on_v100
        if gap > _ROUNDS:
            low, mean, high = self.of_seeds
            said.append(
                f"fifo was printed as {self.on_v100 + gap:.2f} h at the lowest rate, where all run on V100s without a "
                f"wait; the published jobs take {self.on_v100:.2f} h there, and rounds add {_ROUNDS:.1f} h at most. So the "
                f"printed figures are of other jobs: {SEEDS} seeds of the same rule give {low:.1f} to {high:.1f} h, "
                f"{mean:.1f} on average. They can be compared by direction, not by digit."
            )
        return said

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return {
            "mean_hours_on_v100": self.on_v100,
            "mean_hours_on_fastest": self.on_fastest,
            "printed_at_lowest_rate_hours": self.printed,
            "mean_hours_on_v100_of_other_seeds": dict(zip(("least", "mean", "largest"), self.of_seeds, strict=True)),
            "sentences": self.sentences(),
        }


_ROUNDS = 0.6
"""A job waits for a round (360 s) and a plan (1,920 s) at most when GPUs are idle, h."""


def evidence(trace: str, jobs: pl.DataFrame, measured: slice, published: pl.DataFrame) -> Evidence:
    """Return what the measured jobs of a trace allow, and what was printed of it at the lowest rate."""
    rates = jobs.select("k80", "p100", "v100").to_numpy()[measured]
    steps = jobs["total_steps"].to_numpy()[measured]
    curves = published.filter(trace=f"continuous-{trace}").sort("input_jobs_per_hour")
    printed = {str(policy[0]): float(curve["value"][0]) for policy, curve in curves.group_by("policy")}
    count, several = measured.stop, trace == "multiple"
    means = [
        float(np.mean(drawn_seconds(s, count, several_gpus=several)[measured])) / HOUR for s in range(1, SEEDS + 1)
    ]
    return Evidence(
        trace,
        float((steps / rates[:, 2]).mean()) / HOUR,
        float((steps / rates.max(axis=1)).mean()) / HOUR,
        dict(sorted(printed.items())),
        (min(means), float(np.mean(means)), max(means)),
    )
