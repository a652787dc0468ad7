from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.load import check_load, tasks_that_never_fit
from gputwin.simulation.offered import Load, demand_steps, integral_of_demand
from gputwin.traces.dataset import Trace, TraceMeta

NODE = NodeGroup("node", 1, gpus=2, gpu_model="T4", cpu_milli=10_000, memory_mib=1_000, disk_mib=500, rdma_percent=100)


def trace(*tasks: dict[str, Any]) -> Trace:
    rows = [{"job_id": f"job-{i}", "gpu_count": 1, "gpu_milli": 1000, **task} for i, task in enumerate(tasks)]
    return Trace.from_frames({"tasks": pl.DataFrame(rows, infer_schema_length=None)}, TraceMeta("by hand"))


def load(tasks: list[dict[str, Any]], cluster: Cluster, resource: str = "gpu_milli", models: str = "any") -> Load:
    loads = {(x.resource, x.models): x for x in check_load(trace(*tasks), cluster).loads}
    return loads[resource, models]


ONE_NODE = Cluster("one", (NODE,))

# On two GPUs: one is asked for in [0, 4), two in [4, 8), three in [8, 10); arrivals end at 8, when the window does.
#   a |==========|          0 to 10
#   b     |==========|      4 to 14
#   c         |==|          8 to 10
THREE = [
    {"submit_time": 0.0, "start_time": 0.0, "end_time": 10.0},
    {"submit_time": 4.0, "start_time": 6.0, "end_time": 16.0},
    {"submit_time": 8.0, "start_time": 8.0, "end_time": 10.0},
]


def test_two_tasks_on_one_node_offer_what_they_would_occupy_at_once() -> None:
    found = load(THREE[:2], ONE_NODE)
    # Until the second one is submitted only the first asks: one GPU of two.
    assert found.mean == pytest.approx(0.5)
    assert found.capacity == 2_000
    assert found.peak == 1.0
    assert found.time_above_capacity == 0.0


def test_load_counts_from_submit_whenever_the_task_started() -> None:
    found = load(THREE, ONE_NODE)
    assert found.mean == pytest.approx((4 * 1 + 4 * 2) / 8 / 2)
    assert found.peak == 1.5


def test_time_above_capacity_is_a_share_of_the_window() -> None:
    tasks = [*THREE, {"submit_time": 10.0, "start_time": 10.0, "end_time": 11.0}]
    # The window is now [0, 10), and three GPUs of two are asked for in [8, 10).
    assert load(tasks, ONE_NODE).time_above_capacity == pytest.approx(0.2)


def test_a_gang_asks_for_all_its_instances_and_a_share_for_its_part() -> None:
    span = {"submit_time": 0.0, "start_time": 0.0, "end_time": 10.0}
    gang = {**span, "instances": 3, "gpu_count": 2, "gpu_milli": 500, "cpu_milli": 2_000}
    assert load([gang], ONE_NODE).peak == 3 * 2 * 500 / 2_000
    assert load([gang], ONE_NODE, "cpu_milli").peak == 3 * 2_000 / 10_000
    whole = {**span, "gpu_count": 2, "gpu_milli": None}
    assert load([whole], ONE_NODE).peak == 1.0


def test_what_still_runs_occupies_its_share_to_the_end() -> None:
    tasks = [
        {"submit_time": 0.0, "start_time": 0.0, "is_running": True},
        {"submit_time": 8.0, "start_time": 8.0, "end_time": 20.0, "is_running": False},
    ]
    result = check_load(trace(*tasks), ONE_NODE)
    assert result.tasks_without_duration == 0
    assert result.loads[0].mean == pytest.approx(0.5)


def test_what_ran_when_the_record_began_occupies_its_share_from_the_beginning() -> None:
    tasks = [
        {"was_running": True, "is_running": True},
        {"was_running": True, "end_time": 4.0},
        {"submit_time": 8.0, "start_time": 8.0, "end_time": 12.0},
        {"submit_time": 80.0, "start_time": 80.0, "end_time": 84.0},
    ]
    found = check_load(trace(*tasks), ONE_NODE)
    assert found.tasks_without_duration == 0
    # The record begins at 4, when the second ends, and lasts to 84, when the first is still there.
    assert (found.window.begin, found.window.until) == (4.0, 84.0)
    assert found.loads[0].mean == pytest.approx((80 + 4 + 4) / 80 / 2)
    assert found.series["load"][0] == pytest.approx(0.5)


