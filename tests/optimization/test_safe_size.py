"""A planned size is safe: on every larger size too, and as often as its confidence says."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.optimization.capacity.blocks import block_count, block_of, drawn, draws_of
from gputwin.optimization.capacity.evaluate import evaluate, interval, setting_of
from gputwin.optimization.capacity.plan import plan
from gputwin.optimization.capacity.scale import mix_of
from gputwin.optimization.capacity.target import parse_target
from gputwin.queueing.erlang import servers_for_wait
from gputwin.simulation.cluster import Cluster, NodeGroup, open_cluster
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.workload import workload_of
from gputwin.traces.dataset import Trace, TraceMeta
from tests.optimization.test_capacity import queue, trace_of

GREEDY = Scenario(trace="planted", backfill="greedy")
DAY = 86_400.0


def gangs(seed: int, jobs: int = 1_500) -> Trace:
    """Jobs of one to eight GPUs and very different lengths: small ones overtake, so that waits rise with some nodes."""
    rng = stream(seed, "gangs")
    submit = np.cumsum(rng.exponential(60.0, jobs))
    return trace_of(submit, rng.lognormal(6.5, 1.5, jobs), rng.choice([1, 2, 4, 8], jobs, p=[0.5, 0.2, 0.2, 0.1]))


def wide_gangs(seed: int, jobs: int = 2_000) -> Trace:
    """Gangs of up to forty instances beside single ones."""
    rng = stream(seed, "wide")
    tasks = pl.DataFrame(
        {
            "job_id": [f"{i:05d}" for i in range(jobs)],
            "submit_time": np.cumsum(rng.exponential(20.0, jobs)),
            "duration_seconds": rng.lognormal(6.0, 2.0, jobs),
            "gpu_count": rng.choice([1, 2], jobs),
            "instances": rng.choice([1, 2, 4, 16, 40], jobs, p=[0.6, 0.15, 0.15, 0.07, 0.03]),
        }
    )
    return Trace.from_frames({"tasks": tasks}, TraceMeta("wide gangs"))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("target", ["p95_wait=600", "mean_wait=60"])
def test_every_size_from_the_answer_on_meets_the_target(seed: int, target: str) -> None:
    trace, cluster = gangs(seed), open_cluster("homogeneous:20x8")
    result = plan(trace, cluster, target, scenario=GREEDY, workers=1)
    assert result.answer is not None
    assert result.record is not None
    setting = setting_of(trace, cluster, GREEDY, parse_target(target))
    top = max(p.nodes for p in result.larger)
    assert top >= 1.25 * result.answer.nodes
    met = {n: setting.target.met(evaluate(setting, (n,)).value) for n in range(result.record.nodes - 10, top + 1)}
    assert all(met[n] for n in range(result.answer.nodes, top + 1))
    # Few nodes: every size up to 1.25 times is tried, so the record's own answer is exact.
    assert result.record.nodes == 1 + max(n for n in met if not met[n])


def test_on_nodes_of_several_kinds_every_size_from_the_answer_on_meets_the_target() -> None:
    trace, cluster = gangs(7), Cluster("kinds", tuple(NodeGroup(f"g{k}", 40, k) for k in (1, 2, 4, 8)))
    result = plan(trace, cluster, "p95_wait=600", scenario=GREEDY, workers=1)
    assert result.answer is not None
    assert result.misses is not None
    setting = setting_of(trace, cluster, GREEDY, parse_target("p95_wait=600"))
    top = max(p.nodes for p in result.larger)
    met = {n: setting.target.met(evaluate(setting, mix_of(cluster, n)).value) for n in range(result.misses.nodes, top)}
    assert all(met[n] for n in range(result.answer.nodes, top))


@pytest.mark.parametrize("seed", range(2))
def test_a_size_that_meets_by_chance_below_one_that_misses_is_not_the_answer(seed: int) -> None:
    """On these workloads sizes that meet the target and sizes that miss it take turns over dozens of nodes."""
    trace, cluster = wide_gangs(seed), open_cluster("homogeneous:300x2")
    result = plan(trace, cluster, "p95_wait=600", scenario=GREEDY, workers=1)
    assert result.answer is not None
    assert result.record is not None
    setting = setting_of(trace, cluster, GREEDY, parse_target("p95_wait=600"))
    top = max(p.nodes for p in result.larger)
    sizes = range(result.record.nodes - 50, math.ceil(1.25 * result.answer.nodes))
    met = {n: setting.target.met(evaluate(setting, (n,)).value) for n in sizes}
    worst = max(n for n in met if not met[n])
    assert min(n for n in met if met[n]) < worst < result.answer.nodes <= top
    # The record's own size is what was tried, and no more: few of the larger ones it did not try miss.
    beyond = [met[n] for n in sizes if n >= result.record.nodes]
    assert np.mean(beyond) > 0.9


def test_the_answer_is_enough_as_often_as_it_says() -> None:
    """M/M/c, of which Erlang tells how many servers are enough: the answer is no less in 90 % of records."""
    truth, cluster, repetitions = servers_for_wait(40.0, 100.0, 30.0), open_cluster("homogeneous:56x1"), 14
    enough = inside = alone = spare = 0
    for k in range(repetitions):
        rng = stream(k, "coverage")
        trace = trace_of(np.cumsum(rng.exponential(100.0 / 40.0, 4_000)), rng.exponential(100.0, 4_000))
        result = plan(trace, cluster, "p95_wait=30", workers=1)
        assert result.answer is not None
        assert result.record is not None
        assert result.luck is not None
        enough += result.answer.nodes >= truth
        inside += result.luck.low <= truth <= result.luck.high
        alone += result.record.nodes >= truth
        spare += result.answer.nodes - truth
    assert binom.cdf(enough, repetitions, 0.9) > 0.01
    assert binom.cdf(inside, repetitions, 0.9) > 0.01
    # What serves the record alone is too small for about every second one: there is something to be sure of.
    assert binom.cdf(alone, repetitions, 0.9) < 0.001
    # Safe, not wasteful.
    assert spare / repetitions < 0.1 * truth


def test_more_confidence_asks_for_no_fewer_nodes() -> None:
    trace, cluster = gangs(3), open_cluster("homogeneous:20x8")
    sizes = []
    for confidence in (0.5, 0.9, 0.99):
        result = plan(trace, cluster, "p95_wait=600", confidence=confidence, workers=1)
        assert result.answer is not None
        assert result.luck is not None
        assert result.luck.records_met >= confidence * result.luck.records
        sizes.append(result.answer.nodes)
    assert sizes == sorted(sizes)
    for confidence in (0.0, 1.0, float("nan")):
        with pytest.raises(UserError, match="confidence"):
            plan(trace, cluster, "p95_wait=600", confidence=confidence)


def test_a_target_the_record_meets_by_luck_of_its_run_times_has_no_sure_size() -> None:
    """p95 of the completion times lies at the run times' own, which days drawn anew put above in every second record."""
    trace = queue(5.0, jobs=1_000)
    edge = float(np.quantile(trace.tasks["duration_seconds"].to_numpy(), 0.95)) * 1.001
    result = plan(trace, open_cluster("homogeneous:6x1"), f"p95_jct={edge:.3f}", workers=1)
    assert result.record is not None
    assert result.answer is None
    assert "jobs' own run times decide" in result.verdict()


