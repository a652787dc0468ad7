"""What waiting is for has the same name in every output, and a planner's is not called a quota's."""

from __future__ import annotations

import gputwin
from gputwin.report.sections.run import causes_tables
from gputwin.simulation.cause_words import CAUSE_WORDS, cause_words, have_rounds
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.verdict import run_verdict
from gputwin.simulation.waits_by_tenant import by_tenant
from tests.simulation.test_explain_preemption import trace_of

ONE = Cluster("one", (NodeGroup("gpu", 1, 1),))
JOBS = [("llm", 0.0, 3000.0, 0), ("llm", 0.0, 3000.0, 0), ("vision", 0.0, 3000.0, 0)]
PLAN = "for GPUs in the plan of a round"


def under(**rules: object) -> SimulationResult:
    return gputwin.simulate(trace_of(JOBS), ONE, **rules)


def test_every_cause_has_words() -> None:
    assert set(CAUSE_WORDS) == set(CAUSE_NAMES)


def test_waits_under_a_planner_are_for_its_plan_in_every_output() -> None:
    planned = under(planner={"policy": "max-min", "round_seconds": 500})
    outputs = [run_verdict(planned).text, str(causes_tables(planned)), *by_tenant(planned).sentences()[:1]]
    assert all(PLAN in text and "quota" not in text for text in outputs)


def test_runs_with_and_without_a_planner_share_a_name() -> None:
    planned = under(planner={"policy": "max-min", "round_seconds": 500})
    limited = under(fairness={"policy": "quota", "tenants": {"llm": {"guaranteed": 1}}})
    assert have_rounds([planned]) is True
    assert have_rounds([limited]) is False
    assert have_rounds([planned, limited]) is None
    assert cause_words("quota_or_fairness", None) == "for quota, fairness or the plan of a round"
