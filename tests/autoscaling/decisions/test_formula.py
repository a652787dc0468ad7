"""KEDA's formulas: values of the forms its documentation shows, and messages for those that are wrong."""

from __future__ import annotations

import pytest

from gputwin.autoscaling.decisions.interface import Observation
from gputwin.autoscaling.decisions.keda.formula import compiled, names
from gputwin.autoscaling.decisions.registry import make_rule

VALUES = {"a": 2.0, "b": 0.5, "c": 3.0}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(a + b) / 2", 1.25),
        ("count([a, b, c], {# > 1}) > 1 ? 5 : 0", 5.0),
        ("a < 2 ? a + b >= 2 ? 5 : 10 : 0", 0.0),
        ("b < 2 ? a + b >= 2 ? 5 : 10 : 0", 5.0),
        ("max(a, b)", 2.0),
        ("max([a, b, c])", 3.0),
        ("sum(map([a, b, c], {# * 2}))", 11.0),
        ("sum([a, b, c], {# * 10})", 55.0),
        ("len(filter([a, b, c], {# > a}))", 1.0),
        ("any([a, b], {# < 1}) and all([a, c], {# > 1}) ? 7 : 1", 7.0),
        ("one([a, b], {# > 1}) && none([a, b], {# > 2})", 1.0),
        ("median([a, b, c]) + mean(a, b, c)", 2.0 + 5.5 / 3),
        ("-a ** 2 + 5", 1.0),
        ("a ** -1", 0.5),
        ("a == 2 || b / 0 > 1", 1.0),
    ],
)
def test_a_formula_has_the_value_of_expr_lang(text: str, value: float) -> None:
    assert compiled(text)(VALUES) == pytest.approx(value)
    assert set(names(text)) <= set(VALUES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("count([a, b])", "without a condition in braces"),
        ("count(a, b, {# > 1})", "without a list and one condition"),
        ("exec(a)", "it may call: abs, all, any"),
        ("[a, b", "lacks ','"),
        ("{# > 1}", "has '{' where a value belongs"),
        ("a b", "has a stray 'b'"),
    ],
)
def test_a_wrong_formula_is_refused_with_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("[", r"\[").replace("{", r"\{")):
        compiled(text)


def test_a_formula_that_gives_no_number_holds_and_says_so() -> None:
    rule = make_rule("keda", minimum=1, formula={"text": "filter([queue_length], {# > 1})", "target": 4})
    decision, _ = rule.decide(Observation(0.0, 3, queue_length=9.0), rule.start())
    assert (decision.replicas, decision.held) == (3, True)
    assert "gives no number" in decision.reasons[0]
