"""Shares of a GPU as jobs ask for them."""

from __future__ import annotations

from gputwin.simulation.policy import SHARINGS, SharingRule
from gputwin.simulation.sharing._beside import slowed_by_pairs

SHARINGS.add(
    SharingRule(
        "fraction",
        "each job holds the share and memory it asks for of each device; with `interference`, neighbours on a device slow "
        "each other. With `bandwidth`, jobs of priority `priority` or more keep that part of their speed beside others, "
        "which are throttled for it",
        slowed_by_pairs,
        parameters={"bandwidth": 0.0, "priority": 1.0},
        at_least={"bandwidth": 0.0},
        at_most={"bandwidth": 1.0},
        uses_pairs=True,
        by_priority=True,
    )
)
