"""The colour of a placement's verdict: green only where the placement is nearly the best there can be."""

from __future__ import annotations

import pytest

from gputwin.optimization.placement.problem import InstanceGroup, NodeType, PlacementResult, Problem, packing_of
from gputwin.report.page import Cards, FigurePart, Findings, Statement, Tone
from gputwin.report.sections.placement_plan import placement_plan


@pytest.mark.parametrize(("bound", "tone"), [(200, Tone.GOOD), (199, Tone.GOOD), (163, Tone.NEUTRAL)])
def test_a_wide_gap_is_not_shown_as_good(bound: int, tone: Tone) -> None:
    problem = Problem(("size",), (InstanceGroup("a", ((6,),), 200),), (NodeType("node", (10,)),))
    packing = packing_of(problem, [(0, ((0, 1),))] * 200)
    first = placement_plan(PlacementResult(problem, packing, bound)).parts[0]
    assert isinstance(first, Statement)
    assert first.tone == tone


def test_the_answer_has_no_figure_twice_and_says_that_nodes_are_assumed() -> None:
    """Where nodes are counted, the objective is their number; the first chart says what runs out."""
    problem = Problem(("cpu_milli",), (InstanceGroup("a", ((6,),), 2),), (NodeType("node", (10,)),))
    packing = packing_of(problem, [(0, ((0, 1),))] * 2)
    result = PlacementResult(problem, packing, 2)
    parts = placement_plan(result, are_nodes_assumed=True).parts
    (cards,) = [part for part in parts if isinstance(part, Cards)]
    assert [card.label for card in cards.cards] == ["Nodes", "Lower bound", "Gap", "Fullest on node"]
    first = next(part for part in parts if isinstance(part, FigurePart))
    assert first.data.rows() == [("node", "cpu_milli", 0.6)]
    (assumed,) = [part for part in parts if isinstance(part, Findings)]
    assert "assumed" in assumed.remarks[0].text
    assert not any(isinstance(part, Findings) for part in placement_plan(result).parts)
