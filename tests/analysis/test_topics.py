"""What topics say is what can be counted by hand in small traces made for it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import gputwin
from gputwin.analysis import Analysis, analyze
from gputwin.analysis.distributions import distribution_by
from gputwin.analysis.frames import lazy
from gputwin.analysis.serving import correlations
from gputwin.analysis.verdict import verdict
from gputwin.analysis.words import amount, metric
from gputwin.core.units import format_duration
from gputwin.traces.locate import open_trace
from tests.report.samples import trace_of


def of(tables: dict[str, list[dict[str, Any]]], **meta: Any) -> Analysis:
    return analyze(trace_of(tables, **meta))


def rows(analysis: Analysis, topic: str, name: str) -> list[dict[str, Any]]:
    found = analysis.table(topic, name)
    assert found is not None
    return found.to_dicts()


def task(name: str, submit: float, start: float, end: float, **more: Any) -> dict[str, Any]:
    return {"job_id": name, "submit_time": submit, "start_time": start, "end_time": end, "gpu_count": 1, **more}


def test_shares_of_users_are_of_all_tasks_also_of_those_that_name_no_user() -> None:
    tasks = [
        task(str(i), i, i, 3600 + i, user=user) for i, user in enumerate(("a", "a", "b", None, None, None, None, None))
    ]
    analysis = of({"tasks": tasks})
    found = rows(analysis, "workload", "users")
    assert [(r["owner"], r["task_share"], r["gpu_hour_share"]) for r in found] == [
        ("a", 0.25, 0.25),
        ("b", 0.125, 0.125),
    ]
    texts = [remark.text for topic in analysis.topics for remark in topic.remarks]
    assert "The most active of 2 users submits 25.0 % of the tasks." in texts


def test_a_queue_too_short_to_fill_a_bin_is_not_called_none() -> None:
    tasks = [task(str(i), 3600 * i, 3600 * i + 60, 3600 * i + 900) for i in range(100)]
    found = verdict(of({"tasks": tasks})).text
    assert found.startswith("Tasks hardly wait: 95 % start within ")
    assert "queues" not in found


def test_tasks_that_ran_for_no_time_are_analyzed_though_nothing_was_ever_held() -> None:
    tasks = [task(str(i), 60 * i, 60 * i + 5, 60 * i + 5, gpu_model="A100") for i in range(30)]
    analysis = of({"tasks": tasks})
    assert analysis.table("cluster", "by_gpu_model") is None
    assert {r["gpus"] for r in rows(analysis, "cluster", "over_time")} == {0.0}


def test_metrics_and_classes_read_as_words() -> None:
    assert [
        metric(name) for name in ("gpu_duty_percent", "lora_load_ms", "qps_api", "request_rate_per_s", "queue_length")
    ] == [
        *("GPU duty (%)", "LoRA load (ms)", "QPS API", "request rate (per s)", "queue length"),
    ]
    assert [amount(size, "GPU") for size in ("0", "<1", "1", "≤2", "≤16", ">64", "2")] == [
        *("no GPU", "a share of one GPU", "one GPU", "over 1 and up to 2 GPUs", "over 8 and up to 16 GPUs"),
        *("over 64 GPUs", "2 GPUs"),
    ]


def test_request_against_use() -> None:
    tasks = [
        task("a", 0, 0, 3600, role="w", cpu_milli=4000, memory_mib=1024, gpu_milli=500),
        task("b", 0, 0, 7200, role="w", cpu_milli=1000, memory_mib=2048, gpu_milli=1000),
    ]
    usage = [
        {"job_id": "a", "role": "w", "node_id": "n", "cpu_milli": 1000.0, "gpu_milli": 100.0, "memory_mib": 2048.0}
        | {"gpu_memory_mib": 2048.0},
        {"job_id": "b", "role": "w", "node_id": "n", "cpu_milli": 3000.0, "gpu_milli": 1000.0, "memory_mib": 1024.0}
        | {"gpu_memory_mib": 4096.0},
    ]
    nodes = [{"node_id": "n", "gpu_count": 2, "cpu_milli": 8000, "memory_mib": 4096}]
    analysis = of({"tasks": tasks, "usage": usage, "nodes": nodes})
    cpu, gpu, memory = rows(analysis, "efficiency", "use")
    assert (cpu["over_share"], cpu["under_share"]) == (0.5, 0.5)
    assert cpu["reclaimable_share"] == pytest.approx(3 / 5)
    assert cpu["reclaimable_hours"] == pytest.approx(3.0)
    assert cpu["use_over_request"] == pytest.approx(4 / 5)
    assert (gpu["over_share"], gpu["under_share"]) == (0.5, 0.0)
    assert gpu["reclaimable_share"] == pytest.approx(0.4 / 1.5)
    assert memory["reclaimable_hours"] == pytest.approx(2.0)
    busy, held = rows(analysis, "efficiency", "gpu")
    assert (busy["mean"], busy["p50"], busy["max"]) == pytest.approx((60.0, 60.0, 100.0))
    assert (held["count"], held["mean"]) == (2, 3.0)
    curves = pl.DataFrame(rows(analysis, "efficiency", "use_curves")).filter(pl.col("resource") == "CPU")
    assert curves["idle_over_capacity"].to_list()[::100] == pytest.approx([-2 / 8, 3 / 8])


def test_curves_of_use_are_quantiles() -> None:
    rng = np.random.default_rng(8)
    used = rng.lognormal(6, 1, 301).round(-1)
    tasks = [task(str(i), 0, 0, 10, role="w", cpu_milli=1000 * (1 + i % 3)) for i in range(used.size)]
    usage = [{"job_id": str(i), "role": "w", "cpu_milli": u} for i, u in enumerate(used)]
    curves = pl.DataFrame(rows(of({"tasks": tasks, "usage": usage}), "efficiency", "use_curves"))
    assert curves["use"].to_list() == pytest.approx(np.quantile(used / 1000, curves["share"]).tolist())
    requests = 1 + np.arange(used.size) % 3
    assert curves["request"].to_list() == pytest.approx(np.quantile(requests, curves["share"]).tolist())


def test_machines_count_once_and_samples_by_their_length() -> None:
    usage = [
        {"scope": "node", "node_id": "a", "start_time": 0.0, "end_time": 10.0, "cpu_percent": 90.0},
        {"scope": "node", "node_id": "a", "start_time": 0.0, "end_time": 30.0, "cpu_percent": 10.0},
        {"scope": "node", "node_id": "b", "start_time": 0.0, "end_time": 1.0, "cpu_percent": 100.0},
    ]
    tasks = [task("a", 0, 0, 100)]
    instances = [
        {"job_id": "a", "instance_id": str(i), "node_id": n, "start_time": 0.0, "end_time": e, "is_running": alive}
        for i, (n, e, alive) in enumerate(
            [("a", 36.0, False), ("a", 36.0, False), ("b", None, True), ("c", None, False)]
        )
    ]
    analysis = of({"tasks": tasks, "usage": usage, "instances": instances})
    means = {r["node_id"]: r["cpu_percent"] for r in rows(analysis, "machines", "machines")}
    assert means == pytest.approx({"a": 30.0, "b": 100.0})
    placed = {r["node_id"]: (r["instances"], r["instance_hours"]) for r in rows(analysis, "machines", "placements")}
    # The third is alive at the end, 100 s; of the fourth nobody knows how long it ran.
    assert placed == {"a": (2, pytest.approx(0.02)), "b": (1, pytest.approx(100 / 3600)), "c": (1, 0.0)}


def test_who_waits_behind_whom() -> None:
    tasks = [
        task("first", 0, 10, 20, instances=4),  # waits, though nobody is before it
        task("small", 1, 15, 16),  # behind a larger one
        task("later", 2, 12, 13),  # behind both; overtakes the second
        task("alone", 30, 31, 32),  # nobody before it
        task("prompt", 40, 40, 41),
    ]
    everybody, *_ = rows(of({"tasks": tasks}), "bottlenecks", "head_of_line")
    assert everybody["waited"] == 4
    assert everybody["found_queue_share"] == 2 / 4
    assert everybody["behind_larger_share"] == 2 / 4
    assert everybody["overtaken_share"] == 1 / 4


def test_head_of_line_agrees_with_comparing_every_pair() -> None:
    rng = np.random.default_rng(5)
    submit = rng.integers(0, 60, 150).astype(float)
    wait = rng.integers(0, 9, 150) * rng.integers(0, 2, 150)
    gpus = rng.integers(0, 9, 150)
    tasks = [
        task(str(i), s, s + w, s + w + 1, gpu_count=int(g))
        for i, (s, w, g) in enumerate(zip(submit, wait, gpus, strict=True))
    ]
    found, *_ = rows(of({"tasks": tasks}), "bottlenecks", "head_of_line")
    start = submit + wait
    size = np.where(gpus == 0, -1, np.ceil(np.log2(np.maximum(gpus, 1))))
    earlier = submit[None, :] < submit[:, None]
    waited = wait > 0
    queue = earlier & (start[None, :] > submit[:, None])
    assert found["found_queue_share"] == pytest.approx(queue.any(axis=1)[waited].mean())
    larger = queue & (size[None, :] > size[:, None])
    assert found["behind_larger_share"] == pytest.approx(larger.any(axis=1)[waited].mean())
    overtaken = (submit[None, :] > submit[:, None]) & (start[None, :] < start[:, None])
    assert found["overtaken_share"] == pytest.approx(overtaken.any(axis=1)[waited].mean())


def test_a_resource_binds_where_it_is_full_while_tasks_queue() -> None:
    tasks = [task("a", 0, 0, 100), task("b", 0, 100, 200), task("c", 300, 300, 400)]
    nodes = [{"node_id": "n", "gpu_count": 1, "cpu_milli": 8000, "memory_mib": 4096}]
    found = {r["resource"]: r for r in rows(of({"tasks": tasks, "nodes": nodes}), "bottlenecks", "binding")}
    assert found["GPU"]["queueing_share"] == pytest.approx(1.0)
    assert found["GPU"]["time_share"] == pytest.approx(2 / 3, abs=0.02)


def test_a_full_gpu_model_binds_though_the_cluster_is_half_empty() -> None:
    """Otherwise waiting for the one model that is full is blamed on rules, not on the cluster's size."""
    tasks = [task("a", 0, 0, 100, gpu_model="T4"), task("b", 0, 100, 200, gpu_model="T4")]
    tasks += [task("c", 0, 0, 100, gpu_model="V100"), task("d", 300, 300, 400, gpu_model="V100")]
    sizes = {"T4": 1, "V100": 2}
    nodes = [
        {"node_id": m, "gpu_count": n, "gpu_model": m, "cpu_milli": 9000, "memory_mib": 99} for m, n in sizes.items()
    ]
    analysis = of({"tasks": tasks, "nodes": nodes})
    found = {r["resource"]: r for r in rows(analysis, "bottlenecks", "binding")}
    assert found["GPU model T4"]["queueing_share"] == pytest.approx(1.0)
    assert found["none"]["queueing_share"] == pytest.approx(0.0)
    assert "GPU model V100" not in found
    assert not any("not the cluster's size" in r.text for r in analysis.topic("bottlenecks").remarks)


