"""Parameters of policies reach the policy they belong to, and only sensible ones are taken."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from gputwin.cli.main import main
from gputwin.core.errors import UserError
from gputwin.simulation.machines import cluster_models
from gputwin.simulation.policy import (
    BACKFILLS,
    ORDERINGS,
    PLACEMENTS,
    PREEMPTIONS,
    ordering,
    placement,
    positions,
)
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.run import run
from tests.oracles.cases import cluster_of, workload_of_jobs
from tests.oracles.reference import Node
from tests.simulation.by_hand import gpus, job

SIX = {"a": 0.0, "b": 0.0, "c": 0.0, "d": 0.0, "e": 0.0, "f": 0.0}
AT = positions(SIX)


@pytest.fixture(scope="module")
def policies() -> Iterator[None]:
    @ordering("longest-by-six", "longest first where the sixth parameter says so", parameters=SIX)
    def key(jobs, j, now, knobs):  # type: ignore[no-untyped-def]
        return -jobs[j].predicted if knobs.order[AT.f] > 0 else jobs[j].submit

    @placement("node-of-six", "the node whose number is the sixth parameter", parameters=SIX)
    def score(machines, requests, r, n, knobs):  # type: ignore[no-untyped-def]
        return 1.0 if n == int(knobs.placement[AT.f]) else 0.0

    yield
    ORDERINGS.discard("longest-by-six")
    PLACEMENTS.discard("node-of-six")


def test_the_sixth_parameter_of_an_order_and_of_a_placement_reach_them(policies: None) -> None:
    """Three nodes; the first job has all of node 2; of those that wait the longest goes first: C at 10, B at 30."""
    cluster = cluster_of((Node(1),))
    jobs = (job(0, 10, gpus(1)), job(1, 5, gpus(1)), job(2, 20, gpus(1)))
    workload = workload_of_jobs(jobs, cluster_models(cluster))
    done = run(workload, cluster, Scheduler("longest-by-six", "strict", order_parameters={"f": 1.0}))
    assert done.world.queue.jobs["start"].tolist() == [0, 30, 10]
    wide = cluster_of((Node(1), Node(1), Node(1)))
    for wanted in (0, 1, 2):
        rules = Scheduler(
            "longest-by-six",
            "strict",
            "node-of-six",
            # What one policy is given must not reach the other.
            order_parameters={"b": 7.0, "f": 1.0},
            placement_parameters={"a": 5.0, "f": float(wanted)},
        )
        done = run(workload_of_jobs(jobs[:1], cluster_models(wide)), wide, rules)
        assert done.world.slots["node"].tolist() == [wanted]


@pytest.mark.parametrize(
    ("order", "parameters", "why"),
    [
        ("priority", {"aging": math.nan}, "finite"),
        ("priority", {"aging": math.inf}, "finite"),
        ("priority", {"aging": -0.1}, "0 or more"),
        ("priority", {"max_wait": math.nan}, "finite"),
        ("priority", {"max_wait": -1.0}, "0 or more"),
        ("fifo", {"aging": 1.0}, "no parameter"),
        ("las", {"queues": 2.5}, "a whole number, as in 3"),
    ],
)
def test_senseless_values_are_refused(order: str, parameters: dict[str, float], why: str) -> None:
    cluster = cluster_of((Node(1),))
    workload = workload_of_jobs((job(0, 10, gpus(1)),), cluster_models(cluster))
    with pytest.raises(UserError, match=why):
        run(workload, cluster, Scheduler(order, order_parameters=parameters))


def test_no_limit_of_the_wait_is_a_limit() -> None:
    cluster = cluster_of((Node(1),))
    workload = workload_of_jobs((job(0, 10, gpus(1)),), cluster_models(cluster))
    run(workload, cluster, Scheduler("priority", order_parameters={"max_wait": math.inf}))


@pytest.mark.parametrize("name", ["las", "round-robin", "srtf"])
def test_orders_that_need_preemption_bring_it_along(name: str) -> None:
    assert ORDERINGS.get(name).preemption in PREEMPTIONS.names()


def test_a_backfill_rule_that_takes_too_few_arguments_is_refused_in_one_line(tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "overtake.py"
    path.write_text(
        "from gputwin.simulation.policy import backfill\n"
        "@backfill('mine', 'whoever is mine overtakes')\n"
        "def schedule_pass(world, now):\n    pass\n"
    )
    arguments = ["simulate", "synthetic:philly?jobs=20", "--cluster", "homogeneous:4x8", "--backfill", "mine"]
    assert main([*arguments, "--policies", str(path), "--json"]) == 2
    assert "backfill 'mine' takes 2 arguments; it must take world, now, order" in capsys.readouterr().err
    BACKFILLS.discard("mine")


def test_a_backfill_rule_of_ones_own_is_refused_where_other_rules_have_passes_of_their_own(tmp_path, capsys) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "looking.py"
    example = Path(__file__).parents[2] / "examples" / "window.py"
    path.write_text(example.read_text(encoding="utf-8").replace('"window"', '"looking"'), encoding="utf-8")
    arguments = ["simulate", "synthetic:philly?jobs=20", "--cluster", "homogeneous:4x8", "--backfill", "looking"]
    for options in (["--fairness", "drf"], ["--order", "srtf"]):
        assert main([*arguments, *options, "--policies", str(path), "--json"]) == 2
        said = capsys.readouterr().err
        assert "does not go with backfill 'looking'" in said
        assert said.count("\n") == 1
    BACKFILLS.discard("looking")


@pytest.mark.parametrize(
    "options",
    [
        ["--order", "priority:aging=nan"],
        ["--order", "priority:aging=inf"],
        ["--order", "priority:aging=-1"],
        ["--resolution", "0s"],
        ["--resolution", "-5m"],
    ],
)
def test_the_command_refuses_in_one_line(options: list[str], capsys) -> None:  # type: ignore[no-untyped-def]
    arguments = ["simulate", "synthetic:philly?jobs=20", "--cluster", "homogeneous:4x8", "--json", *options]
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "give" in said.err or "write" in said.err
