"""What jobs use of what they were given."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gputwin.simulation.simulate import simulate
from gputwin.simulation.use import unused, unused_over_time, use_of
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.locate import open_trace
from gputwin.traces.synthetic import generate

JOBS = pl.DataFrame(
    {"job_id": ["a", "b", "c"], "start_time": [0.0, 10.0, 5.0], "end_time": [10.0, 40.0, None]},
)
USE = pl.DataFrame(
    {
        "job_id": ["a", "b", "c"],
        **{"cpu_asked": [1000, 2000, 9], "cpu_used": [1500.0, 500.0, 9.0]},
        **{"memory_asked": [None, None, None], "memory_used": [None, None, None]},
        **{"gpu_asked": [1000, 1000, 9], "gpu_used": [1000.0, 0.0, 9.0]},
    },
    schema_overrides={"memory_asked": pl.Int64, "memory_used": pl.Float64},
)


def test_amounts_are_weighted_by_the_time_they_are_held():
    # GPU: a holds 1000 for 10 s and uses it all, b 1000 for 30 s and uses nothing: 30/40. CPU: allocated 10·1000 + 30·2000
    # = 70,000, used 10·1500 + 30·500 = 30,000: 4/7. c never ended; of memory nothing is known.
    assert unused(JOBS, USE) == {"cpu": pytest.approx(4 / 7), "gpu": 0.75}


def test_bins_hold_what_ran_in_them():
    # Bins of 20 s: in the first a runs 10 s and b 10 s, in the second only b, in the third nobody.
    bins = unused_over_time(JOBS, USE, np.array([0.0, 20.0, 40.0]), 20.0)
    assert bins["gpu"] == pytest.approx([0.5, 1.0, np.nan], nan_ok=True)
    assert bins["cpu"] == pytest.approx([1 - 20 / 30, 0.75, np.nan], nan_ok=True)


def test_instances_without_a_record_are_like_the_others_of_their_task():
    tasks = pl.DataFrame({"job_id": ["a", "a"], "role": ["ps", "worker"], "instances": [1, 4], "cpu_milli": [100, 200]})
    usage = pl.DataFrame(
        {"job_id": ["a"] * 3, "role": ["worker"] * 3, "instance_id": ["0", "0", "1"], "cpu_milli": [50.0, 70.0, 100.0]}
    )
    trace = Trace.from_frames({"tasks": tasks, "usage": usage}, TraceMeta(source="by hand"))
    # Workers use 60 and 100, 80 on average, times 4; of the parameter server nothing is known.
    row = use_of(trace).row(0, named=True)
    assert (row["cpu_asked"], row["cpu_used"], row["gpu_asked"], row["gpu_used"]) == (800, 320.0, None, None)


def test_a_run_says_it_where_the_trace_does():
    with_use = simulate(generate("pai2020", jobs=300, seed=0, instances=True).to_trace(), "pai2020")
    shares = with_use.summary["unused_allocation"]
    assert set(shares) == {"cpu", "memory", "gpu"}
    assert 0 < shares["gpu"] < 1
    assert with_use.series["gpu_unused"].drop_nulls().is_between(-1e-9, 1 + 1e-9).all()
    assert simulate(open_trace("synthetic:pai2020?jobs=300"), "pai2020").summary["unused_allocation"] is None


def test_a_notebook_shows_the_run():
    shown = simulate("synthetic:philly?jobs=50", "homogeneous:2x8")._repr_html_()
    assert "50 jobs on homogeneous:2x8" in shown
    assert "order fifo" in shown
