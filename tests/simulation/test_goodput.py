"""Goodput and badput of small runs, worked out by hand: where the GPU-hours that jobs held went."""

from __future__ import annotations

from typing import Any

import pytest

from gputwin.core.units import HOUR
from gputwin.simulation.checkpoint_writers import saves_of, writers_of
from gputwin.simulation.goodput import goodput_of
from gputwin.simulation.interruptions import Checkpoints, Faults, Maintenance
from gputwin.simulation.rules import Changes
from tests.oracles.cases import Case
from tests.oracles.reference import Node
from tests.simulation.by_hand import gpus, job
from tests.simulation.test_change_by_hand import play

ONE = gpus(1)
TWO_JOBS = Case((Node(1),), (job(0, 10, ONE), job(4, 2, ONE)))
"""Under the shortest remaining time the second takes the first's place at 4."""


def seconds(case: Case, order: str, **changes: Any) -> list[float]:
    """Return GPU-seconds of useful and of lost work, of overhead, and lost to slowness."""
    found = goodput_of(play(case, order, Changes(**changes)))
    return [(found[f"{name}_gpu_hours"] or 0.0) * HOUR for name in ("useful", "lost", "overhead", "slowed")]


def test_saves_and_restarts_are_overhead() -> None:
    costs = Checkpoints(save_seconds=1, restart_seconds=2)
    assert seconds(TWO_JOBS, "srtf", checkpoints=costs) == pytest.approx([12, 0, 3, 0])
    done = play(TWO_JOBS, "srtf", Changes(checkpoints=costs))
    assert goodput_of(done)["goodput"] == pytest.approx(12 / 15)


def test_work_since_the_last_checkpoint_is_lost() -> None:
    """It has saved 3 of the 4 s."""
    costs = Checkpoints(interval_seconds=3, on_preemption=False)
    assert seconds(TWO_JOBS, "srtf", checkpoints=costs) == pytest.approx([12, 1, 0, 0])


def test_all_work_of_a_job_that_gives_up_is_lost() -> None:
    """Its first stop is one too many: 4 s were in vain."""
    assert seconds(TWO_JOBS, "srtf", checkpoints=Checkpoints(most_stops=1)) == pytest.approx([2, 4, 0, 0])


def test_seconds_count_with_the_gpus_of_the_job() -> None:
    two = gpus(2)
    case = Case((Node(2),), (job(0, 10, two), job(4, 2, two)))
    costs = Checkpoints(save_seconds=1, restart_seconds=2)
    assert seconds(case, "srtf", checkpoints=costs) == pytest.approx([24, 0, 6, 0])


@pytest.mark.parametrize(("speed", "slowed"), [(0.5, 10.0), (2.0, -5.0)])
def test_what_takes_longer_than_at_full_speed_is_slowed(speed: float, slowed: float) -> None:
    """Ten seconds of work take 20 at half speed, and 5 at double: then nothing is lost, and goodput is 1."""
    case = Case((Node(1, "A"),), (job(0, 10, ONE),))
    rules = {"speed": "gpu-model", "speeds": {"A": speed}}
    assert seconds(case, "fifo", **rules) == pytest.approx([10, 0, 0, slowed])
    assert goodput_of(play(case, "fifo", Changes(**rules)))["goodput"] == pytest.approx(10 / max(10 + slowed, 10))


TWINS = Case((Node(1), Node(1)), (job(0, 100, ONE), job(0, 100, ONE)))
NEVER = Faults(maintenance=(Maintenance(0, 1e6, 1e6),))
"""Something that may change, long after the end: only then are checkpoints saved."""


def test_jobs_that_start_together_save_together_unless_staggered() -> None:
    """Every 40 s of work, 5 s to save. Together: at 40 and 85, and both end at 110. Staggered, job 1 saves after 0.382 of an
    interval, 15.28 s, and every 40 s of work after that: three times, so that it ends at 115, and nobody meets anybody."""
    together = play(TWINS, "fifo", Changes(faults=NEVER, checkpoints=Checkpoints(40, 5)))
    assert saves_of(together)[0].tolist() == [40, 85, 40, 85]
    assert writers_of(together) == {"peak": 2, "mean": 2, "saves": 4}
    apart = play(TWINS, "fifo", Changes(faults=NEVER, checkpoints=Checkpoints(40, 5, stagger=True)))
    first = 40 * (3 - 5**0.5) / 2
    assert saves_of(apart)[0].tolist() == pytest.approx([40, 85, first, first + 45, first + 90])
    assert writers_of(apart) == {"peak": 1, "mean": 1, "saves": 5}
    assert apart.world.queue.jobs["end"].tolist() == [110, 115]


def test_before_the_first_staggered_checkpoint_all_is_lost_and_no_more() -> None:
    """Node 1 fails at 10: job 1 has saved nothing yet, loses 10 s, and starts again from nothing at 20."""
    down = Faults(maintenance=(Maintenance(1, 1e6, 10, 20),))
    done = play(TWINS, "fifo", Changes(faults=down, checkpoints=Checkpoints(40, 5, stagger=True)))
    assert done.world.lives.records["lost"].tolist() == [0, 10]
    assert done.world.queue.jobs["end"].tolist() == [110, 135]


def test_saves_found_again_are_the_overhead() -> None:
    """Where nothing but saves is overhead."""
    case = Case((Node(2), Node(1)), tuple(job(k, 30 + 7 * k, ONE) for k in range(6)))
    down = Faults(maintenance=(Maintenance(1, 1e6, 21, 33), Maintenance(0, 1e6, 40, 41)))
    for staggered in (False, True):
        checkpoints = Checkpoints(6, 0.5, stagger=staggered)
        done = play(case, "fifo", Changes(faults=down, checkpoints=checkpoints))
        begin, end = saves_of(done)
        assert float((end - begin).sum()) == pytest.approx(float(done.world.lives.records["overheads"].sum()))
