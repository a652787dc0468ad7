"""Who does not delay the first blocked job may overtake."""

from __future__ import annotations

from gputwin.simulation.engine.passes.easy import easy_pass
from gputwin.simulation.engine.world import EASY
from gputwin.simulation.policy import BACKFILLS, Backfill

POLICY = BACKFILLS.add(
    Backfill(
        "easy",
        "who does not delay the first blocked job may overtake",
        EASY,
        easy_pass,
        "Lifka, The ANL/IBM SP Scheduling System, JSSPP 1995",
    )
)
