"""The colour of a placement's verdict: green only where the placement is nearly the best there can be."""

from __future__ import annotations

import pytest

from gputwin.optimization.placement.problem import InstanceGroup, NodeType, PlacementResult, Problem, packing_of
from gputwin.report.page import Statement, Tone
from gputwin.report.sections.placement_plan import placement_plan


@pytest.mark.parametrize(("bound", "tone"), [(200, Tone.GOOD), (199, Tone.GOOD), (163, Tone.NEUTRAL)])
def test_a_wide_gap_is_not_shown_as_good(bound: int, tone: Tone) -> None:
    problem = Problem(("size",), (InstanceGroup("a", ((6,),), 200),), (NodeType("node", (10,)),))
    packing = packing_of(problem, [(0, ((0, 1),))] * 200)
    first = placement_plan(PlacementResult(problem, packing, bound)).parts[0]
    assert isinstance(first, Statement)
    assert first.tone == tone
