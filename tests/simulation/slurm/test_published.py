"""The worked examples of Slurm's documentation, and the rules they follow from."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gputwin.simulation.slurm.priority import Factors, PrioritySettings, billing, priority, rated_factor
from gputwin.simulation.slurm.shares import (
    Account,
    classic_factors,
    effective_usage,
    fair_tree_factors,
    normalised_shares,
)
from gputwin.simulation.slurm.usage import decayed_mean
from tests.conftest import REFERENCE


@pytest.fixture(scope="module")
def examples() -> dict[str, Any]:
    path = REFERENCE / "oracles" / "fairness" / "documented_examples.json"
    if not path.is_file():
        pytest.skip(f"no reference tables at {path}")
    return dict(json.loads(path.read_text()))


def accounts(tree: dict[str, Any]) -> tuple[Account, ...]:
    return tuple(
        Account(
            name,
            spec["shares"],
            accounts(spec.get("children", {}))
            + tuple(Account(u, s, (), True) for u, s in spec.get("users", {}).items()),
        )
        for name, spec in tree.items()
    )


def test_classic_fair_share_of_the_documented_tree(examples: dict[str, Any]) -> None:
    case = examples["slurm_classic_fairshare"]
    tree, usage = accounts(case["tree"]), case["actual_usage"]
    assert normalised_shares(tree) == pytest.approx(case["expected_normalized_share"])
    assert effective_usage(tree, usage) == pytest.approx(case["expected_effective_usage"], abs=5e-5)
    # The documentation rounds user5's effective usage to four digits before it takes the power.
    assert classic_factors(tree, usage) == pytest.approx(case["expected_fairshare"], abs=1e-4)


def test_fair_tree_order_of_the_documented_tree(examples: dict[str, Any]) -> None:
    case = examples["slurm_fair_tree"]["example"]
    factors = fair_tree_factors(accounts(case["tree"]), case["usage"])
    assert factors == pytest.approx(case["expected_factor"])
    assert sorted(factors, key=lambda user: -factors[user]) == case["expected_order"]


def test_multifactor_examples(examples: dict[str, Any]) -> None:
    for case in examples["slurm_multifactor"]:
        raw = "NO_NORMAL" in case["id"]
        if "partition_priority" in case:
            settings = PrioritySettings(
                partition=case["weights"]["partition"], not_normal=frozenset({"partition"} if raw else ())
            )
            highest = max(case["partition_priority"].values())
            found = {
                name: priority(Factors(partition=rated_factor("partition", rating, highest, settings)), settings)
                for name, rating in case["partition_priority"].items()
            }
            assert found == case["expected"], case["id"]
        else:
            settings = PrioritySettings(max_tres="max" in case["id"])
            jobs = [{"cpu": cpus, "mem_gib": gib} for cpus, gib in case["jobs"]]
            assert [billing(job, case["billing_weights"], settings) for job in jobs] == case["expected"], case["id"]


def test_decayed_usage_converges_as_published(examples: dict[str, Any]) -> None:
    case = examples["half_life_usage"]
    mean, elapsed = 0.0, 0.0
    for half_lives, expected in sorted((int(k), v) for k, v in case["expected_after_half_lives"].items()):
        while elapsed < half_lives * case["half_life_seconds"]:
            mean = decayed_mean(mean, case["usage_cpu"], case["sample_interval_seconds"], case["half_life_seconds"])
            elapsed += case["sample_interval_seconds"]
        assert mean == pytest.approx(expected, abs=case["tolerance"])


def _users(**shares: float) -> tuple[Account, ...]:
    return tuple(Account(name, share, (), True) for name, share in shares.items())


def test_sibling_users_with_equal_values_share_a_rank() -> None:
    factors = fair_tree_factors(_users(a=1, b=1, c=1), {"a": 0.2, "b": 0.2, "c": 0.6})
    assert factors == {"a": 1.0, "b": 1.0, "c": 1 / 3}


def test_a_user_equal_to_an_account_has_the_rank_of_its_best_user() -> None:
    tree = (Account("team", 1, _users(x=1, y=1)), *_users(lone=1))
    factors = fair_tree_factors(tree, {"x": 0.1, "y": 0.4, "lone": 0.5})
    assert factors == {"lone": 1.0, "x": 1.0, "y": 1 / 3}


def test_equal_accounts_are_entered_as_one() -> None:
    tree = (Account("p", 1, _users(x=1, y=1)), Account("q", 1, _users(z=1, w=3)))
    # x and z used 10 % of their accounts, so x's 0.5/0.1 = 5 beats z's 0.25/0.1 = 2.5; w: 0.75/0.9; y: 0.5/0.9.
    factors = fair_tree_factors(tree, {"x": 0.05, "y": 0.45, "z": 0.05, "w": 0.45})
    assert factors == {"x": 1.0, "z": 0.75, "w": 0.5, "y": 0.25}


def test_all_users_of_the_better_account_come_before_those_of_the_other() -> None:
    tree = (Account("good", 1, _users(heavy=1, light=1)), Account("bad", 1, _users(idle=1, busy=1)))
    factors = fair_tree_factors(tree, {"heavy": 0.3, "light": 0.1, "idle": 0.0, "busy": 0.6})
    assert min(factors["heavy"], factors["light"]) > max(factors["idle"], factors["busy"])
