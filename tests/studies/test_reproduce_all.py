"""`gputwin reproduce all`: what has its files is shown, what has not is named with what it needs."""

from __future__ import annotations

import json
import re

import pytest

from gputwin.cli.main import main
from gputwin.cli.reproduce_all import _COMMANDS
from gputwin.studies.reproduce.kept import Kept
from gputwin.studies.reproduce.sources import RESULTS, located


def test_every_result_has_its_command():
    assert {result.name for result in RESULTS} == set(_COMMANDS)


def test_files_are_found_by_name_packed_or_not_and_folders_by_what_they_hold(tmp_path):
    fgd = next(result for result in RESULTS if result.name == "fgd2023")
    tiresias = next(result for result in RESULTS if result.name == "tiresias60")
    assert located(fgd, [tmp_path]) == ({}, ["openb_node_list_gpu_node.csv", "openb_pod_list_default.csv"])
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    for name in ("openb_node_list_gpu_node.csv", "openb_pod_list_default.csv.gz", "60_job.csv"):
        (inside / name).touch()
    files, missing = located(fgd, [tmp_path / "none", tmp_path])
    assert missing == []
    assert files == {
        "nodes": inside / "openb_node_list_gpu_node.csv",
        "pods": inside / "openb_pod_list_default.csv.gz",
    }
    assert located(tiresias, [tmp_path]) == ({"folder": inside}, [])


def test_what_is_not_there_is_named_with_its_remedy(tmp_path, capsys):
    asked = ["--only", "fgd2023", "--only", "dlrm2025-forecast"]
    assert main(["reproduce", "all", "--data", str(tmp_path), *asked, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["found"] == {}
    assert [row["name"] for row in data["results"]] == ["fgd2023", "dlrm2025-forecast"]
    assert "needs openb_node_list_gpu_node.csv, openb_pod_list_default.csv" in data["results"][0]["status"]
    assert "gputwin traces fetch openb2023" in data["results"][0]["status"]


def test_mistakes_are_one_line(tmp_path, capsys):
    assert main(["reproduce", "all", "--only", "fgd"]) == 2
    assert "unknown result 'fgd'; known: fgd2023" in capsys.readouterr().err
    assert main(["reproduce", "all", "--data", str(tmp_path / "none")]) == 2
    assert "is no folder" in capsys.readouterr().err


def test_a_result_whose_files_are_there_is_shown_beside_ours(reference, capsys):
    asked = ["reproduce", "all", "--data", str(reference), "--only", "tiresias60"]
    assert main([*asked, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["results"][0]["status"] == "shown"
    assert data["found"]["tiresias60"]
    assert main(asked) == 0
    shown = capsys.readouterr().out
    assert "published" in shown
    assert "Published results" in shown
    assert re.search(r"^tiresias60 +fifo: mean completion +200\.82 s +200\.82 s$", shown, re.MULTILINE)


def test_what_was_kept_is_shown_and_not_made_again(reference, tmp_path, capsys, monkeypatch):
    asked = ["reproduce", "all", "--data", str(reference), "--only", "tiresias60", "--keep", str(tmp_path / "kept")]
    assert main(asked) == 0
    first = capsys.readouterr().out
    assert "1 of 1: tiresias60" in first
    assert re.search(r"^took \d", first, re.MULTILINE)
    monkeypatch.setitem(_COMMANDS, "tiresias60", lambda **options: pytest.fail("made again"))
    assert main(asked) == 0
    again = capsys.readouterr().out
    assert "kept from before" in again
    assert re.sub("(?m)^(took .*|kept from before)$", "", again) == re.sub("(?m)^took .*$", "", first)


def test_a_result_made_with_other_options_is_not_taken(tmp_path):
    kept = Kept(tmp_path)
    kept.keep("a", {"jobs": 10}, "ten")
    assert kept.find("a", {"jobs": 10}) == "ten"
    assert kept.find("a", {"jobs": 20}) is None
    assert kept.find("b", {"jobs": 10}) is None
    (tmp_path / "a.json").write_text("{ broken")
    assert kept.find("a", {"jobs": 10}) is None
