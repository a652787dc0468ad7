"""`gputwin autoscale --cluster` writes Karpenter's manifest, and decides alike when it is read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from gputwin.autoscaling.decisions.rules.hpa import Hpa
from gputwin.autoscaling.manifests.files import manifest_text
from gputwin.cli.main import main

POOLS = """
name: two kinds
autoscaler: {rule: karpenter, boot_sigma: 0, settings: {consolidate_after_s: 30}}
groups:
  - {name: small, count: 90, gpus: 2, gpu_model: T4, cpu_milli: 32000, memory_mib: 131072, price_per_hour: 2}
  - {name: large, count: 90, gpus: 8, gpu_model: T4, cpu_milli: 96000, memory_mib: 524288, price_per_hour: 8}
"""
TRACE = "synthetic:pai2020?jobs=600&seed=3"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "pools.yaml"
    path.write_text(POOLS, encoding="utf-8")
    return path


def _rows(folder: Path) -> object:
    return json.loads((folder / "pools.json").read_text(encoding="utf-8"))["rows"]


def _run(cluster: Path, folder: Path, *more: str) -> int:
    return main(
        ["autoscale", TRACE, "--cluster", str(cluster), "--quiet", "--rule", "karpenter", "-o", str(folder), *more]
    )


def test_a_node_pool_that_was_written_decides_alike_when_read_back(cluster: Path, tmp_path: Path) -> None:
    assert _run(cluster, tmp_path / "a") == 0
    written = tmp_path / "a" / "karpenter.yaml"
    pool = yaml.safe_load(written.read_text(encoding="utf-8"))
    assert pool["kind"] == "NodePool"
    assert pool["spec"]["disruption"]["consolidateAfter"] == "30s"
    # The settings come from the manifest, not from the file of the pools.
    cluster.write_text(POOLS.replace("consolidate_after_s: 30", "consolidate_after_s: 3600"), encoding="utf-8")
    assert _run(cluster, tmp_path / "b", "--policy", str(written)) == 0
    assert _rows(tmp_path / "b") == _rows(tmp_path / "a")
    assert _run(cluster, tmp_path / "c") == 0
    assert _rows(tmp_path / "c") != _rows(tmp_path / "a")


def test_spot_nodes_are_a_capacity_type_of_the_same_node_types(cluster: Path, tmp_path: Path) -> None:
    assert _run(cluster, tmp_path / "a", "--spot", "0.5", "--seeds", "1") == 0
    written = tmp_path / "a" / "karpenter.yaml"
    pool = yaml.safe_load(written.read_text(encoding="utf-8"))
    types, capacity = pool["spec"]["template"]["spec"]["requirements"]
    assert types["values"] == ["small", "large"]
    assert capacity["values"] == ["on-demand", "spot"]
    assert _run(cluster, tmp_path / "b", "--policy", str(written), "--spot", "0.5", "--seeds", "1") == 0
    assert _rows(tmp_path / "b") == _rows(tmp_path / "a")


@pytest.mark.parametrize(
    ("old", "new", "more", "message"),
    [
        ("kind: NodePool", "kind: Deployment", [], "NodePool"),
        ("- large", "- huge", [], "huge"),
        ("        - large\n", "", [], "large"),
        ("spot", "spot", ["--rule", "cluster-autoscaler"], "karpenter"),
        ("spot", "spot", ["--target", "p95_wait=10m"], "--target"),
        ("spot", "spot", ["--spot", "0.5"], "spot"),
    ],
)
def test_a_manifest_that_cannot_be_followed_is_one_line(
    cluster: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    more: list[str],
    message: str,
) -> None:
    assert _run(cluster, tmp_path / "a") == 0
    written = tmp_path / "a" / "karpenter.yaml"
    written.write_text(written.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    capsys.readouterr()
    assert _run(cluster, tmp_path / "b", "--policy", str(written), *more) == 2
    told = capsys.readouterr().err.strip()
    assert message in told
    assert told.count("\n") <= 1


def test_a_manifest_for_replicas_sizes_no_nodes(
    cluster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hpa.yaml"
    path.write_text(manifest_text(Hpa()), encoding="utf-8")
    assert _run(cluster, tmp_path / "a", "--policy", str(path)) == 2
    assert "it sizes no nodes" in capsys.readouterr().err
