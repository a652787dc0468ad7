"""`gputwin profile`, `gputwin predict`, and predictions handed to `gputwin simulate`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from gputwin.cli.main import main

TRACE = "synthetic:pai2020?jobs=600"


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("profile") / "out"
    arguments = [
        "profile",
        TRACE,
        "--model",
        "forest",
        "--model",
        "median",
        "--cluster",
        "homogeneous:2x8",
        "-o",
        str(folder),
    ]
    assert main([*arguments, "--quiet", "--json"]) == 0
    return folder


def test_a_model_without_spread_has_no_interval_to_hold(capsys: pytest.CaptureFixture[str]) -> None:
    """The mean of two jobs comes without an interval; the share "inside" it would be a riddle."""
    assert main(["profile", TRACE, "--model", "last-two", "--model", "median", "--no-value", "--quiet"]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert "–" in rows["last-two"]
    assert "–" not in rows["median"]


def test_profile_writes_a_model_and_a_report(profiled: Path) -> None:
    assert (profiled / "model" / "model.json").is_file()
    page = (profiled / "report.html").read_text(encoding="utf-8")
    for title in ("Profile: ", "Job classes", "Durations", "The value of predictions"):
        assert title in page


def test_predictions_of_a_saved_model_schedule_a_trace(
    profiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "predictions.parquet"
    assert main(["predict", str(profiled / "model"), TRACE, "-o", str(file), "--json", "--quiet"]) == 0
    said = json.loads(capsys.readouterr().out)
    frame = pl.read_parquet(file)
    assert said["tasks"] == frame.height
    assert (frame["low_seconds"] <= frame["high_seconds"]).all()
    simulate = ["simulate", TRACE, "--cluster", "pai2020", "--order", "sjf", "--json", "--quiet", "--predict"]
    results = []
    for source in (file, profiled / "model"):
        assert main([*simulate, str(source)]) == 0
        results.append(json.loads(capsys.readouterr().out))
    assert results[0]["jobs"] > 0
    assert results[0]["wait_seconds"] == results[1]["wait_seconds"]


def test_predictions_in_hindsight_are_said_to_be(profiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predict = ["predict", str(profiled / "model")]
    assert main([*predict, TRACE, "--quiet"]) == 0
    assert "learned from this very trace" in capsys.readouterr().err
    assert main([*predict, TRACE.replace("jobs=", "seed=9&jobs="), "--json", "--quiet"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert len(notes) == 1
    assert "assumed" in notes[0]


def test_reasons_are_given_for_a_job(profiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.parquet"
    main(["predict", str(profiled / "model"), TRACE, "-o", str(file), "--json", "--quiet"])
    capsys.readouterr()
    job = pl.read_parquet(file)["job_id"][0]
    assert main(["predict", str(profiled / "model"), TRACE, "--explain", job, "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["reasons"]
    assert main(["predict", str(profiled / "model"), TRACE, "--explain", "no such job", "--quiet"]) == 2


def test_a_folder_without_a_model_is_a_mistake_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(tmp_path), TRACE, "--quiet"]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"no parquet")
    assert main(["simulate", TRACE, "--cluster", "pai2020", "--predict", str(bad), "--quiet"]) == 2


@pytest.mark.parametrize(
    ("name", "read"), [("p.csv", pl.read_csv), ("p.json", pl.read_json), ("p.jsonl", pl.read_ndjson)]
)
def test_predictions_are_written_as_the_file_is_named_and_can_be_scheduled_by(
    profiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, read: Callable[[Path], pl.DataFrame]
) -> None:
    predict = ["predict", str(profiled / "model"), TRACE, "--json", "--quiet", "-o"]
    assert main([*predict, str(tmp_path / "p.parquet")]) == 0
    assert main([*predict, str(tmp_path / name)]) == 0
    capsys.readouterr()
    assert read(tmp_path / name)["mean_seconds"].to_list() == pytest.approx(
        pl.read_parquet(tmp_path / "p.parquet")["mean_seconds"].to_list()
    )
    waits = []
    for file in ("p.parquet", name):
        simulate = ["simulate", TRACE, "--cluster", "pai2020", "--order", "sjf", "--predict", str(tmp_path / file)]
        assert main([*simulate, "--json", "--quiet"]) == 0
        waits.append(json.loads(capsys.readouterr().out)["wait_seconds"])
    assert waits[0] == waits[1]


def test_a_file_of_unknown_format_is_a_mistake_in_one_line(
    profiled: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(profiled / "model"), TRACE, "--quiet", "-o", str(tmp_path / "p.xlsx")]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert ".csv" in said[0]
    assert not (tmp_path / "p.xlsx").exists()


def test_requested_times_that_a_trace_does_not_tell_are_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    simulate = ["simulate", TRACE, "--cluster", "pai2020", "--order", "sjf", "--quiet", "--predict", "requested"]
    assert main(simulate) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert "no requested times" in said[0]
