"""Outages of more than one node: racks, GPUs, logs, rolling maintenance, published rates."""

from __future__ import annotations

import json
import math

import numpy as np
import polars as pl
import pytest

from gputwin.cli.main import main
from gputwin.core.errors import InputError, UserError
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.faults.presets import PRESETS, preset_named
from gputwin.simulation.faults.schedule import REACH, merged, scheduled
from gputwin.simulation.interruptions import Faults, Fleet, Maintenance
from gputwin.simulation.machines import cluster_models
from gputwin.simulation.metrics import effective_training_time_ratio
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.simulate import simulate
from gputwin.simulation.workload import Workload, workload_of
from gputwin.traces.dataset import Trace, TraceMeta

DAY = 86_400.0
RACKS = Cluster("racks", (NodeGroup("n", count=8, gpus=4, nodes_per_rack=4),))


def a_trace(*durations: float, gpus: int = 4) -> Trace:
    jobs = len(durations)
    tasks = pl.DataFrame(
        {
            "job_id": [f"j{j}" for j in range(jobs)],
            "role": ["worker"] * jobs,
            "submit_time": [0.0] * jobs,
            "duration_seconds": list(durations),
            "instances": [1] * jobs,
            "gpu_count": [gpus] * jobs,
            "gpu_milli": [1000] * jobs,
        }
    )
    return Trace.from_frames({"tasks": tasks}, TraceMeta("faults"))


def a_workload(seconds: float) -> Workload:
    return workload_of(a_trace(seconds), cluster_models(RACKS))


def test_a_rack_takes_all_its_nodes_out_at_once():
    faults = Faults(repair_seconds=60.0, fleet=Fleet(rack_mtbf_seconds=DAY, rack_repair_seconds=1000.0))
    found = scheduled(faults, RACKS, a_workload(20 * DAY), seed=3)
    assert found.fleet is None
    assert found.mtbf_seconds == math.inf
    by_node = [[(w.down_time, w.up_time) for w in found.maintenance if w.node == n] for n in range(8)]
    assert by_node[0]
    assert all(windows == by_node[0] for windows in by_node[:4])
    assert all(windows == by_node[4] for windows in by_node[4:])
    assert by_node[0] != by_node[4]
    assert found == scheduled(faults, RACKS, a_workload(20 * DAY), seed=3)
    assert found != scheduled(faults, RACKS, a_workload(20 * DAY), seed=4)


def test_racks_that_are_not_there_cannot_fail():
    faults = Faults(fleet=Fleet(rack_mtbf_seconds=DAY))
    with pytest.raises(UserError, match="racks fail, but the cluster has none; give its node groups a rack"):
        scheduled(faults, Cluster("plain", (NodeGroup("n", count=2, gpus=4),)), a_workload(DAY), seed=0)


def test_a_node_with_more_gpus_fails_more_often():
    """Failures of GPUs and of the node itself add up: 4/20 + 1/10 a day, that is 0.3, less the time under repair."""
    wide = Cluster("wide", (NodeGroup("n", count=400, gpus=4),))
    faults = Faults(10 * DAY, repair_seconds=60.0, repair="fixed", fleet=Fleet(gpu_mtbf_seconds=20 * DAY))
    found = scheduled(faults, wide, a_workload(10 * DAY), seed=0)
    assert len(found.maintenance) == pytest.approx(400 * 0.3 * 10 * REACH, rel=0.03)


@pytest.mark.parametrize(("law", "more"), [("lognormal", {"repair_sigma": 0.7}), ("weibull", {"repair_shape": 0.6})])
def test_drawn_repairs_have_their_mean(law, more):
    one = Cluster("one", (NodeGroup("n", count=1, gpus=1),))
    faults = Faults(DAY, repair_seconds=7200.0, repair=law, fleet=Fleet(gpu_mtbf_seconds=1e15), **more)
    found = scheduled(faults, one, a_workload(3000 * DAY), seed=1)
    lasted = np.array([w.up_time - w.down_time for w in found.maintenance])
    assert lasted.size > 5000
    assert lasted.mean() == pytest.approx(7200.0, rel=0.05)


def test_outages_that_overlap_are_one():
    windows = [
        Maintenance(0, 5.0, 10.0, 20.0),
        Maintenance(0, math.inf, 15.0, 40.0),
        Maintenance(1, math.inf, 15.0, 18.0),
    ]
    assert merged(windows) == (Maintenance(0, 5.0, 10.0, 40.0), Maintenance(1, math.inf, 15.0, 18.0))


def test_a_log_is_replayed_by_hand(tmp_path):
    """The node is down from 100 to 150 s and from 300 to 310; a job of 400 s that saves all ends after 460."""
    log = tmp_path / "log.csv"
    log.write_text("node,down_time,up_time\nn-0,100,150\n0,300,310\n")
    one = Cluster("one", (NodeGroup("n", count=1, gpus=4),))
    result = simulate(a_trace(400.0), one, faults={"log": str(log)}, checkpoints={"interval_seconds": 0.0})
    assert result.jobs["end_time"].to_list() == [460.0]
    assert result.summary["stops"]["failed"] == 2
    assert result.summary["effective_training_time_ratio"] == pytest.approx(1.0)


