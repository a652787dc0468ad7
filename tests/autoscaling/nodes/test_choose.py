"""Pools chosen on the first part of a trace: the cheapest within the target, judged without the rest."""

from __future__ import annotations

import pytest

from gputwin.autoscaling.nodes.choose import WaitTarget, choose_pools, parse_wait_target
from gputwin.autoscaling.nodes.study import PoolOptions
from gputwin.core.errors import UserError
from tests.autoscaling.nodes.made import pools
from tests.oracles.cases import trace_of_jobs
from tests.simulation.by_hand import gpus, job

ONE = gpus(1)
EARLY = tuple(job(300 * k, 60, ONE) for k in range(20))
LATE = tuple(job(12_000 + 300 * k, 60, ONE) for k in range(20))


def chosen(late=LATE, seconds: float = 1e6):
    return choose_pools(
        pools(),
        trace_of_jobs((*EARLY, *late)),
        PoolOptions(),
        WaitTarget(95, seconds),
        rules=("cluster-autoscaler",),
        shares=(0.0, 0.5),
    )


def test_the_cheapest_within_the_target_is_chosen_and_shown_on_the_rest() -> None:
    choice = chosen()
    assert len(choice.tried) == 3 * 2
    assert choice.chosen.cost == min(t.cost for t in choice.tried)
    # Spot nodes cost a third, and nothing takes them away here.
    assert choice.chosen.spot_share == 0.5
    assert choice.chosen.settings["unneeded_for_s"] == 120.0
    assert [t.rule for t in choice.shown] == ["fixed", "cluster-autoscaler", "cluster-autoscaler"]
    assert choice.shown[1].cost < choice.shown[2].cost < choice.shown[0].cost
    assert choice.jobs == (20, 20)
    assert "the target held" in choice.verdict()


def test_a_strict_target_keeps_nodes_longer() -> None:
    # A job every 300 s: nodes that stay 600 s are there for the next one; those that leave after 120 s are not.
    choice = chosen(seconds=20.0)
    assert choice.chosen.is_within
    assert choice.chosen.settings["unneeded_for_s"] >= 600.0
    short = [t for t in choice.tried if t.settings["unneeded_for_s"] == 120.0]
    assert not any(t.is_within for t in short)
    assert min(t.cost for t in short) < choice.chosen.cost


def test_the_rest_does_not_change_the_choice() -> None:
    other = chosen(late=tuple(job(12_000 + 150 * k, 140, ONE) for k in range(40)))
    assert other.tried == chosen().tried
    assert other.shown != chosen().shown


def test_where_nothing_is_within_the_target_the_shortest_wait_is_taken_and_said() -> None:
    choice = chosen(seconds=0.0)
    assert not choice.chosen.is_within
    assert choice.chosen.wait_seconds == min(t.wait_seconds for t in choice.tried)
    assert choice.verdict().startswith("No setting reached the target")


@pytest.mark.parametrize("text", ["p95_wait", "p90_wait=3", "wait=10m"])
def test_a_target_that_is_none_is_one_line(text: str) -> None:
    with pytest.raises(UserError, match="give p95_wait=10m"):
        parse_wait_target(text)


def test_targets_have_units() -> None:
    assert parse_wait_target("p95_wait=10m") == WaitTarget(95, 600.0)
    assert parse_wait_target("p99_wait=90") == WaitTarget(99, 90.0)
