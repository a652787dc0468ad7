"""What of a cluster's GPUs is allocated and can be: shares of all its GPUs, also under a power cap and while nodes drain."""

from __future__ import annotations

import pytest

from gputwin.simulation.cluster import NodeGroup
from tests.simulation.test_power import run

ONE_OF_TWO = 716.0 + 240.0
"""Watts of a server of two V100 under which one of them can draw its full limit."""


def test_gpus_that_a_power_cap_leaves_unused_are_part_of_the_whole():
    """One GPU of two is busy all the time: half is allocated, and half is all that can be."""
    cap = {"node_watts": ONE_OF_TWO, "over_cap": "wait"}
    result = run([(0, 100, 1, 1000), (0, 100, 1, 1000)], (NodeGroup("n", 1, gpus=2, gpu_model="V100"),), power=cap)
    assert result.jobs["wait_seconds"].to_list() == [0, 100]
    assert result.summary["allocation"]["gpu"] == pytest.approx(0.5)
    assert result.summary["allocation"]["gpu_V100"] == pytest.approx(0.5)


def test_no_more_is_allocated_than_can_be_held_while_a_node_drains():
    """Node 1 drains from 20 and is down from 60 to 80; its job of 100 s ends there at 60 and runs again from 80."""
    window = {"node": 1, "drain_time": 20.0, "down_time": 60.0, "up_time": 80.0}
    nodes = (NodeGroup("n", 2, gpus=1, gpu_model="V100"),)
    tasks = [(0, 200, 1, 1000), (0, 100, 1, 1000)]
    result = run(tasks, nodes, faults={"maintenance": [window]}, resolution_seconds=10.0)
    series = result.series
    assert (series["gpu_allocation"] <= series["gpu_capacity"] + 1e-9).all()
    assert series["gpu_capacity"].head(9).to_list() == pytest.approx([1.0] * 6 + [0.5] * 2 + [1.0])
