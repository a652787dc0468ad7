"""The docs say what the code does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from docs.generate import HERE, PAGES

from gputwin.cli.main import main
from gputwin.simulation.cluster import open_cluster
from gputwin.simulation.policy import KINDS
from gputwin.simulation.rules import check_rules
from gputwin.simulation.scenario import Scenario, read_scenario
from gputwin.studies.study import Study
from gputwin.traces.ingest import ingest

REPOSITORY = Path(__file__).resolve().parent.parent


def code_blocks(page: str, language: str) -> list[str]:
    text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("name", sorted(PAGES))
def test_generated_pages_are_up_to_date(name):
    assert (HERE / name).read_text(encoding="utf-8") == PAGES[name](), "run: make docs"


def test_the_cluster_in_the_docs_is_a_cluster(tmp_path):
    (block,) = code_blocks("clusters.md", "yaml")
    path = tmp_path / "cluster.yaml"
    path.write_text(block)
    cluster = open_cluster(str(path))
    assert cluster.node_count == sum(g["count"] for g in yaml.safe_load(block)["groups"])
    assert cluster.gpu_count == 40 * 8 + 100 * 2


@pytest.mark.parametrize(("number", "example", "kind"), [(0, "coldest", "placement"), (1, "window", "backfill")])
def test_the_policies_in_the_docs_run_by_name_from_the_command_line(tmp_path, capsys, number, example, kind):
    block = code_blocks("own-policy.md", "python")[number]
    # The examples stand in examples/ too, so that they can be copied from there.
    assert block == (REPOSITORY / "examples" / f"{example}.py").read_text(encoding="utf-8")
    name = f"docs_{tmp_path.name.replace('-', '_')}"
    path = tmp_path / f"{name}.py"
    path.write_text(block.replace(f'"{example}"', f'"{name}"'))
    given = ["--cluster", "pai2020", f"--{kind}", name, "--policies", str(path), "--json"]
    assert main(["simulate", "synthetic:pai2020?jobs=200", *given]) == 0
    assert f'"{kind}": "{name}"' in capsys.readouterr().out
    KINDS[kind].discard(name)


def test_a_misspelt_policy_is_one_line_with_a_suggestion(capsys):
    assert main(["simulate", "synthetic:pai2020?jobs=50", "--cluster", "pai2020", "--placement", "best-fti"]) == 2
    assert "did you mean 'best-fit'" in capsys.readouterr().err


def test_the_scenario_in_the_docs_is_one(tmp_path):
    (block,) = code_blocks("scenario.md", "yaml")
    path = tmp_path / "scenario.yaml"
    path.write_text(block, encoding="utf-8")
    scenario = read_scenario(path)
    check_rules(scenario.scheduler, scenario.changes)
    table = (REPOSITORY / "docs" / "scenario.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in table for name in Scenario.model_fields)


def test_the_mapping_in_the_docs_reads_a_log(tmp_path):
    (block,) = code_blocks("own-log.md", "yaml")
    (tmp_path / "map.yaml").write_text(block, encoding="utf-8")
    columns = "id,team,submitted_at,began,took,gpus,mem\n"
    (tmp_path / "jobs.csv").write_text(columns + "1,a,2024-03-01 11:00:00,1709287500000,2.5h,8,64\n", encoding="utf-8")
    tasks = ingest([tmp_path / "jobs.csv", tmp_path / "map.yaml"]).tasks
    assert tasks.select("start_time", "duration_seconds", "gpu_count", "memory_mib").row(0) == (300.0, 9000.0, 8, 65536)


def test_the_study_in_the_docs_runs_as_its_commands_say(tmp_path, monkeypatch, capsys):
    (block,) = code_blocks("studies.md", "yaml")
    (script,) = code_blocks("studies.md", "python")
    monkeypatch.chdir(tmp_path)
    Path("schedulers.yaml").write_text(block, encoding="utf-8")
    page = (REPOSITORY / "docs" / "studies.md").read_text(encoding="utf-8")
    commands = [line.split()[1:] for line in page.splitlines() if line.startswith("gputwin ")]
    assert [c[0] for c in commands] == ["study", "runs", "runs", "runs"]
    for command in commands:
        assert main([*command, "--json"]) == 0
    study, found, compared, pruned = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert study["made"] == 12
    assert len(found["runs"]) == 6
    assert [row["mean_wait_seconds"] for row in compared["scenarios"]] == [
        row["mean_wait_seconds"] for row in study["scenarios"]
    ]
    assert pruned["removed"] == []
    exec(compile(script, "studies.md", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 6
    assert all(f"`{name}`" in page for name in Study.model_fields)