def test_free_gpus_on_machines_without_cpu_are_stranded() -> None:
    tasks = [
        task("cpu", 0, 0, 1000, gpu_count=0, cpu_milli=8000, memory_mib=1),
        *(task(f"g{i}", i, i, 1000 + i, cpu_milli=2000, memory_mib=1) for i in (1, 900)),
    ]
    instances = [
        {"job_id": "cpu", "instance_id": "0", "node_id": "full", "start_time": 0.0, "end_time": 1000.0},
        {"job_id": "g1", "instance_id": "0", "node_id": "free", "start_time": 1.0, "end_time": 1001.0},
    ]
    nodes = [{"node_id": n, "gpu_count": 4, "cpu_milli": 8000, "memory_mib": 99} for n in ("full", "free")]
    analysis = of({"tasks": tasks, "instances": instances, "nodes": nodes})
    for r in rows(analysis, "bottlenecks", "stranded"):
        assert (r["total"], r["free"], r["stranded"], r["by_cpu"], r["by_memory"]) == (8, 7, 4, 4, 0)


def test_virtual_clusters_that_queue_beside_idle_gpus() -> None:
    states = {
        "running_gpus": (8, 6, 2, 0),
        "total_gpus": (8, 8, 8, 8),
        "pending_gpus": (4, 4, 0, 0),
        "idle_gpus": (0, 2, 6, 8),
    }
    series = [
        {"time": 60.0 * i, "metric": metric, "entity": "vc", "value": float(v)}
        for metric, values in states.items()
        for i, v in enumerate(values)
    ]
    (vc,) = rows(of({"series": series}), "tenancy", "virtual_clusters")
    assert vc["allocated_share"] == pytest.approx(16 / 32)
    assert (vc["queues_share"], vc["queues_beside_idle_share"]) == (0.5, 0.25)


