"""Backfilling that looks no further than the first eight that do not fit."""

from gputwin.simulation.engine.passes.in_order import end_in_order, first_in_line, next_in_line, try_to_start
from gputwin.simulation.policy import backfill


@backfill("window", "whoever of the first eight in line fits may start")
def schedule_pass(world, now, order, promotion, claim, score, devices, turn, gate):
    j, blocked = first_in_line(world), 0
    while j >= 0 and blocked < 8:
        following = next_in_line(world, j)
        if not try_to_start(world, j, now, score, devices):
            blocked += 1
        j = following
    end_in_order(world, now)
