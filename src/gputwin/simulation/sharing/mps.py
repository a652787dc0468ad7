"""Several jobs on one GPU at the same time, at measured speeds (space sharing)."""

from __future__ import annotations

from gputwin.simulation.policy import SHARINGS, SharingRule
from gputwin.simulation.sharing._beside import slowed_by_pairs

SHARINGS.add(
    SharingRule(
        "mps",
        "up to `most` jobs run on a GPU at the same time, whatever shares they ask for, at the speeds of the table of "
        "pairs; a neighbour that asks for half a GPU slows half as much as measured. `bandwidth` and `priority` as in "
        "fraction",
        slowed_by_pairs,
        source="Narayanan et al., Heterogeneity-Aware Cluster Scheduling Policies, OSDI'20, section 3.1 (space sharing)",
        parameters={"most": 2, "bandwidth": 0.0, "priority": 1.0},
        at_least={"most": 1, "bandwidth": 0.0},
        at_most={"bandwidth": 1.0},
        by_priority=True,
        uses_pairs=True,
        needs_pairs=True,
        divides=True,
    )
)
