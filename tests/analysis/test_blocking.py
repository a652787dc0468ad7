"""GPU-hours of waiting charged to those who hold GPUs: worked by hand, and conserved."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputwin.analysis import analyze
from gputwin.analysis.blocking import NOBODY, OTHERS, blocking
from gputwin.analysis.tenants import remarks_on
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.schema import TASKS, USAGE, conform

Row = tuple[str, float, float, float, str | None]


def frame(rows: list[Row], last: str) -> pl.DataFrame:
    names = {"tenant": pl.String, "start": pl.Float64, "end": pl.Float64, "gpus": pl.Float64, last: pl.String}
    return pl.DataFrame(rows, schema=names, orient="row")


def charges(waits: list[Row], holds: list[Row], largest: int = 20) -> dict[tuple[str, str], float]:
    found = blocking(frame(waits, "allowed"), frame(holds, "model"), largest)
    return {(w, h): round(hours, 6) for w, h, hours in found.iter_rows()}


def test_waiting_is_divided_in_proportion_to_what_is_held() -> None:
    # c waits an hour for 2 GPUs; a holds 3 throughout, b 1 in the first half, when it is a quarter of what is held.
    waits = [("c", 0.0, 3600.0, 2.0, None)]
    holds = [("a", 0.0, 3600.0, 3.0, None), ("b", 0.0, 1800.0, 1.0, None)]
    assert charges(waits, holds) == {("c", "a"): 1.75, ("c", "b"): 0.25}


def test_a_tenant_can_wait_for_itself_and_for_nobody() -> None:
    holds = [("a", 0.0, 1800.0, 4.0, None)]
    assert charges([("a", 0.0, 3600.0, 1.0, None)], holds) == {("a", "a"): 0.5, ("a", NOBODY): 0.5}


def test_only_gpus_of_an_allowed_model_count() -> None:
    holds = [("a", 0.0, 3600.0, 8.0, "T4"), ("b", 0.0, 3600.0, 1.0, "V100"), ("c", 0.0, 3600.0, 1.0, None)]
    waits = [("d", 0.0, 3600.0, 2.0, "V100|A100")]
    assert charges(waits, holds) == {("d", "b"): 1.0, ("d", "c"): 1.0}


def test_small_tenants_count_as_one() -> None:
    holds = [("a", 0.0, 3600.0, 8.0, None), ("b", 0.0, 3600.0, 1.0, None), ("c", 0.0, 3600.0, 1.0, None)]
    assert charges([("b", 0.0, 3600.0, 1.0, None)], holds, largest=1) == {(OTHERS, "a"): 0.8, (OTHERS, OTHERS): 0.2}


stretch = st.tuples(
    st.sampled_from("abc"),
    st.integers(0, 50).map(float),
    st.integers(1, 50).map(float),
    st.integers(1, 8).map(float),
    st.sampled_from([None, "T4", "V100"]),
).map(lambda r: (r[0], r[1], r[1] + r[2], r[3], r[4]))


@settings(max_examples=60, deadline=None)
@given(st.lists(stretch, min_size=1, max_size=6), st.lists(stretch, max_size=6))
def test_charges_sum_to_gpus_times_wait_and_agree_with_counting_each_second(waits: list[Row], holds: list[Row]) -> None:
    expected: dict[tuple[str, str], float] = {}
    for tenant, start, end, gpus, allowed in waits:
        for second in range(int(start), int(end)):
            now = [h for h in holds if h[1] <= second < h[2] and (allowed is None or h[4] in (None, allowed))]
            total = sum(h[3] for h in now)
            for h in now:
                expected[tenant, h[0]] = expected.get((tenant, h[0]), 0.0) + gpus * h[3] / total / 3600
            if not now:
                expected[tenant, NOBODY] = expected.get((tenant, NOBODY), 0.0) + gpus / 3600
    found = charges(waits, holds)
    assert found == pytest.approx(expected, abs=1e-5)
    assert sum(found.values()) == pytest.approx(sum(g * (e - s) / 3600 for _, s, e, g, _ in waits), abs=1e-4)


def test_analyze_says_who_waits_who_holds_and_who_uses_what() -> None:
    tasks = pl.DataFrame(
        {
            "job_id": ["1", "2", "3"],
            "tenant": ["big", "big", "small"],
            "submit_time": [0.0, 0.0, 0.0],
            "start_time": [0.0, 0.0, 3600.0],
            "end_time": [7200.0, 3600.0, 7200.0],
            "gpu_count": [4, 4, 4],
        }
    )
    usage = pl.DataFrame({"job_id": ["1", "2"], "role": ["main", "main"], "gpu_milli": [1000.0, 4000.0]})
    frames = {"tasks": conform(TASKS, tasks.lazy()).collect(), "usage": conform(USAGE, usage.lazy()).collect()}
    topic = analyze(Trace.from_frames(frames, TraceMeta("test"))).topic("tenants")
    assert topic is not None
    row = topic.tables["tenants"].row(0, named=True)
    assert (row["tenant"], row["gpu_hours"], row["others_wait_gpu_hours"]) == ("big", 12.0, 4.0)
    # Job 1 used a quarter for two hours, job 2 all for one.
    assert row["used_share"] == pytest.approx((1 * 2 + 4 * 1) / (4 * 3))
    assert topic.tables["blocking"].rows() == [("small", "big", 4.0)]
    assert topic.remarks[0].text.startswith("small waits most for GPUs that somebody holds: 4 GPU-hours, 100.0 %")
    assert "big holds most of what others wait for: 4 GPU-hours" in topic.remarks[1].text


def test_those_without_a_name_are_not_told_like_a_tenant_called_unknown() -> None:
    table = pl.DataFrame(
        {
            "tenant": ["unknown", "small"],
            "mean_wait_seconds": [0.0, 3600.0],
            "waited_gpu_hours": [6.0, 4.0],
            "others_wait_gpu_hours": [4.0, 6.0],
            "gpu_hour_share": [0.5, 0.5],
        }
    )
    charges = pl.DataFrame({"waiting": ["unknown", "small"], "holding": ["small", "unknown"], "gpu_hours": [6.0, 4.0]})
    first, second = remarks_on(table, charges)
    assert first.text.startswith("Jobs of unknown tenants wait most for GPUs that somebody holds: 6 GPU-hours, 60.0 %")
    assert "jobs of unknown tenants wait for that most" in second.text
