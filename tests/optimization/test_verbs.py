"""place, fit, mig and tune as their users call them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from gputwin.cli.main import main
from tests.forecasting.made import task, trace_of
from tests.optimization.tuning.test_bandits import STUDY


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


def trace_folder(tmp_path: Path, jobs: pl.DataFrame) -> str:
    """Return a trace folder of whole-GPU tasks, one per row."""
    tasks = [
        task(r["job"], r["start"], r["end"], application=r["app"], gpu_count=r["gpus"], gpu_milli=1000, cpu_milli=0)
        for r in jobs.to_dicts()
    ]
    trace_of(tasks).save(tmp_path / "trace")
    return str(tmp_path / "trace")


CLUSTER = """
groups:
  - {name: HN, count: 400, gpus: 8, cpu_milli: 128000, memory_mib: 1048576, disk_mib: 4194304, rdma_percent: 200}
  - {name: CN, count: 900, cpu_milli: 192000, memory_mib: 1048576, disk_mib: 2097152, rdma_percent: 100}
"""


def test_place_a_made_trace_on_given_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text(CLUSTER)
    folder = tmp_path / "placement"
    trace = "synthetic:dlrm2025?jobs=400&seed=3"
    found = call(capsys, "place", trace, "--cluster", str(nodes), "--seconds", "4", "-o", str(folder))
    assert found["lower_bound"] <= found["objective"] == found["nodes"]
    assert found["gap"] <= 0.02
    assert found["missing"] == {}
    page = (folder / "placement.html").read_text()
    assert "Nodes, filled by resource" in page
    assert "Methods against the bound" in page
    patterns = pl.read_parquet(folder / "patterns.parquet")
    assert (patterns["nodes"] * patterns["instances"]).sum() == found["instances"]
    assert main(["place", trace, "--cluster", str(nodes), "--method", "heuristics"]) == 0
    assert "instances fit on" in capsys.readouterr().out


def test_place_says_what_is_wrong_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = "synthetic:dlrm2025?jobs=200"
    assert "unknown objective" in complaint(
        capsys, "place", trace, "--cluster", "homogeneous:5x8", "--objective", "joy"
    )
    assert "unknown method" in complaint(capsys, "place", trace, "--cluster", "homogeneous:5x8", "--method", "joy")
    assert "give another time" in complaint(capsys, "place", trace, "--cluster", "homogeneous:5x8", "--at", "9000d")
    short = call(capsys, "place", trace, "--cluster", "homogeneous:1x1", "--limited")
    assert short["objective"] is None
    assert "add" in " ".join(short["infeasible"])
    # Hundreds of applications that fit nowhere are told by a few of them.
    tiny = tmp_path / "tiny.yaml"
    tiny.write_text("groups: [{name: HN, count: 2, gpus: 1, cpu_milli: 8}, {name: CN, count: 2, cpu_milli: 9}]\n")
    assert len(call(capsys, "place", trace, "--cluster", str(tiny))["infeasible"]) > 10
    main(["place", trace, "--cluster", str(tiny)])
    told = capsys.readouterr().out
    assert "more such reasons (--json has all)" in told
    assert len(told) < 2000


def test_place_the_most_demand_apart_and_over_racks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    jobs = pl.DataFrame(
        {
            "job": ["a1", "a2", "b1", "b2"],
            "app": ["a", "a", "b", "b"],
            "start": [0, 0, 0, 0],
            "end": [7200, 7200, 7200, 7200],
            "gpus": [4, 4, 4, 4],
        }
    )
    trace = trace_folder(tmp_path, jobs)
    racks = tmp_path / "racks.yaml"
    racks.write_text("groups:\n" + "".join(f"  - {{name: r{k}, count: 1, gpus: 8, rack: rack{k}}}\n" for k in range(2)))
    base = ("place", trace, "--at", "1h", "--cluster", str(racks), "--limited")
    together = call(capsys, *base)
    assert together["nodes"] == 2
    spread = call(capsys, *base, "--rack-share", "0.5")
    assert spread["is_optimal"]
    assert "No placement" not in " ".join(spread["infeasible"])
    apart = call(capsys, *base, "--apart", "a,b", "--rack-share", "0.5")
    assert apart["objective"] is None
    small = tmp_path / "small.yaml"
    small.write_text("groups:\n  - {name: n, count: 1, gpus: 8}\n")
    most = call(capsys, "place", trace, "--at", "1h", "--cluster", str(small), "--objective", "demand")
    assert sum(most["missing"].values()) == 2
    assert most["objective"] == 500_000
    assert most["is_optimal"]
    assert "write it like" in complaint(capsys, *base, "--apart", "a")
    assert "no application 'c'" in complaint(capsys, *base, "--apart", "a,c")
    assert "needs a rack" in complaint(
        capsys, "place", trace, "--at", "1h", "--cluster", str(small), "--rack-share", "0.5"
    )


def test_place_over_time_compares_online_moves_forecast_and_hindsight(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hours = range(30)
    jobs = pl.DataFrame(
        {
            "job": [f"long{k}" for k in range(6)] + [f"short{k}" for k in hours],
            "app": ["l"] * 6 + ["s"] * len(hours),
            "start": [0] * 6 + [3600 * k for k in hours],
            "end": [200_000] * 6 + [3600 * k + 5000 for k in hours],
            "gpus": [3, 1, 3, 1, 3, 1] + [4] * len(hours),
        }
    )
    trace = trace_folder(tmp_path, jobs)
    ask = (
        "place",
        trace,
        "--cluster",
        "homogeneous:9x4",
        "--at",
        "29h",
        "--every",
        "2h",
        "--for",
        "6h",
        "--moves",
        "3",
    )
    found = call(capsys, *ask, "-o", str(tmp_path / "rolled"))
    assert pl.read_parquet(tmp_path / "rolled" / "over_time.parquet").height == 3 * 5
    policies = {p["policy"]: p for p in found["policies"]}
    assert list(policies) == ["best fit", "FGD", "moves, no forecast", "moves, forecast", "moves, clairvoyant"]
    assert policies["best fit"]["moves"] == policies["best fit"]["gained"] == 0
    assert all(p["mean_nodes"] <= p["peak_nodes"] and p["above_bound"] >= 0 for p in policies.values())
    assert 0 <= found["forecast_coverage"] <= 1
    assert main([*ask]) == 0
    assert "saved/move" in capsys.readouterr().out
    assert "no budget" in complaint(capsys, *ask[:-1], "-3")
    assert "between 0 and 1" in complaint(capsys, *ask, "--quantile", "2")


def test_fit_answers_now_and_after_moves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    simulate = ("simulate", "synthetic:pai2020?jobs=600&seed=2", "--cluster", "homogeneous:6x4", "--backfill", "greedy")
    call(capsys, *simulate, "-o", str(run))
    small = call(capsys, "fit", str(run), "--gang", "1", "--gpus", "0")
    assert small["is_possible"]
    large = call(capsys, "fit", str(run), "--gang", "6", "--gpus", "4")
    assert large["fits_now"] < 6
    assert large["is_possible"] is False
    assert large["reason"]
    assert main(["fit", str(run), "--gang", "2", "--gpus", "1"]) == 0
    assert "fit with no move" in capsys.readouterr().out
    assert "not a saved run (it has no run.json)" in complaint(capsys, "fit", str(tmp_path))
    assert "of 1 to 100,000 instances" in complaint(capsys, "fit", str(tmp_path), "--gang", "1000000")
    assert "--at soon" in complaint(capsys, "fit", str(run), "--at", "soon")


def test_mig_cuts_recuts_and_writes_a_file_it_can_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mig"
    found = call(capsys, "mig", "--gpus", "4", "--demand", "3g.20gb=4", "--demand", "1g.5gb=6", "-o", str(folder))
    assert found["served"] == {"3g.20gb": 4, "1g.5gb": 6}
    assert found["is_optimal"]
    parted = folder / "mig-parted.yaml"
    assert yaml.safe_load(parted.read_text())["mig-configs"]
    assert "Demand and what is served" in (folder / "mig.html").read_text()
    rules = yaml.safe_load(parted.read_text())["mig-configs"]["gputwin"]
    one = next(rule["devices"][0] for rule in rules if "3g.20gb" in rule["mig-devices"])
    again = ("mig", "--gpus", "4", "--current", f"{parted}:gputwin", "--busy", f"{one}:3g.20gb")
    recut = call(capsys, *again, "--demand", "7g.40gb=4")
    assert recut["served"] == {"7g.40gb": 3}
    assert main([*again, "--demand", "7g.40gb=1"]) == 0
    assert "instances created" in capsys.readouterr().out.replace("\n", " ")
    # A file does not say where instances start; the user may, and what it says stays there.
    for start in (0, 4):
        balanced = tmp_path / "balanced.yaml"
        devices = "mig-devices: {1g.5gb: 1, 3g.20gb: 1}"
        balanced.write_text(f"mig-configs:\n  one:\n  - devices: all\n    {devices}\n")
        place = ("mig", "--gpus", "1", "--current", str(balanced), "--busy", f"0:3g.20gb@{start}")
        assert call(capsys, *place, "--demand", "3g.20gb=2")["served"] == {"3g.20gb": 2}
    assert "has no such instance" in complaint(capsys, *place, "--busy", "0:3g.20gb@0", "--demand", "1g.5gb=1")
    assert "write it like" in complaint(capsys, "mig", "--demand", "many")
    assert "no MIG profile" in complaint(capsys, "mig", "--demand", "9g.1gb=1")
    assert "no MIG GPU 'TPU'" in complaint(capsys, "mig", "--gpu", "TPU", "--demand", "1g.5gb=1")


def test_mig_over_periods_pays_for_cutting_only_where_it_gains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = tmp_path / "day.yaml"
    day.write_text("- {7g.40gb: 2}\n- {1g.5gb: 14}\n- {7g.40gb: 2}\n")
    ask = ("mig", "--gpu", "A100-40GB", "--gpus", "2", "--periods", str(day))
    free, dear = call(capsys, *ask, "--change-cost", "0"), call(capsys, *ask, "--change-cost", "100")
    assert [p["served"] for p in free["periods"]] == [
        {"1g.5gb": 0, "7g.40gb": 2},
        {"1g.5gb": 14, "7g.40gb": 0},
        {"1g.5gb": 0, "7g.40gb": 2},
    ]
    assert free["objective"] == 3 * 14
    assert [p["changes"] for p in dear["periods"]] == [0, 0, 0]
    assert dear["objective"] == dear["bound"] == 2 * 14
    assert main([*ask]) == 0
    assert "Layouts over time" in capsys.readouterr().out
    folder = tmp_path / "layouts"
    written = call(capsys, *ask, "--change-cost", "0", "-o", str(folder))
    assert written["directory"] == str(folder)
    configs = yaml.safe_load((folder / "mig-parted.yaml").read_text())["mig-configs"]
    assert [sum(r["mig-devices"].get("7g.40gb", 0) * len(r["devices"]) for r in c) for c in configs.values()] == [
        2,
        0,
        2,
    ]
    assert "What is served in each period" in (folder / "mig.html").read_text()
    # From what the fleet has at night on, day pays for the cut too: 2 × (7 destroyed + 1 created).
    night = ("--current", f"{folder / 'mig-parted.yaml'}:period-2")
    assert [p["changes"] for p in call(capsys, *ask, *night, "--change-cost", "0")["periods"]] == [16, 16, 16]
    assert "leave it out" in complaint(capsys, *ask, "--busy", "0:1g.5gb")
    day.write_text("- {7g.40gb: two}\n")
    assert "period 1" in complaint(capsys, *ask)
    assert "either --demand" in complaint(capsys, "mig", "--gpus", "2")


def test_tune_reports_and_resumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(STUDY)
    folder = tmp_path / "tuned"
    first = call(capsys, "tune", str(study), "-o", str(folder), "--budget", "10")
    assert first["simulations"] <= 10 + 4
    assert first["ab_test"]["verdict"] in ("adopt", "reject", "undecided")
    stored = (folder / "simulations.jsonl").read_text()
    page = (folder / "tuning.html").read_text()
    assert "Regret" in page
    assert "Pareto front" in page
    assert call(capsys, "tune", str(study), "-o", str(folder), "--budget", "10") == first
    assert (folder / "simulations.jsonl").read_text() == stored
    assert main(["tune", str(study), "--budget", "8", "--quiet"]) == 0
    assert "chosen:" in capsys.readouterr().out
    assert "check the path" in complaint(capsys, "tune", str(tmp_path / "none.yaml"))
