"""A run that is left and taken up again at any time goes as one that is not."""

from __future__ import annotations

import numpy as np
import pytest

from gputwin.simulation.engine.kernel import Stepper
from gputwin.simulation.interruptions import Faults
from gputwin.simulation.run import Changes, Scheduler, run
from tests.oracles.cases import random_case

RULES = [("strict", "fifo"), ("greedy", "sjf"), ("easy", "fifo"), ("conservative", "fifo"), ("greedy", "srtf")]


def in_steps(stepper: Stepper) -> None:
    """Take the run to its end, half a second at a time."""
    time = 0.0
    while not stepper.run_until(time) and time < 200:
        assert stepper.world.clock[0] <= time
        time += 0.5


@pytest.mark.parametrize(("backfill", "order"), RULES)
def test_steps_change_nothing(backfill, order):
    for seed in range(25):
        workload, cluster, typical = random_case(seed).engine_input
        changes = Changes(faults=Faults(mtbf_seconds=20.0, repair_seconds=2.0)) if seed % 2 and order == "sjf" else None
        scheduler = Scheduler(order, backfill, "best-fit")
        made = [run(workload, cluster, scheduler, typical=typical, changes=changes, drive=d) for d in (None, in_steps)]
        once, stepped = (done.world for done in made)
        for field in ("start", "end", "outcome"):
            np.testing.assert_array_equal(once.queue.jobs[field], stepped.queue.jobs[field])
        np.testing.assert_array_equal(once.causes.share, stepped.causes.share)
        np.testing.assert_array_equal(once.slots, stepped.slots)
        np.testing.assert_array_equal(once.series.values, stepped.series.values)
