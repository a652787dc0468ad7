"""`gputwin eta` from what a scheduler prints."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from gputwin.cli.main import main
from tests.traces.samples.kubernetes import as_list, node, pod

HEADER = "JobID|User|State|Submit|Start|End|Timelimit|ReqTRES"


def stamp(seconds: int) -> str:
    return f"2026-03-01T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


@pytest.fixture
def sacct(tmp_path: Path) -> str:
    """Return accounting of one GPU: 30 jobs of 300 s one after the other, one that has run 100 s, and two that wait."""
    asks = "00:10:00|cpu=1,mem=1G,node=1,gres/gpu=1"
    lines = [
        f"{i + 1}|ada|COMPLETED|{stamp(300 * i)}|{stamp(300 * i)}|{stamp(300 * i + 300)}|{asks}" for i in range(30)
    ]
    lines.append(f"31|ada|RUNNING|{stamp(9000)}|{stamp(9000)}|Unknown|{asks}")
    lines += [f"{n}|bob|PENDING|{stamp(9000 + after)}|Unknown|Unknown|{asks}" for n, after in ((32, 50), (33, 100))]
    path = tmp_path / "sacct.txt"
    path.write_text("\n".join([HEADER, *lines]) + "\n")
    return str(path)


def test_pending_jobs_of_a_sacct_text(sacct, capsys):
    asked = ["eta", sacct, "--cluster", "homogeneous:1x1", "--no-arrivals", "--draws", "20"]
    assert main([*asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["running_jobs"], found["pending_jobs"]) == (1, 2)
    first, second = found["jobs"]
    assert (first["job_id"], second["job_id"]) == ("32", "33")
    assert first["median_seconds"] == pytest.approx(200.0, abs=5.0)
    assert second["median_seconds"] == pytest.approx(500.0, abs=5.0)
    assert first["holders"][0]["job_id"] == "31"
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "2 jobs wait and 1 run." in shown
    assert "for free GPUs" in shown


@pytest.fixture
def kubectl(tmp_path: Path) -> str:
    """Return `kubectl get pods,nodes -A -o json` of one GPU: the same jobs, and a pod that asks for none."""
    asks = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    items = [
        pod(
            f"done-{i}",
            "Succeeded",
            requests=asks,
            created=f"{stamp(300 * i)}Z",
            scheduled=f"{stamp(300 * i)}Z",
            finished=f"{stamp(300 * i + 300)}Z",
        )
        for i in range(30)
    ]
    items.append(pod("runs", requests=asks, created=f"{stamp(9000)}Z", scheduled=f"{stamp(9000)}Z"))
    items += [
        pod(name, "Pending", requests=asks, created=f"{stamp(at)}Z", scheduled=None, node_name=None)
        for name, at in (("first", 9050), ("second", 9100))
    ]
    small = {"cpu": "500m", "memory": "1Gi"}
    items.append(pod("small", "Pending", requests=small, created=f"{stamp(9100)}Z", scheduled=None, node_name=None))
    path = tmp_path / "now.json"
    path.write_text(json.dumps(as_list(*items, node("gpu-0", 1))))
    return str(path)


def test_pending_pods_of_a_kubectl_dump_start_on_the_nodes_in_it(kubectl, capsys):
    assert main(["eta", kubectl, "--no-arrivals", "--draws", "20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["running_jobs"], found["pending_jobs"]) == (1, 3)
    first, second, small = found["jobs"]
    assert [job["job_id"].split("/")[-1] for job in found["jobs"]] == ["first", "second", "small"]
    assert first["median_seconds"] == pytest.approx(200.0, abs=5.0)
    assert second["median_seconds"] == pytest.approx(500.0, abs=5.0)
    assert first["holders"][0]["job_id"].split("/")[-1] == "runs"
    assert (small["median_seconds"], small["cause"]) == (0.0, "none")
    assert all(job["tenant"] == "vision" for job in found["jobs"])


def test_the_table_as_a_file(sacct, tmp_path, capsys):
    target = tmp_path / "eta.csv"
    asked = ["eta", sacct, "--cluster", "homogeneous:1x1", "--no-arrivals", "--draws", "20", "-o", str(target), "-q"]
    assert main(asked) == 0
    assert pl.read_csv(target)["job_id"].to_list() == [32, 33]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--order", "srtf", "--backfill", "greedy"], "preempts"),
        (["--at", "yesterday"], "not a duration"),
        (["--at", "1s"], "no job had ended"),
        (["-o", "eta.xlsx"], "eta.xlsx"),
        (["--backtest"], "too few jobs waited"),
    ],
)
def test_mistakes_are_told_in_one_line(sacct, options, words, capsys):
    assert main(["eta", sacct, "--cluster", "homogeneous:1x1", "-q", *options]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert len(told.splitlines()) == 1


def test_a_moment_after_the_record_is_refused(sacct, capsys):
    assert main(["eta", sacct, "--cluster", "homogeneous:1x1", "--at", "9999d", "--json"]) == 2
    said = capsys.readouterr()
    assert "--at is 9999 d after the trace's time zero, and its last event 2 h 31 min" in said.err
    assert (said.err.count("\n"), said.out) == (1, "")