def test_there_is_no_verdict_where_it_would_rest_on_what_is_unknown() -> None:
    lost = {"submit_time": 0.0, "start_time": 0.0, "gpu_count": 2}
    sure = check_load(trace(*THREE[:2], lost), Cluster("large", (NODE, NodeGroup("other", 1, gpus=6))))
    assert "fits with room: at most 50.0 %" in sure.verdict
    assert "1 task without a known duration is left out of the load." in sure.verdict
    unsure = check_load(trace(*THREE[:2], lost), ONE_NODE)
    assert unsure.loads[0].mean == pytest.approx(0.5)
    assert unsure.loads[0].mean_at_most == pytest.approx(1.5)
    assert unsure.verdict.startswith(
        "No verdict: without 1 tasks of which it is not known when they ran the trace asks for 50 % of GPUs on average, "
        "with them for up to 150 %."
    )
    hopeless = check_load(trace(*({**t, "gpu_count": 8} for t in THREE), lost), ONE_NODE)
    assert "does not fit" in hopeless.verdict


def test_tasks_of_unknown_duration_are_left_out_and_counted() -> None:
    tasks = [*THREE[:2], {"submit_time": 2.0, "gpu_count": 0, "cpu_milli": 1}]
    result = check_load(trace(*tasks), ONE_NODE)
    assert (result.tasks, result.tasks_without_duration) == (3, 1)
    assert result.loads[0].mean == pytest.approx(0.5)
    assert "1 task without a known duration" in result.verdict
    assert "no load can be computed" in check_load(trace({"submit_time": 2.0}), ONE_NODE).verdict


def test_tasks_bound_to_a_model_are_compared_with_its_gpus_alone() -> None:
    cluster = Cluster("two", (NODE, NodeGroup("other", 3, gpus=2, gpu_model="A10", cpu_milli=10_000)))
    span = {"submit_time": 0.0, "start_time": 0.0, "end_time": 10.0}
    tasks = [
        {**span, "gpu_models_allowed": "T4", "gpu_count": 2},
        {**span, "gpu_models_allowed": "A10|T4", "gpu_count": 2},
        {**span, "gpu_models_allowed": None, "gpu_count": 2},
    ]
    assert load(tasks, cluster).peak == 6 / 8
    assert load(tasks, cluster, models="T4").peak == 2 / 2
    # Those that may run on T4 alone must also fit into T4 and A10 together.
    assert load(tasks, cluster, models="A10|T4").peak == 4 / 8


def test_a_resource_that_a_node_does_not_tell_is_never_short() -> None:
    cluster = Cluster("untold", (NODE, NodeGroup("other", 1, gpus=2)))
    tasks = [{**THREE[0], "cpu_milli": 99_000, "memory_mib": 10}]
    assert {x.resource for x in check_load(trace(*tasks), cluster).loads} == {"gpu_milli"}


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        (THREE[:2], "fits with room"),
        ([*THREE, {"submit_time": 10.0, "start_time": 10.0, "end_time": 11.0}], r"20(\.0)? % of the time"),
        ([{**task, "instances": 4, "gpu_count": 1} for task in THREE], "does not fit"),
        ([*THREE[:2], {**THREE[2], "gpu_count": 8}], "1 of 3 tasks can never be placed"),
    ],
)
def test_the_verdict_says_whether_it_fits(tasks: list[dict[str, Any]], says: str) -> None:
    assert re.search(says, check_load(trace(*tasks), ONE_NODE).verdict)


def test_a_trace_without_tasks_has_no_load() -> None:
    with pytest.raises(UserError, match="no tasks"):
        check_load(Trace(TraceMeta("empty")), ONE_NODE)


# Integers, so that the brute-force sums are exact.
spans = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 9)), max_size=20)


