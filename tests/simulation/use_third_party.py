"""Prints what policies of an installed package do, one line a kind."""

import polars as pl

import gputwin
from gputwin.traces.dataset import Trace, TraceMeta


def trace(durations: list[float], tenants: str = "", gpus: list[int] | None = None) -> Trace:
    count = len(durations)
    tasks = pl.DataFrame(
        {
            "job_id": [f"job-{i}" for i in range(count)],
            "submit_time": [float(i) for i in range(count)],
            "duration_seconds": durations,
            "gpu_count": gpus or [1] * count,
            "gpu_milli": [1000] * count,
            "user": list(tenants) or ["a"] * count,
        }
    )
    return Trace.from_frames({"tasks": tasks}, TraceMeta("by hand"))


three = trace([10.0, 5.0, 5.5])
one_gpu = "homogeneous:1x1"
print("order", gputwin.simulate(three, one_gpu, order="third-order").jobs["start_time"].to_list())
line = trace([10.0, 5.0, 3.0, 5.0, 2.0], gpus=[1, 2, 1, 2, 1])
overtaken = gputwin.simulate(line, "homogeneous:1x2", backfill="third-backfill")
print("backfill", overtaken.jobs["start_time"].to_list(), overtaken.summary["wait_causes_seconds"]["behind_other_job"])
print(
    "placement",
    gputwin.simulate(trace([1.0]), "homogeneous:3x1", placement="third-placement").placements["node"].to_list(),
)
late = gputwin.simulate(trace([10.0, 6.0, 5.0]), one_gpu, order="third-lifo", backfill="greedy")
print("preemption", late.jobs["end_time"].to_list())
slow = gputwin.simulate(trace([10.0]), one_gpu, speed={"policy": "third-speed"})
print("speed", slow.jobs["end_time"].to_list())
fair = gputwin.simulate(trace([10.0, 5.0, 5.0], "aab"), one_gpu, backfill="greedy", fairness="third-fairness")
print("fairness", fair.jobs["start_time"].to_list())
shared = gputwin.simulate(trace([10.0, 5.0]), one_gpu, sharing="third-sharing")
print("sharing", shared.jobs["end_time"].to_list())
planned = gputwin.simulate(trace([10.0, 5.0]), one_gpu, planner={"policy": "third-planner", "round_seconds": 4.0})
print("planner", planned.jobs["end_time"].to_list())
two_gpus = trace([10.0]).tasks.with_columns(gpu_count=2)
elastic = gputwin.simulate(
    Trace.from_frames({"tasks": two_gpus}, TraceMeta("by hand")),
    "homogeneous:1x2",
    elasticity={"policy": "third-elastic", "scaling_exponent": 1.0},
)
print("elastic", elastic.jobs["end_time"].to_list())
