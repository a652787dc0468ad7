"""The numbers in captions are those of the trace, counted again here in plain Python."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gputwin.core.units import format_duration, percent
from gputwin.report import fidelity_of
from gputwin.report.figures import WEEKDAYS
from gputwin.report.page import Cards, FigurePart
from gputwin.simulation.cluster import open_cluster
from gputwin.simulation.load import LoadCheck, check_load
from gputwin.traces.dataset import Trace
from gputwin.traces.lifetimes import observed
from gputwin.traces.locate import open_trace
from tests.consistency.reference import Life, lives, offered_gpu_seconds
from tests.report.samples import figures, sections, trace_of


@pytest.fixture(scope="module")
def trace() -> Trace:
    return open_trace("synthetic:pai2020?jobs=20000&seed=3")


@pytest.fixture(scope="module")
def check(trace: Trace) -> LoadCheck:
    return check_load(trace, open_cluster("pai2020"))


@pytest.fixture(scope="module")
def parts(trace: Trace, check: LoadCheck) -> dict[str, FigurePart]:
    return figures(trace, check=check, cluster=open_cluster("pai2020"), fidelity=fidelity_of(trace))


@pytest.fixture(scope="module")
def tasks(trace: Trace) -> list[dict[str, Any]]:
    return trace.tasks.to_dicts()


@pytest.fixture(scope="module")
def seen(trace: Trace) -> list[Life]:
    return lives(trace.tasks, observed(trace.tasks))


def arrival(task: dict[str, Any]) -> float | None:
    return task["start_time"] if task["submit_time"] is None else task["submit_time"]


def runtime(task: dict[str, Any]) -> float | None:
    if task["duration_seconds"] is not None:
        return float(task["duration_seconds"])
    ended = task["end_time"] is not None and task["start_time"] is not None
    return task["end_time"] - task["start_time"] if ended else None


def gpus(task: dict[str, Any]) -> float:
    return task["instances"] * task["gpu_count"] * (1000 if task["gpu_milli"] is None else task["gpu_milli"]) / 1000


def quantile(values: list[float], q: float) -> float:
    values, position = sorted(values), q * (len(values) - 1)
    low = math.floor(position)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (position - low)


def test_arrivals(parts: dict[str, FigurePart], tasks: list[dict[str, Any]]) -> None:
    rows = parts["arrivals"].data.to_dicts()
    times = sorted(t for t in map(arrival, tasks) if t is not None)
    counts = [bisect_left(times, r["end"]) - bisect_left(times, r["begin"]) for r in rows]
    assert [r["count"] for r in rows] == counts
    caption = parts["arrivals"].caption
    assert caption.startswith(f"{sum(counts):,} tasks, ")
    assert f": {sum(counts) / len(rows):.4g} per " in caption
    assert f"on average, at most {max(counts):,}" in caption


def test_the_week_in_the_traces_own_zone(parts: dict[str, FigurePart], tasks: list[dict[str, Any]]) -> None:
    zone = ZoneInfo("Asia/Shanghai")
    times = sorted(t for t in map(arrival, tasks) if t is not None)
    local = [datetime.fromtimestamp(t, zone) for t in times]
    arrivals = Counter((t.weekday(), t.hour) for t in local)
    covered: Counter[tuple[int, int]] = Counter()
    slot = local[0].replace(minute=local[0].minute // 15 * 15, second=0, microsecond=0)
    while slot <= local[-1]:
        covered[slot.weekday(), slot.hour] += 1
        slot += timedelta(minutes=15)
    rates = {cell: arrivals[cell] / (slots / 4) for cell, slots in covered.items()}
    shown = {(r["weekday"] - 1, r["hour"]): r["per_hour"] for r in parts["week"].data.to_dicts()}
    assert shown == pytest.approx(rates)
    caption = parts["week"].caption
    for cell in (max(sorted(rates), key=rates.__getitem__), min(sorted(rates), key=rates.__getitem__)):
        assert f"{WEEKDAYS[cell[0]]} {cell[1]:02d}:00 ({rates[cell]:,.1f})" in caption
    assert f"{168 - len(rates)} of 168 hours" in caption


@pytest.mark.parametrize("id_", ["runtime", "wait"])
def test_durations(id_: str, parts: dict[str, FigurePart], tasks: list[dict[str, Any]]) -> None:
    if id_ == "runtime":
        values = [r for r in map(runtime, tasks) if r is not None]
    else:
        values = [
            t["start_time"] - t["submit_time"]
            for t in tasks
            if t["start_time"] is not None and t["submit_time"] is not None
        ]
    caption = parts[id_].caption
    assert f" of {len(values):,} tasks: mean {format_duration(sum(values) / len(values))}" in caption
    for name, q in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        assert f"{name} {format_duration(quantile(values, q))}" in caption
    assert f"longest {format_duration(max(values))}." in caption
    curve, values = parts[id_].data, sorted(values)
    assert curve.height <= 400
    for value, share in curve.iter_rows():
        assert share == pytest.approx(bisect_right(values, value) / len(values))
    assert curve["share"][-1] == 1.0


def test_gpus_per_task(parts: dict[str, FigurePart], tasks: list[dict[str, Any]], seen: list[Life]) -> None:
    def label(amount: float) -> str:
        if amount <= 1:
            return "0" if amount == 0 else "<1" if amount < 1 else "1"
        return f"≤{2 ** math.ceil(math.log2(amount)):,}"

    counts: Counter[str] = Counter()
    hours: defaultdict[str, float] = defaultdict(float)
    for task, life in zip(tasks, seen, strict=True):
        counts[label(gpus(task))] += 1
        hours[label(gpus(task))] += gpus(task) * (life.held or 0.0) / 3600
    shown = {r["gpus"]: r for r in parts["gpus-per-task"].data.to_dicts()}
    assert {k: r["tasks"] for k, r in shown.items()} == counts
    assert {k: r["gpu_hours"] for k, r in shown.items()} == pytest.approx(hours)
    caption = parts["gpus-per-task"].caption
    assert f"({percent(max(counts.values()) / len(tasks), 1)})" in caption
    total = sum(hours.values())
    assert f"Of {total:,.0f} GPU-hours, {percent(max(hours.values()) / total, 1)} went" in caption


def test_the_largest_users(parts: dict[str, FigurePart], tasks: list[dict[str, Any]], seen: list[Life]) -> None:
    counts = Counter(t["user"] for t in tasks)
    hours: defaultdict[str, float] = defaultdict(float)
    for task, life in zip(tasks, seen, strict=True):
        hours[task["user"]] += gpus(task) * (life.held or 0.0)
    top = math.ceil(0.05 * len(counts))
    share = sum(sorted(counts.values(), reverse=True)[:top]) / len(tasks)
    held = sum(sorted(hours.values(), reverse=True)[:top]) / sum(hours.values())
    caption = parts["owners"].caption
    assert f"({top:,} of {len(counts):,}) submit {percent(share, 1)} of the tasks" in caption
    assert f"hold {percent(held, 1)} of the GPU-hours" in caption


def test_load(parts: dict[str, FigurePart], check: LoadCheck, trace: Trace, seen: list[Life]) -> None:
    window = observed(trace.tasks)
    mean = offered_gpu_seconds(seen, window) / window.seconds / 6742
    (whole,) = [x for x in check.loads if (x.resource, x.models) == ("gpu_milli", "any")]
    assert whole.mean == pytest.approx(mean)
    assert parts["load"].caption.startswith(f"The most loaded is GPU: {percent(mean, 1)} of 6,742 GPUs on average")


def test_the_cluster(parts: dict[str, FigurePart]) -> None:
    assert parts["gpus-by-model"].caption == "6,742 GPUs; the largest share is MISC: 2,240 (33.2 %)."


def test_fidelity(parts: dict[str, FigurePart]) -> None:
    rows = parts["fidelity-ratios"].data.to_dicts()
    within = sum(0.9 <= r["generated"] / r["original"] <= 1.1 for r in rows)
    assert f"{within} of {len(rows)} are within 10 %" in parts["fidelity-ratios"].caption


def test_rows_read_are_rows_kept_and_dropped() -> None:
    trace = trace_of({"tasks": [{"job_id": "a"}]}, rows_read=1207, rows_kept=1200, rows_dropped=7)
    (cards, *_) = sections(trace)["quality"].parts
    assert cards.cards[0].value == "1,207"  # type: ignore[union-attr]
    assert cards.cards[0].note == "= 1,200 kept + 7 dropped"  # type: ignore[union-attr]


def test_requests_and_tokens() -> None:
    tokens = [0, 1, 2, 3, 4, 1023, 1024, 5000]
    requests = [
        {"request_id": str(i), "submit_time": 60.0 * i, "input_tokens": n, "duration_seconds": 1.0 + i}
        for i, n in enumerate(tokens)
    ]
    parts = figures(trace_of({"requests": [*requests, {"request_id": "late"}]}))
    assert parts["answer-requests"].caption.endswith(" 1 more have no known arrival time.")
    assert parts["tokens"].caption == (
        f"Tokens per request; input: {sum(tokens):,} tokens in 8 requests, median 4, 95th percentile "
        f"{quantile([float(n) for n in tokens], 0.95):,.0f}."
    )
    shown = {r["tokens"]: r["requests"] for r in parts["tokens"].data.to_dicts()}
    assert shown == {"0": 1, "1": 1, "2–3": 2, "4–7": 1, "512–1,023": 1, "1,024–2,047": 1, "4,096–8,191": 1}


def test_a_metric_is_the_mean_over_entities_each_counted_once() -> None:
    samples = [("a", 0.0, 1.0), ("a", 0.1, 1.0), ("a", 0.2, 4.0), ("b", 0.3, 10.0), ("b", 5000.0, 3.0)]
    rows = [{"entity": e, "time": t, "metric": "m", "value": v} for e, t, v in samples]
    part = figures(trace_of({"series": rows}))["metrics"]
    assert part.data["value"].to_list() == [6.0, 3.0]
    assert part.caption.startswith("1 of 1 metrics, those with most samples: 2 means over 1 h 23 min, ")


@pytest.mark.parametrize(
    ("times", "stretch"),
    [
        ([0, 1, 2, 600], "at most 3 (the first 5 s)."),
        ([0, 600, 601, 602], "at most 3 (the 5 s from 10 min 00 s after the start)."),
        ([0, 600], "at most 1."),
    ],
)
def test_the_busiest_bin_is_named_where_there_is_one(times: list[int], stretch: str) -> None:
    rows = [{"job_id": str(i), "submit_time": float(t), "start_time": float(t)} for i, t in enumerate(times)]
    caption = figures(trace_of({"tasks": rows}))["arrivals"].caption
    assert caption.endswith(stretch)


def test_the_cluster_to_simulate_next_has_room_for_all_that_ran_at_one_time() -> None:
    short = [
        {"job_id": str(i), "submit_time": 0.0, "start_time": 0.0, "end_time": 60.0, "gpu_count": 8} for i in range(5)
    ]
    long = {"job_id": "long", "submit_time": 0.0, "start_time": 0.0, "end_time": 86_400.0, "gpu_count": 8}
    answer = sections(trace_of({"tasks": [*short, long]}))["overview"]
    assert all("--cluster homogeneous:6x8" in step for step in answer.next_steps)


def test_an_average_over_part_of_the_span_says_over_how_much() -> None:
    times = [0.0, *(90_000.0 + i * 10 for i in range(200))]
    rows = [
        {"job_id": str(i), "submit_time": t, "start_time": t, "end_time": t + 5, "gpu_count": 1}
        for i, t in enumerate(times)
    ]
    (cards,) = (p for p in sections(trace_of({"tasks": rows}))["overview"].parts if isinstance(p, Cards))
    (note,) = (c.note for c in cards.cards if c.label == "GPUs held on average")
    assert note == "0 GPU-hours; mean over 33 min 10 s"