def columns(tasks: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return begin, end and amount of tasks given as (begin, duration, amount)."""
    begin, duration, amount = np.array(tasks, dtype=np.float64).reshape(-1, 3).T
    return begin, begin + duration, amount


@given(spans, st.lists(st.integers(-5, 120), max_size=10))
def test_the_integral_of_demand_is_the_sum_of_what_each_task_used_by_then(
    tasks: list[tuple[int, int, int]], at: list[int]
) -> None:
    times = np.array(at, dtype=np.float64)
    expected = [sum(a * max(0, min(b + d, t) - b) for b, d, a in tasks) for t in at]
    assert integral_of_demand(*columns(tasks), times).tolist() == expected


@given(spans)
def test_demand_steps_to_the_tasks_that_are_alive(tasks: list[tuple[int, int, int]]) -> None:
    times, level = demand_steps(*columns(tasks))
    assert times.tolist() == sorted({t for b, d, _ in tasks for t in (b, b + d)})
    assert level.tolist() == [sum(a for b, d, a in tasks if b <= t < b + d) for t in times]


BIG_GPUS = NodeGroup("gpus", 2, gpus=4, gpu_model="A100", cpu_milli=8_000, memory_mib=100, disk_mib=10, rdma_percent=0)
BIG_CPUS = NodeGroup("cpus", 3, gpus=1, gpu_model="T4", cpu_milli=64_000, memory_mib=900, disk_mib=10, rdma_percent=50)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({"gpu_models_allowed": "H100|V100"}, "no node has a GPU model it allows"),
        ({"gpu_count": 5}, "needs 5 GPUs on one node"),
        ({"gpu_count": 2, "gpu_models_allowed": "T4"}, "needs 2 GPUs on one node"),
        ({"gpu_count": 0, "cpu_milli": 64_001}, "needs more CPU than any node with enough GPUs has"),
        ({"gpu_count": 4, "cpu_milli": 8_001}, "needs more CPU than any node with enough GPUs has"),
        ({"gpu_count": 1, "memory_mib": 901}, "needs more memory than any node with enough GPUs has"),
        ({"gpu_count": 1, "disk_mib": 11}, "needs more disk than any node with enough GPUs has"),
        ({"gpu_count": 2, "rdma_percent": 1}, "needs more RDMA than any node with enough GPUs has"),
        ({"gpu_count": 3, "instances": 3}, "the gang of 3 is larger than the 2 the empty cluster holds"),
        ({"gpu_count": 1, "instances": 12}, "the gang of 12 is larger than the 11 the empty cluster holds"),
        ({"gpu_milli": 600, "instances": 12}, "the gang of 12 is larger than the 11 the empty cluster holds"),
        ({"instances": 6, "max_per_node": 1}, "the gang of 6 is larger than the 5 the empty cluster holds"),
        ({"gpu_count": 0, "cpu_milli": 8_000, "instances": 27}, "the gang of 27 is larger than the 26"),
    ],
)
def test_a_task_that_never_fits_is_told_why(task: dict[str, Any], reason: str) -> None:
    nodes = Cluster("both", (BIG_GPUS, BIG_CPUS)).nodes()
    (row,) = tasks_that_never_fit(trace(task).tasks, nodes).to_dicts()
    assert row["reason"].startswith(reason)
    assert (row["tasks"], row["example_job"]) == (1, "job-0")


def test_a_task_may_fit_in_each_resource_but_on_no_node_in_all() -> None:
    groups = (NodeGroup("a", 1, cpu_milli=10, memory_mib=1), NodeGroup("b", 1, cpu_milli=1, memory_mib=10))
    lopsided = Cluster("lopsided", groups)
    task = {"gpu_count": 0, "cpu_milli": 5, "memory_mib": 5}
    (row,) = tasks_that_never_fit(trace(task).tasks, lopsided.nodes()).to_dicts()
    assert row["reason"] == "no one node has enough of everything it asks for"


@pytest.mark.parametrize(
    "task",
    [
        {"gpu_count": 4},
        {"gpu_count": 1, "instances": 11},
        {"gpu_milli": 500, "instances": 22},
        {"gpu_count": 2, "gpu_milli": 500, "instances": 8},
        {"gpu_count": 1, "gpu_models_allowed": "T4|H100", "instances": 3},
        {"gpu_count": 0, "cpu_milli": 8_000, "instances": 26},
        {"instances": 5, "max_per_node": 1},
    ],
)
def test_a_task_that_just_fits_is_not_among_them(task: dict[str, Any]) -> None:
    assert tasks_that_never_fit(trace(task).tasks, Cluster("both", (BIG_GPUS, BIG_CPUS)).nodes()).is_empty()


def test_tasks_that_never_fit_are_counted_by_shape_and_reason() -> None:
    tasks = [{"gpu_count": 9}, {"gpu_count": 9}, {"gpu_count": 9, "cpu_milli": 1}, {"gpu_models_allowed": "H100"}]
    result = check_load(trace(*({**task, **THREE[0]} for task in tasks)), ONE_NODE)
    assert result.never_fit["tasks"].to_list() == [2, 1, 1]
    assert result.never_fit_by_reason().rows() == [
        ("needs 9 GPUs on one node", 3, "job-0"),
        ("no node has a GPU model it allows", 1, "job-3"),
    ]
    assert result.to_json()["tasks_never_fit"] == 4
