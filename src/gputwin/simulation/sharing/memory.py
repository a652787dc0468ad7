"""GPU memory in partitions, some of which are kept for jobs of high priority."""

from __future__ import annotations

from gputwin.simulation.policy import SHARINGS, SharingRule
from gputwin.simulation.sharing._beside import slowed_by_pairs

SHARINGS.add(
    SharingRule(
        "memory",
        "the memory of each GPU is cut into 8 equal partitions; a job on a share of a GPU holds as many, side by side, as "
        "cover its memory (its share of the GPU where it states none) and can use no more. The last `reserved` ones are a "
        "pool for jobs of priority `priority` or more; a job on whole GPUs has all of their memory",
        slowed_by_pairs,
        source="limits per process and memory pools of CUDA (cudaMemPool), with a pool by priority",
        parameters={"reserved": 2, "priority": 1.0},
        at_least={"reserved": 0},
        at_most={"reserved": 7},
        uses_pairs=True,
        by_priority=True,
    )
)
