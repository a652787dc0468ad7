"""Nobody overtakes the first job."""

from __future__ import annotations

from gputwin.simulation.engine.passes.strict import strict_pass
from gputwin.simulation.engine.world import STRICT
from gputwin.simulation.policy import BACKFILLS, Backfill

POLICY = BACKFILLS.add(Backfill("strict", "nobody overtakes the first job", STRICT, strict_pass, ""))
