"""Power limits beside measured slowdowns, and the energy of runs worked out by hand."""

from __future__ import annotations

import itertools
import json

import numpy as np
import polars as pl
import pytest

from gputwin.cli.main import main
from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.power.devices import GPUS, SERVER_WATTS, SERVER_WATTS_PER_GPU, gpu_power
from gputwin.simulation.power.energy import Grid, energy_of, read_grid
from gputwin.simulation.simulate import simulate
from gputwin.traces.dataset import Trace, TraceMeta


def medians(reference, model):
    """Return limit, median slowdown and median draw measured over workloads."""
    table = pl.read_csv(reference / f"oracles/power/zeus_summary_power_{model.lower()}.csv")
    keys = ["dataset", "network", "batch_size", "optimizer"]
    free = table.filter(power_limit=table["power_limit"].max()).select(*keys, free="time_per_epoch")
    slower = (pl.col("time_per_epoch") / pl.col("free") - 1).median()
    grouped = table.join(free, on=keys).group_by("power_limit")
    return grouped.agg(slower=slower, watts=pl.col("average_power").median()).sort("power_limit")


@pytest.mark.parametrize("model", ["V100", "A40", "P100", "RTX6000"])
def test_a_limit_slows_as_measured(reference, model):
    for limit, slower, watts in medians(reference, model).iter_rows():
        assert GPUS[model].slowdown(limit) == pytest.approx(slower, abs=0.03), limit
        assert GPUS[model].draw(limit) == pytest.approx(watts, rel=0.03), limit


def test_a_limit_never_speeds_up_and_a_lower_one_slows_more():
    for gpu in GPUS.values():
        limits = np.linspace(max(1.3 * gpu.context_watts, 130.0), gpu.limit_watts, 50)
        slower = [gpu.slowdown(limit) for limit in limits]
        assert min(slower) >= 0
        assert all(a >= b for a, b in itertools.pairwise(slower))
    with pytest.raises(UserError, match="power limit of V100 is 50 W; give at least 100"):
        GPUS["V100"].slowdown(50)


def test_models_are_found_in_longer_names():
    assert gpu_power("Tesla V100-SXM2-32GB").model == "V100"
    assert gpu_power("A100-SXM4-80GB").model == "A100"
    assert gpu_power(None).model == "unknown"


def run(tasks, groups, **more):
    """Return the run of (submit, seconds, gpus, milli) on the groups."""
    frame = pl.DataFrame(
        [
            {
                "job_id": str(k),
                "role": "worker",
                "submit_time": float(submit),
                "duration_seconds": float(seconds),
                "instances": 1,
                "gpu_count": gpus,
                "gpu_milli": milli,
            }
            for k, (submit, seconds, gpus, milli) in enumerate(tasks)
        ]
    )
    return simulate(Trace.from_frames({"tasks": frame}, TraceMeta("power")), Cluster("c", groups), **more)


def test_energy_by_hand():
    """One server of 2 V100 for an hour: one GPU busy for the hour, the other never."""
    result = run([(0, 3600, 1, 1000)], (NodeGroup("n", 1, gpus=2, gpu_model="V100"),))
    found = energy_of(result.segments, result.placements, result.nodes, grid=read_grid("500"))
    v100 = GPUS["V100"]
    assert found.servers_kwh == pytest.approx((SERVER_WATTS + 2 * SERVER_WATTS_PER_GPU) / 1000)
    assert found.idle_gpus_kwh == pytest.approx(2 * v100.idle_watts / 1000)
    assert found.contexts_kwh == pytest.approx((v100.context_watts - v100.idle_watts) / 1000)
    assert found.load_kwh == pytest.approx((v100.load_watts - v100.context_watts) / 1000)
    assert found.carbon_kg == pytest.approx(0.5 * found.total_kwh)


def test_a_shared_gpu_has_one_context():
    """Two jobs of half a GPU, the second half an hour later: context for 1.5 h, load of half a GPU for 2 h."""
    result = run([(0, 3600, 1, 500), (1800, 3600, 1, 500)], (NodeGroup("n", 1, gpus=1, gpu_model="A100"),))
    found = energy_of(result.segments, result.placements, result.nodes)
    assert found.contexts_kwh == pytest.approx(32 * 1.5 / 1000)
    assert found.load_kwh == pytest.approx((385 - 96) * 0.5 * 2 / 1000)


def test_carbon_follows_the_hour():
    """200 g/kWh in the first half hour, 600 afterwards: the mean over the hour counts for a constant draw."""
    grid = Grid(np.array([0.0, 1800.0]), np.array([200.0, 600.0]))
    assert grid.grams_of(np.array([1000.0]), np.array([0.0]), np.array([3600.0])) == pytest.approx(400.0)
    assert grid.grams_of(np.array([1000.0]), np.array([900.0]), np.array([1800.0])) == pytest.approx(50.0)
    assert grid.grams_of(np.array([1000.0]), np.array([3600.0]), np.array([7200.0])) == pytest.approx(600.0)


def test_a_capped_run_takes_longer_and_less_energy():
    """At 150 W a V100 takes 11.2 % longer; its load draws less in all."""
    groups = (NodeGroup("n", 1, gpus=1, gpu_model="V100"),)
    limits = {"V100": 150.0}
    free = run([(0, 3600, 1, 1000)], groups)
    capped = run([(0, 3600, 1, 1000)], groups, power={"limits": limits})
    assert capped.jobs["end_time"].item() == pytest.approx(3600 * 1.112)
    before = energy_of(free.segments, free.placements, free.nodes)
    after = energy_of(capped.segments, capped.placements, capped.nodes, limits=limits)
    assert after.load_kwh + after.contexts_kwh < before.load_kwh + before.contexts_kwh


def test_a_wrong_grid_is_told_in_one_line(tmp_path):
    with pytest.raises(UserError, match="carbon intensity is -3 g/kWh; give 0 or more"):
        read_grid("-3")
    wrong = tmp_path / "grid.csv"
    wrong.write_text("hour,g\n0,300\n")
    with pytest.raises(UserError, match="not a carbon intensity"):
        read_grid(str(wrong))


def test_the_command_tells_energy_and_a_limit_slows(capsys):
    common = ["simulate", "synthetic:pai2020?jobs=200", "--cluster", "homogeneous:20x8", "--json", "--quiet"]
    found = {}
    for name, more in (("free", ["--power"]), ("capped", ["--power-limit", "V100=150", "--carbon", "100"])):
        assert main([*common, *more]) == 0
        found[name] = json.loads(capsys.readouterr().out)
    power = found["free"]["power"]
    parts = ("servers_kwh", "idle_gpus_kwh", "contexts_kwh", "load_kwh")
    assert power["energy_kwh"] == pytest.approx(sum(power[part] for part in parts))
    assert power["carbon_kg"] == pytest.approx(0.4 * power["energy_kwh"])
    assert found["capped"]["power"]["carbon_kg"] == pytest.approx(0.1 * found["capped"]["power"]["energy_kwh"])
    assert found["capped"]["manifest"]["scenario"]["power"] == {"limits": {"V100": 150.0}, "carbon": "100"}
