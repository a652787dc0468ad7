"""Who waits for whom in a run, from its segments and causes."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from gputwin.cli.main import main
from gputwin.core.errors import UserError
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.simulate import simulate
from gputwin.simulation.waits_by_tenant import NOT_BY_HOLDERS, by_tenant
from gputwin.simulation.workload import workload_of
from gputwin.traces.dataset import Trace, TraceMeta
from gputwin.traces.schema import TASKS, conform

CLUSTER = Cluster("one", (NodeGroup("all", 1, gpus=4, gpu_model="A100"),))


def trace(rows: list[tuple[str, str, float, float, int]]) -> Trace:
    names = ["job_id", "tenant", "submit_time", "duration_seconds", "gpu_count"]
    tasks = pl.DataFrame(rows, schema=names, orient="row").with_columns(gpu_milli=pl.lit(1000))
    return Trace.from_frames({"tasks": conform(TASKS, tasks.lazy()).collect()}, TraceMeta("test"))


JOBS = [
    ("1", "a", 0.0, 3600.0, 3),
    ("2", "b", 0.0, 3600.0, 1),
    # Waits an hour for both, and then runs; the last waits two hours, the second for c.
    ("3", "c", 0.0, 3600.0, 4),
    ("4", "b", 0.0, 60.0, 2),
]


def test_by_hand() -> None:
    view = by_tenant(simulate(trace(JOBS), CLUSTER))
    found = {(w, h): round(hours, 6) for w, h, hours in view.blocking.iter_rows()}
    assert found == {("c", "a"): 3.0, ("c", "b"): 1.0, ("b", "a"): 1.5, ("b", "b"): 0.5, ("b", "c"): 2.0}
    rows = {r["tenant"]: r for r in view.tenants.to_dicts()}
    assert (rows["a"]["others_wait_gpu_hours"], rows["b"]["waits_for_others_gpu_hours"]) == (4.5, 3.5)
    assert rows["a"]["gpu_hours"] == 3.0
    assert rows["b"]["mean_wait_seconds"] == 3600.0


def test_what_is_charged_is_what_waited_but_for_causes_that_no_holder_has() -> None:
    result = simulate("synthetic:pai2020?jobs=2000&seed=3", "homogeneous:20x8", backfill="greedy")
    view = by_tenant(result)
    jobs = result.jobs.filter(pl.col("wait_seconds") > 0)
    excluded = pl.sum_horizontal(f"wait_{name}_seconds" for name in NOT_BY_HOLDERS)
    expected = jobs.select(((pl.col("wait_seconds") - excluded) * pl.col("gpu_milli")).sum()).item() / 1000 / 3600
    assert view.blocking["gpu_hours"].sum() == pytest.approx(expected, rel=1e-6)
    causes = view.causes["gpu_hours"].sum()
    waited = jobs.select((pl.col("wait_seconds") * pl.col("gpu_milli")).sum()).item() / 1000 / 3600
    assert causes == pytest.approx(waited, rel=1e-6)


def test_a_stopped_job_waits_between_its_segments_too() -> None:
    jobs = [("long", "a", 0.0, 1000.0, 4), ("short", "b", 100.0, 100.0, 4)]
    from gputwin.simulation.scenario import scenario_of
    from gputwin.simulation.simulate import simulate_scenario

    scenario = scenario_of({"trace": "made", "order": "srtf", "backfill": "greedy", "preemption": "remaining-time"})
    result = simulate_scenario(scenario, trace(jobs), CLUSTER)
    assert result.jobs["wait_seconds"].sum() > 0
    view = by_tenant(result)
    assert {(w, h) for w, h, _ in view.blocking.iter_rows()} == {("a", "b")}
    assert view.blocking["gpu_hours"].sum() == pytest.approx(4 * 100 / 3600)


def test_the_verbs_show_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace(JOBS).save(tmp_path / "trace")
    given = ["simulate", str(tmp_path / "trace"), "--cluster", "homogeneous:1x4", "-o", str(tmp_path / "run")]
    assert main([*given, "--backfill", "strict"]) == 0
    assert "a holds most of what others wait for" in capsys.readouterr().out
    assert main(["explain", str(tmp_path / "run"), "--tenant", "b", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert {(r["waiting"], r["holding"]) for r in data["blocking"]} == {("b", "a"), ("b", "b"), ("b", "c"), ("c", "b")}
    assert main(["explain", str(tmp_path / "run")]) == 0
    assert "Who waits while whose jobs hold GPUs" in " ".join(capsys.readouterr().out.split())
    assert main(["explain", str(tmp_path / "run"), "--tenant", "nobody"]) == 2
    assert "no tenant 'nobody'" in capsys.readouterr().err


def test_a_tenant_that_is_not_there_is_refused() -> None:
    with pytest.raises(UserError, match="it has"):
        by_tenant(simulate(trace(JOBS), CLUSTER)).of("x")


@pytest.mark.parametrize(("owners", "named"), [(("a", None), {"a", "unknown"}), ((None, None), {"everyone"})])
def test_jobs_without_a_tenant_are_everyones_only_where_no_job_has_one(owners: tuple, named: set[str]) -> None:
    rows = [(str(i), owner, 0.0, 60.0, 1) for i, owner in enumerate(owners)]
    assert set(workload_of(trace(rows), ("A100",)).tenants) == named
