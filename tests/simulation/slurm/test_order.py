"""Slurm's multifactor priority as an order: schedules worked out by hand, a slurm.conf, and the breakdown of a priority."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from gputwin.cli.main import app
from gputwin.core.errors import UserError
from gputwin.simulation.explain import explain
from gputwin.simulation.machines import cluster_models
from gputwin.simulation.result import result_of
from gputwin.simulation.rules import Changes, Scheduler, check_rules
from gputwin.simulation.run import run
from gputwin.simulation.scenario import scenario_of
from gputwin.simulation.slurm.config import read_priority_settings
from gputwin.simulation.slurm.explain import priority_parts
from gputwin.simulation.slurm.order import NAME, PARAMETERS, not_used, parameters_of, settings_of
from gputwin.simulation.tenants import Fairness, Terms
from gputwin.simulation.workload import workload_of
from gputwin.traces.locate import open_trace
from tests.oracles.cases import Case, cluster_of, outcomes_of
from tests.oracles.reference import Job, Node
from tests.simulation.by_hand import gpus, job, starts
from tests.simulation.test_fairness_by_hand import of

NOTHING = dict.fromkeys(("age", "fairshare", "job_size", "qos"), 0.0)
CONF = """
PriorityType=priority/multifactor
PriorityWeightAge=2000   # at most
PriorityWeightFairshare=5000
PriorityWeightPartition=10
PriorityWeightTRES=cpu=0,GRES/gpu=300
PriorityMaxAge=1-0
PriorityDecayHalfLife=2-0
PriorityCalcPeriod=10
PriorityFavorSmall=YES
"""


def scheduled(jobs: list[Job], fairness: Fairness | None = None, nodes: int = 1, **parameters: float) -> list[float]:
    case = Case((Node(nodes),), tuple(jobs))
    workload, cluster, typical = case.engine_input
    rules = Scheduler(NAME, "strict", "first-fit", NOTHING | parameters, fairness=fairness)
    return starts(outcomes_of(run(workload, cluster, rules, typical=typical), case.asks))


def test_who_has_used_less_goes_first_once_that_is_worked_out() -> None:
    """One GPU. At 10 user 0 has used it for 10 s: of two users it has rank 1, 0.5 × 1000, user 1 1000.

    With a period of 20 s nobody counts as having used anything at 10; at 20 user 0 does.
    """
    jobs = [of(t, job(s, 10, gpus(1))) for t, s in ((0, 0), (0, 1), (0, 2), (1, 3))]
    assert scheduled(jobs, fairshare=1000, period=10, half_life=0) == [0, 20, 30, 10]
    assert scheduled(jobs, fairshare=1000, period=20, half_life=0) == [0, 10, 30, 20]
    assert scheduled(jobs, period=10) == [0, 10, 20, 30]


def test_age_is_capped_and_ties_go_to_the_earlier_job() -> None:
    """At 100: job 1 has its 100 points of age since 51. Job 2 has 60 of QOS and (100 − submit)/50 of the 100."""
    for submit, expected in ((79, [0, 101, 100]), (80, [0, 100, 101])):
        jobs = [job(0, 100, gpus(1)), job(1, 1, gpus(1)), replace(job(submit, 1, gpus(1)), priority=1.0)]
        assert scheduled(jobs, age=100, max_age=50, qos=60, period=1) == expected


def test_larger_jobs_go_first_unless_small_ones_are_favoured() -> None:
    jobs = [job(0, 10, gpus(4)), job(1, 10, gpus(1)), job(2, 10, gpus(4))]
    assert scheduled(jobs, nodes=4, job_size=1000, period=1) == [0, 20, 10]
    assert scheduled(jobs, nodes=4, job_size=1000, favor_small=1, period=1) == [0, 10, 20]


def test_a_group_shares_what_its_users_have_used() -> None:
    """User 0 used the GPU; user 1 is of its group, user 2 of none: 2 goes first, though 1 has used as little."""
    jobs = [of(t, job(s, 10, gpus(1))) for t, s in ((0, 0), (1, 1), (2, 2))]
    groups = Fairness("", {}, {"tenant-0": Terms(group="g"), "tenant-1": Terms(group="g")})
    for fair_tree in (0, 1):
        given = {"fairshare": 1000, "period": 10, "fair_tree": fair_tree}
        assert scheduled(jobs, groups, **given) == [0, 20, 10]
        assert scheduled(jobs, **given) == [0, 10, 20]


def test_a_slurm_conf_gives_the_parameters(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(CONF)
    settings = read_priority_settings(tmp_path / "slurm.conf")
    found = parameters_of(settings)
    assert found.keys() == PARAMETERS.keys()
    given = {"age": 2000.0, "fairshare": 5000.0, "job_size": 0.0, "qos": 0.0, "tres_gpu": 300.0, "tres_cpu": 0.0}
    times = {"max_age": 86_400.0, "half_life": 172_800.0, "period": 600.0, "favor_small": 1.0, "fair_tree": 1.0}
    assert found | given | times == found
    assert replace(settings, partition=0.0, tres={"gres/gpu": 300.0}) == settings_of(found)
    assert not_used(settings) == ["PriorityWeightPartition"]


@pytest.mark.parametrize(
    ("scheduler", "said"),
    [
        (Scheduler(NAME, "conservative"), "does not go with backfill 'conservative'"),
        (Scheduler(NAME, fairness=Fairness("fair-share")), "periods of its own"),
        (Scheduler(NAME, order_parameters={"period": 0.0}), "give 1 or more"),
    ],
)
def test_what_does_not_go_together_is_said_in_one_line(scheduler: Scheduler, said: str) -> None:
    with pytest.raises(UserError, match=r"^[^\n]+$") as error:
        check_rules(scheduler, Changes())
    assert said in str(error.value)


@pytest.mark.parametrize("fair_tree", [1.0, 0.0])
def test_the_breakdown_adds_up_to_the_priority_the_engine_went_by(fair_tree: float) -> None:
    cluster = cluster_of((Node(8, cpu=64_000),) * 2)
    trace = open_trace("synthetic:philly?jobs=250&seed=3")
    parameters = {"fair_tree": fair_tree, "tres_gpu": 500.0, "age": 3000.0}
    done = run(workload_of(trace, cluster_models(cluster)), cluster, Scheduler(NAME, "greedy", "first-fit", parameters))
    result, waited = result_of(done), 0
    for row, record in zip(result.jobs.to_dicts(), done.world.queue.jobs, strict=True):
        if row["wait_seconds"]:
            waited += 1
            parts = priority_parts(result, row, row["start_time"])
            assert parts is not None
            assert parts.priority == -record["key"]
            assert int(sum(parts.parts.values())) == parts.priority
    assert waited > 50


def test_from_the_command_line(tmp_path: Path) -> None:
    conf, out = tmp_path / "slurm.conf", tmp_path / "run"
    conf.write_text(f"{CONF}\nPriorityUsageResetPeriod=MONTHLY\n")
    trace = "synthetic:philly?jobs=200&seed=3"
    options = ["--cluster", "homogeneous:2x8", "--order", NAME, "--slurm-conf", str(conf), "-o", str(out), "--json"]
    done = CliRunner().invoke(app, ["simulate", trace, *options])
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["manifest"]["scheduler"]["order_parameters"]["fairshare"] == 5000.0
    assert "PriorityWeightPartition has no effect" in done.stderr
    assert "PriorityUsageResetPeriod is not simulated" in done.stderr
    assert 0 <= data["tenant_shares"]["share_error"]["mean"] <= data["tenant_shares"]["share_error"]["max"] <= 1
    told = CliRunner().invoke(app, ["explain", str(out), "longest"])
    assert "Its priority when it started was" in told.stdout
    again = scenario_of(data["manifest"]["scenario"])
    assert again.order.parameters["age"] == 2000.0
    refused = CliRunner().invoke(app, ["simulate", trace, "--order", "sjf", "--slurm-conf", str(conf)])
    assert isinstance(refused.exception, UserError)
    assert "not of sjf" in str(refused.exception)


def test_runs_with_another_order_have_no_breakdown() -> None:
    cluster = cluster_of((Node(1),))
    trace = open_trace("synthetic:philly?jobs=20&seed=3")
    result = result_of(run(workload_of(trace, cluster_models(cluster)), cluster))
    longest = result.jobs.sort(pl.col("wait_seconds").fill_null(-1.0), descending=True)["job_id"][0]
    assert explain(result, longest).priority_at_start is None
