"""Every waiting job has a reservation that nobody may delay."""

from __future__ import annotations

from gputwin.simulation.engine.passes.conservative import conservative_pass
from gputwin.simulation.engine.world import CONSERVATIVE
from gputwin.simulation.policy import BACKFILLS, Backfill

POLICY = BACKFILLS.add(
    Backfill(
        "conservative",
        "who delays nobody that waits may overtake",
        CONSERVATIVE,
        conservative_pass,
        "Mu'alem and Feitelson, IEEE TPDS 12(6), 2001",
    )
)
