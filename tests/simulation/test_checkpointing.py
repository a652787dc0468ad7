"""Checkpoint intervals beside published values, and the engine beside the exact expected time."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from gputwin.core.errors import UserError
from gputwin.simulation.checkpointing import (
    CheckpointCosts,
    daly,
    effective_training_ratio,
    exact,
    expected_seconds,
    interval,
    young,
)
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.interruptions import Checkpoints, Faults, Maintenance
from gputwin.simulation.machines import cluster_models
from gputwin.simulation.rules import Changes
from gputwin.simulation.run import run
from gputwin.simulation.simulate import simulate
from gputwin.simulation.workload import workload_of
from gputwin.traces.dataset import Trace, TraceMeta


def trace_of(jobs, seconds):
    """Return jobs that each take a node of one GPU."""
    tasks = pl.DataFrame(
        {
            "job_id": [str(j) for j in range(jobs)],
            "role": ["worker"] * jobs,
            "submit_time": [0.0] * jobs,
            "duration_seconds": [float(seconds)] * jobs,
            "instances": [1] * jobs,
            "gpu_count": [1] * jobs,
            "gpu_milli": [1000] * jobs,
        }
    )
    return Trace.from_frames({"tasks": tasks}, TraceMeta("checkpoints"))


def ends(jobs, seconds, checkpoints, faults, seed=0):
    cluster = Cluster("nodes", (NodeGroup("node", count=jobs, gpus=1),))
    workload = workload_of(trace_of(jobs, seconds), cluster_models(cluster))
    done = run(workload, cluster, seed=seed, changes=Changes(checkpoints=checkpoints, faults=faults))
    return done.world.queue.jobs["end"]


def test_all_published_intervals(reference):
    """Young, Daly and the exact optimum of 23 settings, in minutes, to the last printed digit; Daly's own figures too."""
    table = pl.read_csv(reference / "oracles/checkpointing/young_daly_values.csv")
    assert table.height == 23
    for row in table.iter_rows(named=True):
        costs = CheckpointCosts(row["checkpoint_cost_min"], row["restart_min"], row["mtbf_min"])
        save, mtbf = costs.save_seconds, costs.mtbf_seconds
        assert young(save, mtbf) == pytest.approx(row["young_min"], abs=6e-4)
        assert daly(save, mtbf) == pytest.approx(row["daly_higher_order_min"], abs=6e-4)
        assert exact(save, mtbf) == pytest.approx(row["exact_exponential_min"], abs=6e-4)
        stretch = 1.0 / effective_training_ratio(exact(save, mtbf), costs)
        assert stretch == pytest.approx(row["expected_wall_over_work_at_exact"], abs=6e-5)
        if row["published_daly_min"] is not None:
            assert daly(save, mtbf) == pytest.approx(row["published_daly_min"], abs=0.5)


def test_the_exact_interval_is_the_best():
    costs = CheckpointCosts(300.0, 600.0, 3600.0)
    best = 1.0 / effective_training_ratio(interval("exact", costs), costs)
    for other in np.linspace(200.0, 4000.0, 40):
        assert 1.0 / effective_training_ratio(other, costs) >= best
    with pytest.raises(UserError, match="unknown rule of checkpoint intervals 'dally'; known: young, daly, exact"):
        interval("dally", costs)


def test_expected_time_by_hand():
    """Without failures to speak of, work and its saves but the last: 3 intervals of 100 s, 2 saves of 10 s."""
    assert expected_seconds(300.0, 100.0, CheckpointCosts(10.0, 50.0, 1e12)) == pytest.approx(320.0, rel=1e-6)
    assert expected_seconds(250.0, 100.0, CheckpointCosts(10.0, 50.0, 1e12)) == pytest.approx(270.0, rel=1e-6)


@pytest.mark.parametrize("between", [300.0, 600.0, 1200.0, 2400.0, 4800.0])
def test_the_engine_takes_the_expected_time_at_every_interval(between):
    """A thousand jobs of 8 h, a failure every 2 h on average, 2 minutes to save and 5 to restart."""
    costs = CheckpointCosts(120.0, 300.0, 7200.0)
    work = 28_800.0
    faults = Faults(costs.mtbf_seconds, repair_seconds=1e-6, repair="fixed")
    found = ends(1000, work, Checkpoints(between, costs.save_seconds, costs.restart_seconds), faults)
    assert found.mean() == pytest.approx(expected_seconds(work, between, costs), rel=0.02)


def test_six_failure_cases_of_opendc(reference):
    """Makespans of one job whose node fails after given uptimes for given times, with and without checkpoints.

    Two cases have a load profile (CPU at half for a while): it changes energy, not time.
    """
    cases = json.loads((reference / "oracles/checkpointing/opendc_failure_checkpoint.json").read_text())["cases"]
    assert len(cases) == 6
    for case in cases:
        windows, now = [], 0.0
        for uptime, downtime in case["failures"]:
            windows.append(Maintenance(0, float("inf"), now + uptime, now + uptime + downtime))
            now += uptime + downtime
        checkpoints = Checkpoints(
            case.get("checkpoint_interval_s", float("inf")), float(case.get("checkpoint_cost_s", 0.0))
        )
        found = ends(1, case["work_s"], checkpoints, Faults(maintenance=tuple(windows)))
        assert found.tolist() == [case["expected_makespan_s"]], case["id"]


@pytest.mark.parametrize(("law", "more"), [("weibull", {"repair_shape": 0.7}), ("lognormal", {"repair_sigma": 0.8})])
def test_repairs_have_their_mean(law, more):
    """A job that cannot move, restarts for free and loses nothing takes its work and the repairs of its node."""
    jobs, work = 60, 720_000.0
    tasks = trace_of(jobs, work).tasks.with_columns(pl.format("model-{}", "job_id").alias("gpu_models_allowed"))
    groups = tuple(NodeGroup(f"g{j}", count=1, gpus=1, gpu_model=f"model-{j}") for j in range(jobs))
    faults = {"mtbf_seconds": 7200.0, "repair_seconds": 3600.0, "repair": law, **more}
    result = simulate(
        Trace.from_frames({"tasks": tasks}, TraceMeta("repairs")),
        Cluster("own nodes", groups),
        backfill="greedy",
        checkpoints={"interval_seconds": 0.0},
        faults=faults,
    )
    assert result.jobs["end_time"].mean() == pytest.approx(work * (1 + 3600 / 7200), rel=0.02)


def test_a_wrong_law_of_repair_is_refused():
    with pytest.raises(UserError, match="unknown law of repair 'gamma'; known: exponential, weibull"):
        Faults(repair="gamma")
    with pytest.raises(UserError, match="repair_shape is 0; give more than 0"):
        Faults(repair_shape=0.0)
