"""Jobs of Gavel's published experiments, drawn by the authors' rule.

Narayanan et al., OSDI'20, section 7.1. The rule draws a place in a table of job types, so the order of that table decides
which job is of which type. The figures were printed with the order below (`scheduler/job_table.py` of the authors' public
repository, stanford-futuredata/gavel, commit 4605a9cb); commit 6d790ac2 has A3C after the recommendation models, and jobs
drawn from it are others: of other types and, where jobs have several GPUs, of other lengths.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Sequence

import polars as pl

COUNT = 12_000
"""Jobs that are drawn: enough that jobs keep coming until the last measured one ends, at all printed rates."""
SIZES = (1, 2, 4, 8)
_LIMITS = (0.7, 0.8, 0.95)
"""Below which of these a drawn number makes a job of which size."""


def _sizes(model: str, *batches: int) -> tuple[str, ...]:
    return tuple(f"{model} (batch size {batch})" for batch in batches)


IMAGES_AND_TRANSLATION = (
    *_sizes("ResNet-18", 16, 32, 64, 128, 256),
    *_sizes("ResNet-50", 16, 32, 64, 128),
    *_sizes("Transformer", 16, 32, 64, 128, 256),
)
LANGUAGE = _sizes("LM", 5, 10, 20, 40, 80)
RECOMMENDATION = _sizes("Recommendation", 512, 1024, 2048, 4096, 8192)
JOB_TYPES = (*IMAGES_AND_TRANSLATION, "A3C", *LANGUAGE, *RECOMMENDATION, "CycleGAN")
"""Job types in the order that the printed figures were drawn from."""
LATER_JOB_TYPES = (*IMAGES_AND_TRANSLATION, *LANGUAGE, *RECOMMENDATION, "A3C", "CycleGAN")
"""The same types in the order of the authors' last version."""
DISTRIBUTED = frozenset((*IMAGES_AND_TRANSLATION, *LANGUAGE))
"""Types that can run on several GPUs."""


def drawn_jobs(
    seed: int, *, several_gpus: bool, count: int = COUNT, job_types: Sequence[str] = JOB_TYPES
) -> pl.DataFrame:
    """Return jobs in order of arrival: when (in mean gaps between two), type, GPUs and seconds on V100s.

    Gaps are exponential. 20 % of the jobs take 10^3 to 10^4 minutes, the others 10^1.5 to 10^3, uniform in the exponent.
    With `several_gpus`, 70 % ask for one GPU, 10 % for 2, 15 % for 4 and 5 % for 8, else all for one. A type that cannot
    run on so many GPUs is drawn again, which changes all later draws.
    """
    dice, gaps = random.Random(seed + 2), random.Random(seed + 3)
    rows = []
    arrival = 0.0
    for _ in range(count):
        drawn = SIZES[bisect(_LIMITS, dice.uniform(0, 1))]
        gpus = drawn if several_gpus else 1
        low, high = (3, 4) if dice.random() >= 0.8 else (1.5, 3)
        seconds = 60.0 * 10.0 ** dice.uniform(low, high)
        job_type = dice.choice(job_types)
        while gpus > 1 and job_type not in DISTRIBUTED:
            job_type = dice.choice(job_types)
        rows.append((arrival, job_type, gpus, seconds))
        arrival += gaps.expovariate(1.0)
    return pl.DataFrame(
        rows, schema=["arrival_unit", "job_type", "scale_factor", "duration_v100_seconds"], orient="row"
    )
