"""Where the time from submission to end went, on average: over the jobs that ended, as the mean completion time is."""

from __future__ import annotations

import pytest

from gputwin.simulation.completion import mean_parts
from gputwin.simulation.interruptions import Checkpoints
from gputwin.simulation.result import result_of
from gputwin.simulation.rules import Changes
from tests.oracles.cases import Case
from tests.oracles.reference import Node
from tests.simulation.by_hand import gpus, job
from tests.simulation.test_change_by_hand import play

ONE, TWO = gpus(1), gpus(2)


def test_jobs_that_never_ran_count_in_no_mean() -> None:
    """Of three jobs one asks for more than there is. The others end after 5 and 13 s: one waits 5, is stopped, restarts."""
    costs = Checkpoints(save_seconds=1, restart_seconds=2)
    case = Case((Node(1),), (job(0, 10, ONE), job(4, 5, ONE), job(0, 10, TWO)))
    result = result_of(play(case, "srtf", Changes(checkpoints=costs)))
    assert result.summary["outcomes"] == {"finished": 2, "never_fits": 1}
    assert mean_parts(result.summary) == [
        ("service", "7.5 s", "65.2 %"),
        ("wait", "2.5 s", "21.7 %"),
        ("overhead", "1.5 s", "13.0 %"),
    ]
    assert result.summary["jct_seconds"]["mean"] == pytest.approx(7.5 + 2.5 + 1.5)


def test_what_made_jobs_faster_is_below_zero() -> None:
    """10 s of work take 5 s on a GPU of twice the speed."""
    changes = Changes(speed="gpu-model", speeds={"A": 2.0})
    result = result_of(play(Case((Node(1, "A"),), (job(0, 10, ONE),)), "fifo", changes))
    assert mean_parts(result.summary) == [("service", "10 s", "200.0 %"), ("slow gpu model", "-5 s", "-100.0 %")]
