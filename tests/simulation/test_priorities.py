"""Priorities of a trace that has none: the user is told, and may have them drawn."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from gputwin.cli.main import app
from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.priorities import draw
from gputwin.simulation.scenario import scenario_of
from gputwin.simulation.simulate import simulate, simulate_scenario
from gputwin.traces.dataset import Trace
from gputwin.traces.locate import open_trace
from tests.simulation.test_explain_preemption import trace_of

TRACE = "synthetic:philly?jobs=300"
RULES = {"trace": TRACE, "cluster": "homogeneous:2x8", "order": "priority:aging=0", "preemption": "priority"}
SHARES = {0: 0.3, 1: 0.6, 2: 0.1}


def notes(opened: Trace | None = None, **fields: object) -> list[str]:
    told: list[str] = []
    simulate_scenario(scenario_of({**RULES, **fields}).check(), opened, note=told.append)
    return told


def test_a_rule_that_has_nothing_to_go_by_is_told() -> None:
    assert any("same priority, so preemption 'priority' changes nothing" in text for text in notes())
    assert any("order 'priority'" in text for text in notes(preemption=""))
    assert not any("priorit" in text for text in notes(preemption="", order="fifo"))


def test_drawn_priorities_are_said_and_stop_jobs() -> None:
    assert "priorities are drawn, seed 0: 30 % of jobs 0, 60 % of jobs 1, 10 % of jobs 2" in notes(priorities=SHARES)
    fields = {name: RULES[name] for name in ("order", "preemption")}
    drawn = simulate(open_trace(TRACE), "homogeneous:2x8", priorities=SHARES, **fields)
    assert drawn.summary["stops"].get("preempted", 0) > 0
    again = simulate(drawn.scenario)
    assert again.jobs.equals(drawn.jobs)
    assert "preempted" not in simulate(open_trace(TRACE), "homogeneous:2x8", **fields).summary["stops"]


def test_shares_are_those_asked_for() -> None:
    found = np.bincount(draw(10_000, SHARES, seed=1), minlength=3) / 10_000
    for level, share in SHARES.items():
        assert found[level] == pytest.approx(share, abs=4 * (share * (1 - share) / 10_000) ** 0.5)


def test_priorities_of_the_trace_stay() -> None:
    trace = trace_of([("llm", 0, 20, 0), ("vision", 4, 2, 3)])
    cluster = Cluster("one", (NodeGroup("gpu", 1, 1),))
    assert notes(trace, trace="by hand", cluster=cluster) == []
    with pytest.raises(UserError, match="the trace has priorities of its own; leave it out"):
        notes(trace, trace="by hand", cluster=cluster, priorities=SHARES)


@pytest.mark.parametrize(
    ("given", "said"), [("0=0.5,1=0.6", "shares sum to 1.1"), ("high=1", "priorities"), ("0=-1,1=2", "more than 0")]
)
def test_wrong_shares_are_one_line(given: str, said: str) -> None:
    done = CliRunner().invoke(app, ["simulate", TRACE, "--cluster", "homogeneous:2x8", "--priorities", given])
    assert isinstance(done.exception, UserError)
    assert said in str(done.exception)
    assert "\n" not in str(done.exception)