def test_correlations_are_spearmans() -> None:
    rng = np.random.default_rng(2)
    a = rng.normal(size=80)
    frame = pl.DataFrame(
        {"bin": range(80), "a": a, "b": np.exp(a) + rng.normal(size=80), "c": rng.normal(size=80).round(0)}
    )
    for r in correlations(frame).to_dicts():
        expected = stats.spearmanr(frame[r["first"]], frame[r["second"]]).statistic
        assert r["rho"] == pytest.approx(expected)


def test_serving_metrics_latency_and_cold_starts() -> None:
    requests = [
        {"request_id": str(i), "submit_time": 10.0 * i, "duration_seconds": 2.0 + 3 * (i % 2), "adapters": i % 2}
        for i in range(100)
    ]
    series = [
        {"time": 60.0 * t, "metric": m, "entity": e, "value": v}
        for t in range(200)
        for m, e, v in (
            ("lora_load_ms", "x", 4000.0 + t),
            ("pipeline_inference_ms", "y", 2000.0),
            ("queue_length", "x", t % 7),
        )
    ]
    analysis = of({"requests": requests, "series": series})
    (latency,) = rows(analysis, "serving", "latency")
    assert latency["mean"] == pytest.approx(3.5)
    by = {r["group"]: r["mean"] for r in rows(analysis, "serving", "latency_by") if r["dimension"] == "adapters"}
    assert by == pytest.approx({"0": 2.0, "1": 5.0})
    topic = analysis.topic("serving")
    assert topic is not None
    texts = " ".join(r.text for r in topic.remarks)
    assert "LoRA 4.1 s. Loading a LoRA costs 2.0 times an inference (2.0 s)" in texts
    assert "With 1 adapters a request takes 5 s, with 0 it takes 2 s: 2.5 times" in texts