def test_drawn_records_have_the_days_that_were_drawn() -> None:
    rng = stream(0, "drawn")
    submit = np.sort(rng.uniform(0, 10 * DAY, 2_000))
    submit[:5] = 0.0
    workload = workload_of(trace_of(submit, rng.exponential(100.0, 2_000), rng.integers(1, 4, 2_000)), ("",))
    times = workload.jobs["submit"]
    assert block_count(times) == 10
    draw = draws_of(times)[3]
    made = drawn(workload, draw).jobs
    assert np.all(np.diff(made["submit"]) >= 0)
    # What is there at the first instant stays, once.
    assert np.count_nonzero(made["submit"] == times[0]) == 5
    own, length = block_of(times), (times[-1] - times[0]) / draw.size
    # The very last job ends its block: where that is drawn, it stands at the edge of the next.
    new = ((made["submit"] - times[0]) / length - 1e-9).astype(int)
    for place, block in enumerate(draw):
        before = workload.jobs["duration"][(own == block) & (times > times[0])]
        np.testing.assert_array_equal(made["duration"][(new == place) & (made["submit"] > times[0])], before)
    instances = workload.shapes["instances"][made["shape"]]
    np.testing.assert_array_equal(made["first_slot"], np.cumsum(instances) - instances)


@pytest.mark.parametrize(("days", "blocks"), [(0.1, 8), (4, 8), (6, 6), (20, 20), (60, 30), (170, 17), (258, 26)])
def test_a_record_is_cut_into_days_or_stretches_of_whole_days(days: float, blocks: int) -> None:
    assert block_count(np.linspace(0, days * DAY, 100)) == blocks


@pytest.mark.parametrize("target", ["p95_wait=5", "mean_wait=5"])
def test_the_interval_is_that_of_figures_of_drawn_days(target: str) -> None:
    rng = stream(0, "interval")
    submit = np.sort(rng.uniform(0, 9 * DAY, 1_500))
    times = rng.exponential(1 + (submit // DAY))
    wanted, block = parse_target(target), block_of(submit)
    figures = [wanted.value(np.concatenate([times[block == b] for b in row])) for row in draws_of(submit)]
    expected = np.quantile(figures, [0.05, 0.95])
    assert interval(wanted, submit, times) == pytest.approx(tuple(expected), rel=0.01)
