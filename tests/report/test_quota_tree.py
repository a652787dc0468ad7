"""The tree of quotas adds up: what is borrowed was lent, and groups are the sums of their tenants."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from gputwin.cli.main import main
from gputwin.report.page import TablePart
from gputwin.report.sections.quota_table import Held, quotas_of
from gputwin.report.sections.quota_tree import quota_parts, quota_tree
from gputwin.simulation.result import SimulationResult


@pytest.fixture
def run() -> Any:
    """Ten seconds: a holds 6 of its 4 GPUs in the first five; b holds 1 of its 4, c nothing of its 2 all the time."""
    tenants = {
        "a": SimpleNamespace(guaranteed=None, gpus=4.0, group="research/nlp"),
        "b": SimpleNamespace(guaranteed=4.0, gpus=8.0, group="research"),
        "c": SimpleNamespace(guaranteed=None, gpus=2.0, group=""),
        "d": SimpleNamespace(guaranteed=None, gpus=None, group=""),
    }
    return SimpleNamespace(
        manifest={"scenario": {}, "tenants_are": "tenant"},
        scenario=SimpleNamespace(fairness=SimpleNamespace(tenants=tenants)),
        jobs=pl.DataFrame({"tenant": ["a", "b", "d"], "submit_time": [0.0] * 3, "end_time": [5.0, 10.0, 10.0]}),
        segments=pl.DataFrame(
            {"job": [0, 1, 2], "start_time": [0.0, 0.0, 0.0], "end_time": [5.0, 10.0, 10.0]},
            schema_overrides={"job": pl.UInt32},
        ),
        placements=pl.DataFrame(
            {"segment": [0, 0, 1, 2], "gpu_count": [4, 2, 1, 8], "gpu_milli": [1000] * 4},
            schema_overrides={"segment": pl.UInt32},
        ),
    )


@pytest.fixture
def held() -> Held:
    """Return what a and b hold in that run."""
    begins, ends, gpus = (np.array(x, dtype=float) for x in ([0, 0], [5, 10], [6, 1]))
    return Held.of(["a", "b", "c"], np.array([0, 1]), begins, ends, gpus)


def test_what_is_borrowed_was_lent_by_those_who_left_quota_unused(held: Held) -> None:
    found = quotas_of(held, {"a": 4.0, "b": 4.0, "c": 2.0}, (0.0, 10.0))
    assert (found["a"].used, found["a"].borrowed, found["a"].most) == (3.0, 1.0, 6.0)
    # In the first half b leaves 3 unused and c 2: together they lend 2, in that proportion.
    assert found["b"].lent == pytest.approx(0.5 * 2 * 3 / 5)
    assert found["c"].lent == pytest.approx(0.5 * 2 * 2 / 5)
    assert sum(q.borrowed for q in found.values()) == pytest.approx(sum(q.lent for q in found.values()))


def test_nobody_lends_more_than_its_limit(held: Held) -> None:
    found = quotas_of(held, {"a": 4.0, "b": 4.0, "c": 2.0}, (0.0, 10.0), {"b": 0.0})
    assert found["b"].lent == 0.0
    assert found["c"].lent == pytest.approx(0.5 * 2)


def test_groups_are_the_sums_of_their_tenants_and_stand_above_them(run: Any) -> None:
    tree = quota_tree(run)
    assert tree is not None
    names = [row[0] for row in tree.rows]
    assert names == ["tenants with a quota", "· c", "· research", "· · b", "· · nlp", "· · · a"]
    assert all(name.isprintable() for name in names)  # What is not is shown as �.
    nominal = {row[0].strip("· "): row[1] for row in tree.rows}
    assert (nominal["tenants with a quota"], nominal["research"], nominal["nlp"]) == ("10", "8", "4")


def test_a_group_holds_at_most_what_its_tenants_held_at_one_time(run: Any) -> None:
    run.segments = pl.DataFrame(
        {"job": [0, 1, 2], "start_time": [0.0, 5.0, 0.0], "end_time": [5.0, 10.0, 10.0]},
        schema_overrides={"job": pl.UInt32},
    )
    tree = quota_tree(run)
    assert tree is not None
    most = {row[0].strip("· "): row[-1] for row in tree.rows}
    # a holds 6 and then b holds 1: never 7.
    assert most == {"tenants with a quota": "6", "c": "0", "research": "6", "b": "1", "nlp": "6", "a": "6"}


def test_a_run_without_quotas_has_no_tree(run: Any) -> None:
    run.scenario.fairness.tenants = {}
    assert quota_tree(run) is None
    run.scenario.fairness = None
    assert quota_tree(run) is None


def test_the_report_of_a_run_with_guarantees_shows_what_each_tenant_held_of_them(tmp_path: Path) -> None:
    given = ["synthetic:philly?jobs=300", "--quiet"]
    run, page = str(tmp_path / "run"), tmp_path / "run.html"
    assert main(["simulate", *given, "--cluster", "homogeneous:4x8", "--guarantee", "vc-00=8", "-o", run]) == 0
    assert main(["report", *given, "--run", run, "-o", str(page)]) == 0
    assert "Quotas and cohorts" in page.read_text(encoding="utf-8")


QUEUES = """
{kind: Cohort, metadata: {name: all}, spec: {resourceGroups: [{flavors: [
  {name: default, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]}]}}
---
{kind: Cohort, metadata: {name: research}, spec: {parentName: all}}
---
{kind: ClusterQueue, metadata: {name: llm}, spec: {cohort: research, resourceGroups: [{flavors: [
  {name: default, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]}]}}
---
{kind: ClusterQueue, metadata: {name: rest}, spec: {cohort: all, resourceGroups: [{flavors: [
  {name: default, resources: [{name: nvidia.com/gpu, nominalQuota: 24}]}]}]}}
---
{kind: LocalQueue, metadata: {name: q, namespace: vc-00}, spec: {clusterQueue: llm}}
"""


def test_a_run_with_queues_of_kueues_shows_what_each_held_of_its_quota(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, run, page = ["synthetic:philly?jobs=300", "--quiet"], str(tmp_path / "run"), tmp_path / "run.html"
    (tmp_path / "queues.yaml").write_text(QUEUES, encoding="utf-8")
    rules = ["--fairness", "kueue-classical", "--queues", str(tmp_path / "queues.yaml"), "--default-queue", "rest"]
    assert main(["simulate", *given, "--cluster", "homogeneous:4x8", *rules, "--full", "-o", run]) == 0
    assert "Quotas and cohorts" in capsys.readouterr().out
    (tree,) = quota_parts(SimulationResult.open(Path(run)))
    assert isinstance(tree, TablePart)
    nominal, used, _, borrowed, lent, _ = zip(*(row[1:] for row in tree.rows), strict=True)
    assert [row[0] for row in tree.rows] == ["all", "· all: own quota", "· rest", "· research", "· · llm"]
    assert nominal == ("32", "4", "24", "4", "4")
    assert float(used[0]) == pytest.approx(sum(map(float, (used[2], used[4]))), abs=0.11)
    assert float(borrowed[0]) == pytest.approx(float(lent[0]), abs=0.11)
    assert float(borrowed[4]) > 0
    assert main(["report", *given, "--run", run, "-o", str(page)]) == 0
    assert "Quotas and cohorts" in page.read_text(encoding="utf-8")


def test_the_report_of_a_run_whose_file_of_queues_is_gone_says_so(tmp_path: Path) -> None:
    given, run, page = ["synthetic:philly?jobs=300", "--quiet"], str(tmp_path / "run"), tmp_path / "run.html"
    (tmp_path / "queues.yaml").write_text(QUEUES, encoding="utf-8")
    rules = ["--fairness", "kueue-classical", "--queues", str(tmp_path / "queues.yaml"), "--default-queue", "rest"]
    assert main(["simulate", *given, "--cluster", "homogeneous:4x8", *rules, "-o", run]) == 0
    (tmp_path / "queues.yaml").unlink()
    assert main(["report", *given, "--run", run, "-o", str(page)]) == 0
    assert "There is no table of quotas: " in page.read_text(encoding="utf-8")
