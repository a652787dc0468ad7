"""`gputwin profile`, `gputwin predict`, and predictions handed to `gputwin simulate`."""

from __future__ import annotations

import json
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


def test_profile_writes_a_model_and_a_report(profiled: Path) -> None:
    assert (profiled / "model" / "model.json").is_file()
    page = (profiled / "report.html").read_text(encoding="utf-8")
    for title in ("Job classes", "Durations", "What predictions are worth"):
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
    assert json.loads(capsys.readouterr().out)["warning"] is None


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
