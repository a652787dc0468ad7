"""`-o FILE` and `--format` work on every verb: the ending or the name says what is written."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from gputwin.cli.main import main
from gputwin.cli.output_file import MARKERS
from tests.cli.test_help import VERBS, command_of

TRACE = "synthetic:pai2020?jobs=200"


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_takes_an_output_and_a_format(verb: tuple[str, ...]) -> None:
    named = {option for parameter in command_of(verb).params for option in parameter.opts}
    assert {"-o", "--output", "--format", "--as", "--force"} <= named


@pytest.mark.parametrize("verb", [["describe", TRACE], ["check", TRACE, "--cluster", "homogeneous:4x8"], ["policies"]])
def test_the_ending_says_what_is_written(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*verb, "-q", "--json"]) == 0
    wanted = json.loads(capsys.readouterr().out)
    for ending in ("json", "csv", "parquet", "txt"):
        assert main([*verb, "-q", "-o", f"out.{ending}"]) == 0
        assert capsys.readouterr().out == f"out.{ending}\n"
    assert json.loads(Path("out.json").read_text()) == wanted
    assert pl.read_csv("out.csv").columns == pl.read_parquet("out.parquet").columns
    assert "──" in Path("out.txt").read_text()


def test_a_report_of_a_verb_that_writes_a_folder_can_be_one_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "analysis.html"
    assert main(["analyze", TRACE, "-q", "-o", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.endswith(f"{path}\n")
    assert "gputwin-" not in out
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_there_is_kept_unless_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.csv"
    path.write_text("mine")
    assert main(["policies", "-o", str(path)]) == 2
    assert "--force" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert main(["policies", "-o", str(path), "--force"]) == 0
    assert path.read_text() != "mine"


@pytest.mark.parametrize("verb", [["eta", TRACE, "--cluster", "homogeneous:4x8"], ["predict", "model", TRACE]])
def test_verbs_that_write_a_table_of_their_own_keep_it_too(
    verb: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("mine")
    assert main([*verb, "-o", str(path), "--quiet"]) == 2
    assert "--force" in capsys.readouterr().err
    assert path.read_text() == "mine"


@pytest.mark.parametrize("verb", sorted(MARKERS))
def test_a_folder_of_somebody_else_is_kept_before_any_work_is_done(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "cat.jpg").write_text("mine")
    given = ["traces", "fetch"] if verb == "fetch" else [verb]
    named = [] if verb in ("demo", "mig") else ["nothing-of-that-name"]
    needed = {"mig": ["--gpu", "A100-40GB", "--demand", "1g.5gb=3"], "plan": ["--target", "p95_wait=10m"]}
    assert main([*given, *named, *needed.get(verb, []), "-o", str(folder), "-q"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "refusing to overwrite" in said
    assert "--force" in said
    assert [path.name for path in tmp_path.rglob("*")] == ["photos", "cat.jpg"]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_that_writes_a_folder_says_how_it_knows_its_own(verb: tuple[str, ...]) -> None:
    (output,) = (p for p in command_of(verb).params if "-o" in p.opts)
    writes_a_file = str(output.metavar or "").startswith("FILE")
    assert (verb[-1] in MARKERS) != writes_a_file


def test_a_verb_writes_again_into_a_folder_of_its_own(tmp_path: Path) -> None:
    for _ in range(2):
        assert main(["split", TRACE, "-o", str(tmp_path / "parts"), "-q"]) == 0
        assert main(["generate", "philly", "--jobs", "10", "-o", str(tmp_path / "trace"), "-q"]) == 0


def test_what_is_a_folder_is_not_called_like_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("trace.csv", "trace.jsonl", "trace.tar.gz"):
        assert main(["generate", "philly", "--jobs", "10", "-o", str(tmp_path / name)]) == 2
        assert "name a folder" in capsys.readouterr().err
    assert main(["policies", "-o", str(tmp_path / "list.xls")]) == 2
    assert "choose one of these endings" in capsys.readouterr().err


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    assert main(["describe", str(tmp_path / "missing.csv"), "-o", str(tmp_path / "out.json")]) == 2
    assert list(tmp_path.iterdir()) == []


def test_format_names_the_form_of_the_output_or_the_format_of_raw_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["describe", TRACE, "--format", "json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["jobs"] == 200
    assert main(["policies", "--format", "csv"]) == 0
    assert "," in capsys.readouterr().out.splitlines()[0]
    assert main(["describe", str(tmp_path), "--format", "slurm"]) == 2
