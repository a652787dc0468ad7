"""The table of models: its simulations by hand, its judgement, and the page in the docs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gputwin.queueing.network import Station
from gputwin.studies.validation import other_queues, single_server
from gputwin.studies.validation.cases import all_cases
from gputwin.studies.validation.models import validate_models
from gputwin.studies.validation.replicate import Case, Sample, settle

PAGE = Path(__file__).resolve().parents[2] / "docs" / "queueing-models.md"
SUBMIT, WORK = np.array([0.0, 1.0, 2.0]), np.array([4.0, 2.0, 1.0])


def test_least_left_first_by_hand() -> None:
    """The job of 4 s gives way at 1 s to one of 2 s, which (1 s left at 2 s) is even with the third and came first."""
    ends = single_server.preempt(SUBMIT, WORK, lambda j, left: left)
    assert ends.tolist() == [7.0, 3.0, 4.0]


def test_more_urgent_first_by_hand() -> None:
    ends = single_server.preempt(SUBMIT, WORK, lambda j, left: -j)
    assert ends.tolist() == [7.0, 4.0, 3.0]
    assert single_server.preempt_on_servers(SUBMIT, WORK, [2, 1, 0], 1).tolist() == [7.0, 4.0, 3.0]
    assert single_server.preempt_on_servers(SUBMIT, WORK, [2, 1, 0], 2).tolist() == [5.0, 3.0, 3.0]


def test_sharing_by_hand() -> None:
    """Alone until 1 s, halves until 2 s, thirds from then: all have 2.5, 1.5 and 1 s left at 2 s."""
    assert single_server.share(SUBMIT, WORK) == pytest.approx([7.0, 6.0, 5.0])
    slowed = single_server.share(np.zeros(2), np.ones(2), lambda n: 1.0 if n == 1 else 0.5)
    assert slowed == pytest.approx([4.0, 4.0])


def test_least_attained_by_hand() -> None:
    """At 2 s the third has run for none; at 3 s it ends; the others, at 1 s each, share: the second ends at 5 s."""
    assert single_server.least_attained(SUBMIT, WORK) == pytest.approx([7.0, 5.0, 3.0])


def test_patience_and_room_by_hand() -> None:
    wait, gone = other_queues.with_patience(SUBMIT, WORK, np.array([9.0, 1.0, 9.0]), 1)
    assert wait.tolist() == [0.0, 1.0, 2.0]
    assert gone.tolist() == [False, True, False]
    wait, lost = other_queues.with_room(SUBMIT, WORK, 1, 2)
    assert lost.tolist() == [False, False, True]
    assert wait.tolist() == [0.0, 3.0, 0.0]


def test_parts_that_join_by_hand() -> None:
    service = np.array([[4.0, 1.0], [2.0, 5.0], [1.0, 1.0]])
    assert other_queues.fork_join_responses(SUBMIT, service) == pytest.approx([4.0, 5.0, 5.0])


def test_one_user_goes_round_at_the_sum_of_the_demands() -> None:
    rng = np.random.default_rng(0)
    rate = other_queues.closed_rounds(1, [Station("think", 3.0, None), Station("gpu", 1.0)], rng, 20_000)
    assert rate == pytest.approx(0.25, rel=0.03)


def test_wrong_theory_is_found_out_and_approximations_have_their_margin() -> None:
    def simulate(rng: np.random.Generator) -> Sample:
        return Sample({"mean": float(rng.exponential(1.0, 10_000).mean())})

    right, wrong, near = (
        settle(Case("exponential", "", {"mean": mean}, simulate, tolerance=tolerance))[0]
        for mean, tolerance in ((1.0, None), (1.1, None), (1.1, 0.1))
    )
    assert right.agrees
    assert right.half_width < 0.03
    assert not wrong.agrees
    assert near.agrees


def test_a_control_variate_narrows_the_interval() -> None:
    def simulate(rng: np.random.Generator, use: float) -> Sample:
        noise = float(rng.normal())
        return Sample({"x": 5 + noise + 0.01 * float(rng.normal())}, use * noise)

    plain, controlled = (
        settle(Case("noise", "", {"x": 5.0}, lambda rng, use=use: simulate(rng, use)))[0] for use in (0.0, 1.0)
    )
    assert controlled.agrees
    assert controlled.half_width < plain.half_width / 20


@pytest.mark.parametrize("model", ["Erlang A", "M/M/4 preemptive", "Kaufman", "gangs in saturation"])
def test_models_agree_with_their_simulation(model: str) -> None:
    found = validate_models([model])
    assert found.rows
    assert not found.disagreements, found.verdict()


def test_the_page_has_every_model_as_it_is_now_and_all_agree() -> None:
    lines = [line.split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = {(row[0].removeprefix("| "), row[1], row[2]): row for row in lines[1:]}
    expected = {(c.model, c.setting, f): value for c in all_cases() for f, value in c.theory.items()}
    assert set(cells) == set(expected), "run: gputwin reproduce queueing-models -o docs/queueing-models.md"
    for key, value in expected.items():
        assert float(cells[key][3]) == pytest.approx(value, rel=1e-3), key
        assert "agrees" in cells[key][-1], key