def test_distribution_functions_are_exact_at_their_points() -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate([np.zeros(50), rng.lognormal(2, 3, 900), [1.0, 10.0, 100.0] * 10])
    frame = distribution_by(lazy(pl.DataFrame({"x": values}).lazy()), "x")
    assert frame["count"][0] == values.size
    for value, share in frame.select("value", "share").rows():
        # The edge itself is a power of ten to the last digit only.
        assert share == pytest.approx((values <= value * (1 + 1e-9)).mean())
    assert all(a < b for a, b in pairwise(frame["value"]))
    assert frame["value"][0] == 0.0


def test_the_sentences_carry_the_numbers_of_the_tables() -> None:
    analysis = analyze(open_trace("synthetic:pai2020?jobs=3000"))
    delays = analysis.topic("delays")
    assert delays is not None
    (wait,) = delays.tables["wait"].to_dicts()
    assert (
        f"{wait['count']:,} tasks have a known wait: {format_duration(wait['mean'])} on average"
        in delays.remarks[0].text
    )
    assert f"{wait['zero_share'] * 100:.1f} % did not wait at all" in delays.remarks[0].text


def test_the_same_trace_and_seed_give_the_same_analysis() -> None:
    first, second, other = (analyze(open_trace("synthetic:pai2020?jobs=800"), seed=s).to_json() for s in (1, 1, 2))
    assert first == second
    assert first != other


@pytest.mark.parametrize("show", [lambda t: t, analyze], ids=["trace", "analysis"])
def test_a_notebook_shows_it_as_html_with_texts_escaped(show: Any) -> None:
    hostile = "<script>alert(1)</script>"
    tasks = [task(str(i), i, i + 1, i + 2, user=f"{hostile}{i % 2}") for i in range(20)]
    html = show(trace_of({"tasks": tasks}, title=hostile))._repr_html_()
    assert "<script" not in html
    assert html.count("<table") == html.count("</table>") >= 1
    assert gputwin.analyze(trace_of({"tasks": tasks})).to_json() == analyze(trace_of({"tasks": tasks})).to_json()


def test_arrivals_are_judged_by_intervals_that_bring_a_task_or_more() -> None:
    """Twelve tasks in an hour of each tenth day: an hour brings 0.05 on average, a day 1.3, in strong bursts."""
    times = [day * 86_400.0 + k * 300.0 for day in range(0, 101, 10) for k in range(12)]
    found = of({"tasks": [task(str(i), t, t, t + 60) for i, t in enumerate(times)]})
    said = [r.text for topic in found.topics for r in topic.remarks if r.text.startswith("Tasks arrive")]
    assert len(said) == 1
    assert said[0].startswith("Tasks arrive in strong bursts: the busiest day brings ")
