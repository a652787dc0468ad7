"""Caps on the power of nodes and racks: speeds and energy worked out by hand."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from gputwin.cli.main import main
from gputwin.core.errors import UserError
from gputwin.simulation.cluster import NodeGroup
from gputwin.simulation.power.devices import GPUS
from tests.simulation.test_power import run

V100 = GPUS["V100"]
PAIR = (NodeGroup("n", 1, gpus=2, gpu_model="V100"),)
# A server with two V100 draws 540 + 2 × 58 + 2 × 30 = 716 W when idle; 240 W more let both be busy at 150 W each, which
# takes 11.2 % longer, or one at 270 W, which is no limit.
CAP = 956.0
SLOW = 1.112


def stretches(result):
    columns = ("job", "start_time", "end_time", "rate")
    return [tuple(row) for row in result.segments.select(columns).sort("start_time", "job").iter_rows()]


def test_busy_gpus_share_what_the_node_may_draw():
    result = run([(0, 100, 1, 1000), (0, 50, 1, 1000)], PAIR, power={"node_watts": CAP})
    until = 50 * SLOW
    assert stretches(result) == [
        (0, 0, pytest.approx(until), pytest.approx(1 / SLOW)),
        (1, 0, pytest.approx(until), pytest.approx(1 / SLOW)),
        (0, pytest.approx(until), pytest.approx(until + 50), 1.0),
    ]
    power = result.summary["power"]
    joules = 2 * until * (V100.draw(150) - V100.context_watts) + 50 * (V100.load_watts - V100.context_watts)
    assert power["load_kwh"] == pytest.approx(joules / 3.6e6)
    assert power["contexts_kwh"] == pytest.approx((2 * until + 50) * (V100.context_watts - V100.idle_watts) / 3.6e6)
    assert power["carbon_kg"] == pytest.approx(0.4 * power["energy_kwh"])
    slowed = result.jobs["slow_gpu_model_seconds"].to_list()
    assert slowed == [pytest.approx(until - 50)] * 2


def test_a_rack_shares_its_cap_between_nodes():
    racks = (NodeGroup("n", 2, gpus=1, gpu_model="V100", nodes_per_rack=2),)
    # Two servers of one GPU draw 2 × (540 + 58 + 30) = 1,256 W when idle.
    result = run([(0, 100, 1, 1000), (0, 50, 1, 1000)], racks, power={"rack_watts": 1256.0 + 240.0})
    assert [s[3] for s in stretches(result)] == [pytest.approx(1 / SLOW), pytest.approx(1 / SLOW), 1.0]
    joules = 100 * SLOW * (V100.draw(150) - V100.context_watts) + 50 * (V100.load_watts - V100.context_watts)
    assert result.summary["power"]["load_kwh"] == pytest.approx(joules / 3.6e6)
    # One node in each rack: nobody is slowed.
    apart = (NodeGroup("n", 2, gpus=1, gpu_model="V100", nodes_per_rack=1),)
    result = run([(0, 100, 1, 1000), (0, 50, 1, 1000)], apart, power={"rack_watts": 628.0 + 240.0})
    assert [s[3] for s in stretches(result)] == [1.0, 1.0]


def test_jobs_wait_instead_where_that_is_asked_for():
    jobs = [(0, 100, 1, 1000), (0, 50, 1, 1000)]
    result = run(jobs, PAIR, power={"node_watts": CAP, "over_cap": "wait"})
    # 240 W are enough for one GPU at its full limit (220 W above idle).
    assert stretches(result) == [(0, 0, 100, 1.0), (1, 100, 150, 1.0)]
    # With a limit of 150 W (120 above idle) for each GPU they are enough for both.
    result = run(jobs, PAIR, power={"node_watts": CAP, "over_cap": "wait", "limits": {"V100": 150.0}})
    assert [s[3] for s in stretches(result)] == [pytest.approx(1 / SLOW)] * 2
    # Servers and idle GPUs draw for both, whether they are used or not.
    assert result.summary["power"]["idle_gpus_kwh"] == pytest.approx(2 * 30 * 100 * SLOW / 3.6e6)


def test_a_rack_lets_nodes_use_gpus_in_turn():
    racks = (NodeGroup("n", 2, gpus=2, gpu_model="V100", nodes_per_rack=2),)
    # Three GPUs at 220 W above idle: two on the first node and one on the second.
    power = {"rack_watts": 2 * 716.0 + 3 * 220.0, "over_cap": "wait"}
    result = run([(0, 10, 1, 1000)] * 4, racks, power=power)
    assert sorted(result.jobs["start_time"].to_list()) == [0, 0, 0, 10]
    assert sorted(result.placements["node"].to_list()) == [0, 0, 0, 1]


def test_a_limit_of_gpus_holds_under_a_cap_too():
    result = run([(0, 100, 1, 1000)], PAIR, power={"node_watts": CAP, "limits": {"V100": 200.0}})
    assert stretches(result) == [(0, 0, pytest.approx(103.7), pytest.approx(1 / 1.037))]


def test_no_node_draws_more_than_its_cap():
    """On many random jobs: at each instant, servers, idle GPUs and limits of busy GPUs are within the cap."""
    rng = np.random.default_rng(5)
    jobs = [(float(t), float(d), int(n), 1000) for t, d, n in zip(*rng.integers(1, 5, (3, 40)), strict=True)]
    group = (NodeGroup("n", 3, gpus=4, gpu_model="V100"),)
    idle = 540 + 4 * 58 + 4 * 30
    result = run(sorted(jobs), group, power={"node_watts": idle + 400.0})
    spots = result.placements.join(
        result.segments.with_row_index("segment").select("segment", "start_time", "end_time", "rate"), on="segment"
    )
    for time in np.unique(result.segments["start_time"].to_numpy()) + 1e-6:
        now = spots.filter((pl.col("start_time") <= time) & (pl.col("end_time") > time))
        for _, here in now.group_by("node"):
            busy = int(here["gpu_count"].sum())
            limit = 30 + 400 / busy
            assert here["rate"].to_list() == pytest.approx([1 / (1 + V100.slowdown(min(limit, 250.0)))] * here.height)


def test_caps_that_cannot_be_kept_are_refused():
    with pytest.raises(UserError, match="draws 716 W when idle; give more"):
        run([(0, 1, 1, 1000)], PAIR, power={"node_watts": 700.0})
    with pytest.raises(UserError, match=r"leaves each GPU of node 0 80 W when all are busy.*give more, or over=wait"):
        run([(0, 1, 1, 1000)], PAIR, power={"node_watts": 816.0})
    with pytest.raises(UserError, match=r"67 W when all are busy, and a GPU of unknown model takes at least 72;"):
        run([(0, 1, 1, 1000)], (NodeGroup("n", 1, gpus=2),), power={"node_watts": 790.0})
    with pytest.raises(UserError, match="needs the rack of each node"):
        run([(0, 1, 1, 1000)], PAIR, power={"rack_watts": 5000.0})
    with pytest.raises(UserError, match="do not go with speed 'spread'"):
        run([(0, 1, 1, 1000)], PAIR, power={"node_watts": CAP}, speed={"policy": "spread"})


def test_the_command_line_takes_caps(capsys):
    where = ["synthetic:pai2020?jobs=200", "--cluster", "homogeneous:4x8", "--seed", "1", "--json", "--quiet"]
    means = []
    for more in ([], ["--power-cap", "node=2200"], ["--power-cap", "node=2200,over=wait"]):
        assert main(["simulate", *where, "--power", *more]) == 0
        means.append(json.loads(capsys.readouterr().out))
    assert means[1]["completion_parts_seconds"]["slow_gpu_model"] > 0
    assert means[2]["wait_seconds"]["mean"] > means[0]["wait_seconds"]["mean"]
