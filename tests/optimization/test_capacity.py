"""Capacity plans: what is planned, and what is said where there is none. Safety has a file of its own."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.optimization.capacity.bracket import offered_share
from gputwin.optimization.capacity.evaluate import evaluate, setting_of
from gputwin.optimization.capacity.plan import Plan, plan
from gputwin.optimization.capacity.scale import mix_of, with_counts
from gputwin.optimization.capacity.target import parse_target
from gputwin.queueing.erlang import servers_for_wait
from gputwin.report.sections.capacity import capacity
from gputwin.simulation.cluster import Cluster, NodeGroup, open_cluster
from gputwin.simulation.scenario import Scenario, scenario_of
from gputwin.simulation.simulate import simulate
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.locate import open_trace

GREEDY = Scenario(trace="planted", backfill="greedy")


def trace_of(submit: np.ndarray, run: np.ndarray, gpus: np.ndarray | int = 1, models: str | None = None) -> Trace:
    tasks = pl.DataFrame(
        {
            "job_id": [f"{i:06d}" for i in range(submit.size)],
            "submit_time": submit,
            "duration_seconds": run,
            "gpu_count": np.broadcast_to(gpus, submit.size),
            "gpu_models_allowed": [models] * submit.size,
        }
    )
    return Trace.from_frames({"tasks": tasks}, TraceMeta("planted"))


def queue(load: float, jobs: int = 20_000, mean: float = 100.0) -> Trace:
    rng = stream(0, "plan")
    return trace_of(np.cumsum(rng.exponential(mean / load, jobs)), rng.exponential(mean, jobs))


def said(result: Plan) -> str:
    data = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert data["verdict"] == result.verdict()
    return result.verdict()


@given(st.lists(st.integers(1, 900), min_size=1, max_size=7), st.integers(0, 3000))
def test_one_more_node_is_the_same_and_one_more(counts: list[int], more: int) -> None:
    cluster = Cluster("mix", tuple(NodeGroup(f"g{i}", n, 1) for i, n in enumerate(counts)))
    size = len(counts) + more
    here, there = mix_of(cluster, size), mix_of(cluster, size + 1)
    assert sum(here) == size
    assert sum(b - a for a, b in zip(here, there, strict=True)) == 1
    assert all(b >= a >= 1 for a, b in zip(here, there, strict=True))


def test_the_mix_of_the_cluster_itself_is_the_cluster() -> None:
    cluster = open_cluster("pai2020")
    assert mix_of(cluster, cluster.node_count) == tuple(g.count for g in cluster.groups)
    assert with_counts(cluster, mix_of(cluster, 500)).node_count == 500
    with pytest.raises(UserError, match="node types"):
        mix_of(cluster, 3)


@pytest.mark.parametrize(
    ("text", "name", "seconds"),
    [
        ("p95_wait=600", "p95_wait", 600.0),
        ("mean_wait=5m", "mean_wait", 300.0),
        ("p99.9_jct = 2h", "p99.9_jct", 7200.0),
    ],
)
def test_targets_are_read(text: str, name: str, seconds: float) -> None:
    target = parse_target(text)
    assert target.name == name
    assert target.seconds == seconds


@pytest.mark.parametrize("text", ["", "wait=5", "p95_wait", "p95_wait=-3", "p0_wait=5", "p95_queue=4", "p95_wait=soon"])
def test_what_is_no_target_is_said(text: str) -> None:
    with pytest.raises(UserError):
        parse_target(text)


def test_a_plan_for_a_plain_queue_is_what_erlang_says() -> None:
    result = plan(queue(40.0, jobs=60_000), open_cluster("homogeneous:60x1"), "p95_wait=30", workers=1)
    assert result.answer is not None
    assert result.record is not None
    assert result.luck is not None
    truth = servers_for_wait(40.0, 100.0, 30.0)
    assert abs(result.record.nodes - truth) <= 1
    assert truth <= result.answer.nodes <= truth + 3
    assert result.luck.low <= truth <= result.luck.high
    assert result.lasting_growth is not None
    assert 1.2 < result.lasting_growth < 1.5
    assert result.answer.low <= result.answer.value <= result.answer.high


def test_growth_needs_more_and_a_small_cluster_is_too_small() -> None:
    trace = queue(30.0, jobs=4_000)
    now = plan(trace, open_cluster("homogeneous:10x1"), "p95_wait=60", workers=1)
    later = plan(trace, open_cluster("homogeneous:10x1"), "p95_wait=60", growth=1.5, workers=1)
    assert now.answer is not None
    assert later.answer is not None
    assert 1.3 * now.answer.nodes < later.answer.nodes < 1.6 * now.answer.nodes
    assert "too few" in said(now)
    assert "at 1.5 times the demand" in said(later)


def test_jobs_no_node_can_hold_make_a_target_impossible() -> None:
    trace = trace_of(np.arange(200.0), np.full(200, 10.0), np.where(np.arange(200) % 10, 1, 16))
    result = plan(trace, open_cluster("homogeneous:4x8"), "p95_wait=600", workers=1)
    assert result.answer is None
    assert "20 of 200 jobs never run" in said(result)
    # One job in ten does not matter to the median.
    assert plan(trace, open_cluster("homogeneous:4x8"), "p50_wait=600", workers=1).answer is not None


def test_a_completion_shorter_than_the_jobs_is_impossible() -> None:
    result = plan(queue(5.0, jobs=500), open_cluster("homogeneous:6x1"), "p95_jct=10", workers=1)
    assert result.answer is None
    assert "No number of such nodes" in said(result)


def test_no_wait_at_all_can_be_had() -> None:
    result = plan(queue(5.0, jobs=500), open_cluster("homogeneous:6x1"), "p99_wait=0", workers=1)
    assert result.answer is not None
    assert result.answer.value == 0.0


def test_a_target_the_smallest_cluster_meets() -> None:
    result = plan(queue(0.001, jobs=50), open_cluster("homogeneous:6x1"), "p50_wait=1h", workers=1)
    assert result.answer is not None
    assert result.answer.nodes == 1
    assert "smallest cluster" in said(result)


def test_nodes_of_a_model_nobody_needs_go() -> None:
    rng = stream(0, "models")
    submit, run = np.cumsum(rng.exponential(10.0, 2_000)), rng.exponential(100.0, 2_000)
    trace = trace_of(submit, run, models="A")
    cluster = Cluster("two", (NodeGroup("a", 20, 1, "A"), NodeGroup("b", 20, 1, "B")))
    plain = plan(trace, cluster, "p95_wait=60", workers=1)
    by_model = plan(trace, cluster, "p95_wait=60", by_model=True, workers=1)
    assert plain.answer is not None
    assert by_model.answer is not None
    assert by_model.nodes_by_type["b"] == 1
    assert by_model.nodes_by_type["a"] <= plain.nodes_by_type["a"]
    assert by_model.answer.value <= 60


def test_what_else_could_be_done_and_what_it_costs() -> None:
    cluster = Cluster("priced", (NodeGroup("node", 40, 1, price_per_hour=2.5),))
    result = plan(queue(30.0, jobs=4_000), cluster, "mean_wait=20", what_if=True, workers=1)
    assert result.answer is not None
    assert result.cost_per_hour == pytest.approx(2.5 * result.answer.nodes)
    by_name = {what_if.name: what_if.value for what_if in result.what_ifs}
    assert by_name["predictive ordering"] < result.answer.value
    assert by_name["faster GPUs"] < result.answer.value
    assert "an hour" in said(result)


def test_theory_asks_for_what_arrivals_find() -> None:
    """Ten jobs of one GPU at once for an hour, every second hour: all ten must run beside each other."""
    submit = np.repeat(np.arange(50) * 7200.0, 10)
    setting = setting_of(
        trace_of(submit, np.full(500, 3600.0)), open_cluster("homogeneous:20x1"), GREEDY, parse_target("p95_wait=60")
    )
    assert offered_share(setting.workload, setting.cluster, setting.target) == pytest.approx(0.5)
    patient = replace(setting, target=parse_target("p95_wait=2h"))
    assert offered_share(patient.workload, patient.cluster, patient.target) < 0.5


def test_mistakes_are_said() -> None:
    with pytest.raises(UserError, match="growth"):
        plan(queue(1.0, jobs=10), open_cluster("homogeneous:6x1"), "p95_wait=1", growth=0.0)
    with pytest.raises(UserError, match="nothing to simulate"):
        plan(trace_of(np.zeros(0), np.zeros(0)), open_cluster("homogeneous:6x1"), "p95_wait=1", workers=1)


def test_the_plans_scenario_gives_its_figure_again_whatever_the_number_of_workers() -> None:
    name = "synthetic:philly?jobs=600&seed=4"
    trace, cluster = open_trace(name), open_cluster("homogeneous:30x8")
    rules = Scenario(trace=name, order="sjf", backfill="greedy", checkpoints={"restart_seconds": 60})
    here = plan(trace, cluster, "mean_wait=30m", scenario=rules, growth=1.5, what_if=True, workers=1)
    there = plan(trace, cluster, "mean_wait=30m", scenario=rules, growth=1.5, what_if=True, workers=2)
    assert here.to_json() == there.to_json()
    assert here.answer is not None
    described = json.loads(json.dumps(here.to_json()["scenario"]))
    again = simulate(scenario_of(described))
    assert again.summary["wait_seconds"]["mean"] == here.answer.value
    assert again.manifest["nodes"] == here.answer.nodes
    assert again.scenario.load_scale == 1.5


def test_a_plan_counts_all_waits_of_jobs_that_are_stopped() -> None:
    name = "synthetic:philly?jobs=300&seed=4"
    scenario = Scenario(trace=name, order="srtf", backfill="greedy", faults={"mtbf_seconds": 3e5})
    setting = setting_of(open_trace(name), open_cluster("homogeneous:4x8"), scenario, parse_target("mean_wait=600"))
    found, told = evaluate(setting, (4,)), simulate(scenario.with_(cluster="homogeneous:4x8")).summary
    assert told["stops"]["preempted"] > 0
    assert found.value == pytest.approx(told["wait_seconds"]["mean"], rel=1e-12)
    assert found.utilisation == pytest.approx(told["allocation"]["gpu"], rel=1e-9)


def test_sizes_without_any_wait_are_drawn_where_nearly_all_are() -> None:
    """A logarithmic axis has no place for a wait of zero, so the chart would be empty."""
    few = plan(queue(0.001, jobs=50), open_cluster("homogeneous:6x1"), "p50_wait=1h", workers=1)
    figure = capacity(few).figures[0]
    assert figure.figure.layout.yaxis.type != "log"
    assert sorted(figure.figure.data[0].x) == sorted(p.nodes for p in few.points if np.isfinite(p.value))
    assert 0.0 in figure.figure.data[0].y
