"""The benchmarks: engine and yardstick simulate the same thing, and the figures arrive as promised."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from gputwin.autoscaling.decisions.registry import RULES as SCALING_RULES
from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.run import run
from gputwin.simulation.typical import typical_jobs
from gputwin.simulation.workload import Workload
from gputwin.studies.bench.measure import most_waiting
from gputwin.studies.bench.plain import PlainSimulator
from gputwin.studies.bench.scaling import measure_scaling
from gputwin.studies.bench.suite import BENCHMARKS, run_suite
from gputwin.studies.bench.workloads import MANY_SIZES, whole_gpu_jobs
from tests.cli.process import gputwin
from tests.oracles.cases import outcomes_of, read_back
from tests.oracles.reference import Node, simulate
from tests.oracles.test_against_reference import differences

RULES = [
    (o, b, p) for o in ("fifo", "sjf") for b in ("strict", "greedy", "easy") for p in ("first-fit", "best-fit", "fgd")
]
KEYS = {"name", "jobs", "jobs_per_cpu_second", "reference_jobs_per_cpu_second", "ratio", "bytes_per_job"}
"""What others rely on of one benchmark."""


def starts(workload: Workload, cluster: Cluster, scheduler: Scheduler) -> tuple[np.ndarray, np.ndarray]:
    """Return when each job starts in the engine, and in the yardstick."""
    typical = typical_jobs(workload)
    engine = run(workload, cluster, scheduler, typical=typical).world.queue.jobs["start"]
    return engine, np.array(PlainSimulator(workload, cluster, scheduler, typical).run())


def crowded(jobs: int, nodes: int, seed: int) -> tuple[Workload, Cluster]:
    """Return jobs of many sizes that come faster than so few nodes can take them."""
    workload = whole_gpu_jobs(jobs, MANY_SIZES, load=1.1 * nodes / 1_800, seed=seed)
    return workload, Cluster("few", (NodeGroup("node", nodes, 8, cpu_milli=96_000, memory_mib=400_000),))


def one_of_each_shape(workload: Workload, most_instances: int) -> Workload:
    """Return the first job of each shape that is no larger gang, coming soon one after the other."""
    instances = workload.shapes["instances"][workload.jobs["shape"]].astype(np.int64)
    first = np.sort(np.unique(workload.jobs["shape"], return_index=True)[1])
    first = first[instances[first] <= most_instances]
    jobs = workload.jobs[first].copy()
    jobs["submit"] = 10.0 * np.arange(jobs.size)
    jobs["first_slot"] = np.cumsum(instances[first]) - instances[first]
    return replace(workload, jobs=jobs)


@pytest.mark.parametrize("name", [name for name, b in BENCHMARKS.items() if b.reference_jobs])
def test_engine_and_yardstick_start_every_job_of_a_benchmark_at_the_same_time(name):
    benchmark = BENCHMARKS[name]
    jobs = 25 if benchmark.scheduler.placement == "fgd" else 300
    engine, plain = starts(*benchmark.make(jobs, 1), benchmark.scheduler)
    np.testing.assert_array_equal(engine, plain)


@pytest.mark.parametrize("rules", RULES, ids="-".join)
def test_engine_and_yardstick_agree_where_jobs_wait(rules):
    workload, cluster = crowded(300, nodes=3, seed=2)
    engine, plain = starts(workload, cluster, Scheduler(*rules))
    np.testing.assert_array_equal(engine, plain)
    assert (engine > workload.jobs["submit"]).sum() > 100


def test_engine_and_yardstick_lose_the_same_pods_of_a_full_cluster():
    workload, cluster = BENCHMARKS["fgd openb"].make(300, 1)
    few = replace(cluster, groups=tuple(replace(g, count=min(g.count, 2)) for g in cluster.groups))
    engine, plain = starts(workload, few, Scheduler("fifo", "loss", "fgd"))
    np.testing.assert_array_equal(engine, plain)
    assert 0 < np.isnan(engine).sum() < 300


@pytest.mark.parametrize("name", [name for name, b in BENCHMARKS.items() if b.pair and b.changes is None])
def test_engine_and_reference_agree_on_gangs_of_many_shapes(name):
    """On a few nodes of each group, so that most wait; starts, places and causes are compared."""
    rules = BENCHMARKS[name].scheduler
    workload, cluster = BENCHMARKS[name].make(2_000, 3)
    workload = one_of_each_shape(workload, most_instances=12)
    few = replace(cluster, groups=tuple(replace(g, count=min(g.count, 3)) for g in cluster.groups))
    asks, jobs = read_back(workload)
    nodes = [
        Node(n["gpu_count"], n["gpu_model"], n["cpu_milli"], n["memory_mib"]) for n in few.nodes().iter_rows(named=True)
    ]
    plain = simulate(nodes, jobs, rules.order, rules.backfill, rules.placement)
    assert not differences(outcomes_of(run(workload, few, rules), asks), plain)
    assert sum(outcome.start > job.submit for outcome, job in zip(plain, jobs, strict=True)) > 30


def test_many_shapes_are_put_beside_few_where_both_are_measured(tmp_path):
    names = ["fifo easy", "fifo easy, many shapes"]
    done = gputwin(["bench", *(f"--only={name}" for name in names), "--jobs", "60", "--json"], tmp_path)
    assert done.returncode == 0, done.stderr
    few, many = json.loads(done.stdout)["benchmarks"]
    assert many["ratio_to_pair"] == pytest.approx(many["jobs_per_cpu_second"] / few["jobs_per_cpu_second"])
    assert many["ratio"] is None
    assert few["ratio_to_pair"] is None


def test_the_longest_queue_counts_jobs_between_submission_and_start():
    submit = np.array([0.0, 1.0, 2.0, 3.0, 9.0])
    start = np.array([0.0, 4.0, 5.0, np.nan, 9.0])
    assert most_waiting(submit, start) == 2


def test_bench_prints_one_json_object_with_the_figures_of_each_benchmark(tmp_path):
    done = gputwin(["bench", "--only", "fifo first-fit", "--jobs", "60", "--json"], tmp_path)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    (benchmark,) = figures["benchmarks"]
    assert benchmark.keys() >= KEYS
    assert (benchmark["name"], benchmark["jobs"]) == ("fifo first-fit", 60)
    expected = benchmark["jobs_per_cpu_second"] / benchmark["reference_jobs_per_cpu_second"]
    assert benchmark["ratio"] == pytest.approx(expected)
    assert figures["warm_start_cpu_seconds"] > 0


def test_tables_without_rows_are_not_printed(tmp_path):
    done = gputwin(["bench", "--only", "decide", "--jobs", "20", "-q"], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "decide: hpa" in done.stdout
    assert "to its pair" not in done.stdout
    assert "Other simulators" not in done.stdout


def test_serving_and_decisions_are_measured_beside_the_most_they_may_take():
    week, *decisions = measure_scaling(
        ["serving, a week of 100,000 requests a day", "decide"], 300, 0, lambda text: None
    )
    assert (week.count, week.unit, week.most) == (300, "CPU s", 10.0)
    assert week.p95_response_seconds is not None
    assert week.p95_response_seconds > 0
    assert {m.name for m in decisions} == {f"decide: {kind.name}" for kind in SCALING_RULES}
    assert all(m.value > 0 and m.unit == "CPU µs" for m in decisions)
    assert {m.name: m.most for m in decisions}["decide: hpa"] == 20.0


def test_a_round_of_a_planner_is_measured_beside_the_most_it_may_take():
    (small,) = measure_scaling(["round of max-min fairness, 500 active jobs"], 20, 0, lambda text: None)
    assert (small.count, small.unit, small.most) == (20, "CPU ms", 50.0)
    assert small.value > 0


def test_an_unknown_benchmark_is_a_mistake_that_names_the_known_ones():
    with pytest.raises(UserError, match="unknown benchmark 'fast'; known: fifo first-fit; fifo best-fit"):
        run_suite(only=["fast"])


def test_a_whole_command_is_measured_from_the_trace_to_the_saved_run(tmp_path):
    name = "simulate greedy best-fit, half the cluster"
    done = gputwin(["bench", "--only", name, "--jobs", "300", "--json"], tmp_path)
    assert done.returncode == 0, done.stderr
    (command,) = json.loads(done.stdout)["commands"]
    assert command["name"] == name
    assert 250 < command["jobs"] <= 300
    assert command["jobs_per_cpu_second"] == pytest.approx(command["jobs"] / command["cpu_seconds"])
    assert command["peak_bytes"] > 1 << 26
