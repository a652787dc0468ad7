"""Whoever fits starts, in order."""

from __future__ import annotations

from gputwin.simulation.engine.passes.greedy import greedy_pass
from gputwin.simulation.engine.world import GREEDY
from gputwin.simulation.policy import BACKFILLS, Backfill

POLICY = BACKFILLS.add(Backfill("greedy", "whoever fits starts, in order", GREEDY, greedy_pass, ""))
