"""Nobody waits, a job that does not fit at once is lost."""

from __future__ import annotations

from gputwin.simulation.engine.passes.strict import strict_pass
from gputwin.simulation.engine.world import LOSS
from gputwin.simulation.policy import BACKFILLS, Backfill

POLICY = BACKFILLS.add(
    Backfill("loss", "nobody waits, a job that does not fit at once is lost", LOSS, strict_pass, "Erlang, 1917")
)
