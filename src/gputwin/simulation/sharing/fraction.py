"""Shares of a GPU as jobs ask for them."""

from __future__ import annotations

from gputwin.simulation.policy import SHARINGS, SharingRule
from gputwin.simulation.sharing._beside import slowed_by_pairs

SHARINGS.add(
    SharingRule(
        "fraction",
        "each job holds the share and memory it asks for of each device; with `interference`, neighbours on a device slow "
        "each other",
        slowed_by_pairs,
        uses_pairs=True,
    )
)