def test_work_that_is_lost_lowers_the_effective_training_time(tmp_path):
    """Without checkpoints 100 s are done again, after 20 s to restart: 400 of 520 s of GPU time count."""
    log = tmp_path / "log.csv"
    log.write_text("node,down_time,up_time\nn-0,100,150\n")
    one = Cluster("one", (NodeGroup("n", count=1, gpus=4),))
    result = simulate(a_trace(400.0), one, faults={"log": str(log)}, checkpoints={"restart_seconds": 20.0})
    assert result.jobs["end_time"].to_list() == [570.0]
    assert result.summary["effective_training_time_ratio"] == pytest.approx(400 / 520)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("node,down_time,up_time\nn-7,1,2\n", "row 2, field 'node': there is no node 'n-7' in the cluster"),
        ("node,down_time,up_time\nn-0,5,2\n", "a node must go down before it comes back"),
        ("node,down\n0,1\n", "not a failure log"),
    ],
)
def test_a_wrong_log_is_one_line(tmp_path, text, problem):
    log = tmp_path / "log.csv"
    log.write_text(text)
    one = Cluster("one", (NodeGroup("n", count=1, gpus=4),))
    with pytest.raises(InputError, match=problem):
        simulate(a_trace(400.0), one, faults={"log": str(log)})


def test_rolling_maintenance_takes_nodes_one_after_the_other():
    fleet = Fleet(maintenance_period_seconds=800.0, maintenance_seconds=50.0, maintenance_notice_seconds=30.0)
    found = scheduled(Faults(fleet=fleet), RACKS, a_workload(800.0), seed=0).maintenance
    first = sorted(w.down_time for w in found)[:8]
    assert first == [100.0 * k for k in range(1, 9)]
    assert all((w.drain_time, w.up_time) == (w.down_time - 30.0, w.down_time + 50.0) for w in found)
    assert len(found) == 8 * REACH - 1 or len(found) == 8 * REACH


def test_presets_are_the_published_rates(reference):
    rates = json.loads((reference / "oracles/checkpointing/failure_rates.json").read_text())
    llama, rsc = rates[0]["derived"], rates[1]["failures_per_1000_node_days"]
    assert PRESETS["llama3"].per_1000_node_days == pytest.approx(llama["failures_per_1000_node_days_8gpu"], abs=5e-4)
    assert PRESETS["llama3"].mtbf_seconds / 2048 / 3600 == pytest.approx(llama["mtbf_job_hours"], abs=5e-4)
    assert PRESETS["rsc1"].per_1000_node_days == rsc["RSC-1"]
    assert PRESETS["rsc2"].per_1000_node_days == rsc["RSC-2"]
    with pytest.raises(UserError, match="unknown preset of failures 'llama'; known: llama3, rsc1, rsc2"):
        preset_named("llama")


def test_a_preset_is_a_mean_time_between_failures_for_checkpoints_too():
    fields = {"trace": "x", "faults": {"preset": "rsc1"}, "checkpoints": {"rule": "young", "save_seconds": 60.0}}
    changes = Scenario.model_validate(fields).changes
    assert changes.faults is not None
    assert changes.faults.mtbf_seconds == pytest.approx(1000 / 6.5 * DAY)
    assert changes.checkpoints.interval_seconds == pytest.approx(math.sqrt(2 * 60.0 * 1000 / 6.5 * DAY))
    with pytest.raises(UserError, match="faults have an mtbf_seconds and the preset 'rsc1'; give one of them"):
        Scenario.model_validate({"trace": "x", "faults": {"preset": "rsc1", "mtbf_seconds": 1.0}}).check()


def test_from_the_command_line(capsys, tmp_path):
    cluster = tmp_path / "c.yaml"
    cluster.write_text("name: c\ngroups:\n- {name: n, count: 40, gpus: 8, nodes_per_rack: 8}\n")
    asked = ["simulate", "synthetic:philly?jobs=200", "--cluster", str(cluster), "--json"]
    more = ["--faults", "preset=llama3,repair=4h,repair_law=lognormal,rack_mtbf=2d", "--checkpoint", "interval=10m"]
    assert main([*asked, *more]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["stops"]["failed"] > 0
    assert 0.5 < data["effective_training_time_ratio"] < 1
    assert data["manifest"]["scenario"]["faults"]["rack_mtbf_seconds"] == 2 * DAY


def test_a_job_that_ran_faster_counts_no_more_than_the_time_it_held() -> None:
    # 100 s of work on a GPU twice as fast: 50 s, and 10 s that were lost and done again; and 40 s of work at full speed.
    jobs = pl.DataFrame(
        {
            "outcome": ["finished", "finished"],
            "gpu_milli": [1000, 1000],
            "duration_seconds": [100.0, 40.0],
            "jct_seconds": [60.0, 45.0],
            "wait_seconds": [0.0, 5.0],
            "slow_gpu_model_seconds": [-50.0, 0.0],
            "slow_size_seconds": [0.0, 0.0],
        }
    )
    held = pl.Series([60.0, 40.0])
    assert effective_training_time_ratio(jobs, held) == pytest.approx((50 + 40) / (60 + 40))
