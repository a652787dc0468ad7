"""How much of each GPU jobs hold, by hand: where several share one in turn, and where they run on other sizes than asked."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from gputwin.core.units import HOUR
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.held import DEMAND, devices_held, gpus_held
from gputwin.simulation.power.devices import GPUS
from gputwin.simulation.power.energy import energy_of
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.scenario import scenario_of
from gputwin.simulation.simulate import simulate_scenario
from gputwin.simulation.waits_by_tenant import by_tenant
from gputwin.traces.dataset import Trace, TraceMeta

SEGMENTS = pl.DataFrame({"start_time": [0.0, 0.0, 20.0], "end_time": [10.0, 20.0, 30.0]})
PLACED = pl.DataFrame(
    {
        "segment": [0, 1, 2],
        "node": [0, 0, 0],
        "devices": [1, 1, 1],
        "gpu_count": [1, 1, 1],
        "gpu_milli": [250, 250, 250],
    }
)


def test_without_a_demand_of_their_own_jobs_hold_the_shares_they_were_given() -> None:
    assert gpus_held(SEGMENTS, PLACED).tolist() == [0.25, 0.25, 0.25]


def test_jobs_that_together_ask_for_more_than_a_gpu_hold_it_in_proportion() -> None:
    """1 and 0.5 GPU from 0 to 10: two thirds and one third. Then the second has its half, and the third a whole one."""
    asked = PLACED.with_columns(pl.Series(DEMAND, [1000, 500, 1000]))
    assert gpus_held(SEGMENTS, asked).tolist() == pytest.approx([2 / 3, (10 / 3 + 5) / 20, 1.0])
    held = devices_held(SEGMENTS, asked.with_columns(pl.Series("node", [0, 1, 0])))
    assert held.sort("segment")["share"].to_list() == pytest.approx([1.0, 0.5, 1.0])


def run(tasks: list[tuple[str, float, int, int]], nodes: int, gpus: int, **rules: Any) -> SimulationResult:
    """Return the run of tasks (tenant, hours, instances, GPUs of each), all submitted at 0, on nodes of V100."""
    frame = pl.DataFrame(
        [
            {
                "job_id": str(k),
                "role": "worker",
                "tenant": tenant,
                "submit_time": 0.0,
                "duration_seconds": hours * HOUR,
                "instances": instances,
                "gpu_count": count,
            }
            for k, (tenant, hours, instances, count) in enumerate(tasks)
        ]
    )
    trace = Trace.from_frames({"tasks": frame}, TraceMeta("held"))
    cluster = Cluster("c", (NodeGroup("n", nodes, gpus=gpus, gpu_model="V100"),))
    return simulate_scenario(scenario_of({"trace": "held", **rules}), trace, cluster)


def gpu_hours(result: SimulationResult) -> dict[str, float]:
    return dict(by_tenant(result).tenants.select("tenant", "gpu_hours").iter_rows())


def load_kwh(result: SimulationResult) -> float:
    return energy_of(result.segments, result.placements, result.nodes).load_kwh


V100_LOAD = (GPUS["V100"].load_watts - GPUS["V100"].context_watts) / 1000
FREE_TURNS = "time-slice:most=4,least_switch_ms=0,most_switch_ms=0"


def test_a_job_alone_in_time_slices_holds_and_heats_its_whole_gpu() -> None:
    alone = run([("a", 1, 1, 1)], 1, 1, sharing=FREE_TURNS)
    assert gpu_hours(alone) == pytest.approx({"a": 1.0})
    assert load_kwh(alone) == pytest.approx(V100_LOAD)
    assert alone.summary["goodput"]["goodput"] == pytest.approx(1.0)


def test_jobs_in_turn_hold_no_more_than_the_gpu_there_is() -> None:
    """Three hours of work in turn take three hours: one GPU, all of it useful, two thirds of it a's."""
    result = run([("a", 1, 1, 1), ("a", 1, 1, 1), ("b", 1, 1, 1)], 1, 1, sharing=FREE_TURNS)
    assert result.summary["makespan_seconds"] == pytest.approx(3 * HOUR)
    assert gpu_hours(result) == pytest.approx({"a": 2.0, "b": 1.0})
    assert load_kwh(result) == pytest.approx(3 * V100_LOAD)
    goodput = result.summary["goodput"]
    assert [goodput[f"{part}_gpu_hours"] for part in ("useful", "slowed")] == pytest.approx([3.0, 0.0], abs=1e-9)
    # Half of the GPU is due to each.
    assert result.summary["tenant_shares"]["share_error"]["mean"] == pytest.approx(1 / 6)
    assert result.summary["tenant_shares"]["most_above"]["gpus"] == pytest.approx(1 / 6)


def test_goodput_counts_the_gpus_that_shrunk_jobs_hold() -> None:
    """Job 0 asks for two GPUs and runs on one at full rate per GPU: its two GPU-hours of work take two GPU-hours."""
    result = run([("a", 1, 2, 1), ("b", 2, 1, 1)], 1, 2, elasticity={"least_share": 0.5, "scaling_exponent": 1.0})
    assert gpu_hours(result) == pytest.approx({"a": 2.0, "b": 2.0})
    goodput = result.summary["goodput"]
    assert [goodput[f"{part}_gpu_hours"] for part in ("useful", "slowed")] == pytest.approx([4.0, 0.0], abs=1e-9)
