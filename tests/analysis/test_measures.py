"""What analyses start from: the same quantities as everywhere, local hours, exact averages over time, burstiness."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gputwin.analysis.arrivals import burstiness, interarrival
from gputwin.analysis.bins import Bins
from gputwin.analysis.clock import LocalClock
from gputwin.analysis.frames import collect, lazy
from gputwin.analysis.occupancy import occupancy, time_mean
from gputwin.analysis.tasks import GPU_LABELS, prepare, task_facts
from gputwin.traces.dataset import TraceMeta
from gputwin.traces.lifetimes import Window
from gputwin.traces.locate import open_trace
from gputwin.traces.measures import ARRIVAL, GPU_MILLI_TOTAL, RUNTIME, WAIT
from gputwin.traces.reader import Clock


def test_waits_runtimes_and_gpus_are_those_of_the_traces_room() -> None:
    trace = open_trace("synthetic:dlrm2025?jobs=500")
    scan = trace.scan("tasks")
    ours = collect(prepare(scan, task_facts(scan)))
    theirs = trace.tasks.select(WAIT, RUNTIME, ARRIVAL, GPU_MILLI_TOTAL / 1000)
    for mine, name in (("wait", "wait_seconds"), ("runtime", "runtime_seconds"), ("arrival", "arrival_time")):
        assert ours[mine].equals(theirs[name])
    assert ours["gpus"].to_list() == theirs["gpu_milli_total"].to_list()


@pytest.mark.parametrize(
    ("count", "milli", "instances", "label"),
    [
        *(
            (0, 0, 9, "0"),
            (1, 1, 1, "<1"),
            (1, 999, 1, "<1"),
            (1, 1000, 1, "1"),
            (2, None, 1, "≤2"),
            (1, 1000, 3, "≤4"),
        ),
        *((8, 1000, 1, "≤8"), (8, 1000, 128, "≤1,024"), (8, 1000, 129, ">1,024")),
    ],
)
def test_gpu_classes(count: int, milli: int | None, instances: int, label: str) -> None:
    row = {"job_id": "a", "gpu_count": count, "gpu_milli": milli, "instances": instances}
    from tests.report.samples import trace_of

    scan = trace_of({"tasks": [row]}).scan("tasks")
    assert GPU_LABELS[collect(prepare(scan, task_facts(scan)))["gpu_class"][0]] == label


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Asia/Shanghai"])
def test_local_hours_and_weekdays_are_those_of_the_zone(zone: str) -> None:
    origin = datetime(2017, 9, 1, 3, 17, tzinfo=ZoneInfo("UTC")).timestamp()
    times = np.arange(0.0, 300 * 86400.0, 1799.0)
    meta = TraceMeta("test", clock=Clock.ABSOLUTE, zone=zone, origin_unix_seconds=origin)
    clock = LocalClock.of(meta, 0.0, float(times[-1]))
    frame = lazy(pl.DataFrame({"t": times}).lazy())
    t = nw.col("t")
    found = collect(frame.select(hour=clock.hour(t), weekday=clock.weekday(t), week=clock.week(t)))
    local = [datetime.fromtimestamp(origin + x, ZoneInfo(zone)) for x in times]
    assert found["hour"].to_list() == [x.hour for x in local]
    assert found["weekday"].to_list() == [x.isoweekday() for x in local]
    monday = datetime(1969, 12, 29)
    weeks = [(x.replace(tzinfo=None) - monday) // timedelta(weeks=1) for x in local]
    assert found["week"].to_list() == weeks


@pytest.mark.parametrize("meta", [{}, {"clock": Clock.ABSOLUTE, "origin_unix_seconds": 1e17}])
def test_a_clock_without_time_of_day(meta: dict[str, Any]) -> None:
    assert not LocalClock.of(TraceMeta("test", **meta), 0.0, 1e5).has_time_of_day


intervals = st.lists(st.tuples(st.integers(-50, 150), st.integers(0, 80), st.integers(0, 5)), min_size=1, max_size=25)


@given(intervals)
def test_what_is_in_force_is_averaged_exactly(rows: list[tuple[int, int, int]]) -> None:
    bins = Bins(0.0, 7.0, 14)
    frame = pl.DataFrame(
        {"b": [float(b) for b, _, _ in rows], "e": [float(b + d) for b, d, _ in rows], "n": [n for *_, n in rows]}
    )
    # The window ends within the thirteenth bin.
    window = Window(-50.0, 230.0, begin=3.0, until=87.0)
    found = occupancy(lazy(frame.lazy()), "b", "e", {"held": nw.col("n")}, bins, window)
    whole = 0.0
    for i, (seconds, held) in enumerate(found.select("seconds", "held").rows()):
        low, high = max(7.0 * i, 3.0), min(7.0 * (i + 1), 87.0)
        assert seconds == max(high - low, 0.0)
        expected = sum(n * max(min(b + d, high) - max(b, low), 0) for b, d, n in rows)
        assert held * seconds == pytest.approx(expected, abs=1e-9)
        whole += expected
    assert time_mean(found, "held") == pytest.approx(whole / 84.0)


def test_a_poisson_process_has_dispersion_one_and_a_batch_process_its_batch_size() -> None:
    rng = np.random.default_rng(0)
    times = np.sort(rng.uniform(0, 30 * 86400, 100_000))
    poisson = lazy(pl.DataFrame({"arrival": times}).lazy())
    for r in burstiness(poisson).filter(pl.col("bins") > 500).to_dicts():
        assert r["dispersion"] == pytest.approx(1.0, abs=0.15)
        assert abs(r["lag_one"]) < 0.1
    assert interarrival(poisson)["cv"][0] == pytest.approx(1.0, abs=0.02)
    # Batches of a fixed size k multiply the variance of counts by k², their mean by k.
    batches = lazy(pl.DataFrame({"arrival": np.repeat(times[:20_000:1], 5)}).lazy())
    row = burstiness(batches).filter(pl.col("scale") == "1 min").to_dicts()[0]
    assert row["dispersion"] == pytest.approx(5.0, rel=0.05)
    assert interarrival(batches)["together_share"][0] == pytest.approx(0.8, abs=0.001)
