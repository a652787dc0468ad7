"""A plan for a trace whose tasks ran when it began: they hold their place, load and waits are those of the other verbs."""

from __future__ import annotations

import polars as pl
import pytest

import gputwin
from gputwin.optimization.capacity.evaluate import evaluate, setting_of
from gputwin.optimization.capacity.plan import _load
from gputwin.optimization.capacity.target import parse_target
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.scenario import Scenario
from gputwin.traces.dataset import Trace, TraceMeta

PLAIN = Scenario(trace="by hand")
STANDING = [{"job_id": f"old-{i}", "was_running": True, "is_running": True} for i in range(4)]
ARRIVING = [
    {"job_id": f"new-{i:03d}", "submit_time": 100.0 * i, "start_time": 100.0 * i, "duration_seconds": 150.0 + i % 7}
    for i in range(200)
]


@pytest.fixture(scope="module")
def trace() -> Trace:
    rows = [{"gpu_count": 1, "gpu_milli": 1000, **row} for row in (*STANDING, *ARRIVING)]
    return Trace.from_frames({"tasks": pl.DataFrame(rows, infer_schema_length=None)}, TraceMeta("by hand"))


@pytest.mark.parametrize("gpus", [5, 6, 8])
@pytest.mark.parametrize("target", ["mean_wait=600", "mean_jct=600"])
def test_the_figures_are_those_of_check_and_simulate(trace: Trace, gpus: int, target: str) -> None:
    cluster = Cluster("pool", (NodeGroup("gpu", gpus, 1),))
    setting = setting_of(trace, cluster, PLAIN, parse_target(target))
    simulated = gputwin.simulate(trace, cluster)
    point = evaluate(setting, (gpus,))
    name = "wait_seconds" if "wait" in target else "jct_seconds"
    assert point.value == pytest.approx(simulated.summary[name]["mean"])
    assert point.utilisation == pytest.approx(simulated.summary["allocation"]["gpu"])
    assert _load(setting) / gpus == pytest.approx(gputwin.check(trace, cluster).loads[0].mean)


def test_twice_the_demand_is_twice_the_load_of_what_arrives(trace: Trace) -> None:
    cluster = Cluster("pool", (NodeGroup("gpu", 8, 1),))
    plain, doubled = (
        _load(setting_of(trace, cluster, PLAIN.with_(load_scale=growth), parse_target("mean_wait=600")))
        for growth in (1, 2)
    )
    assert doubled - 4 == pytest.approx(2 * (plain - 4), rel=0.02)
