"""Cutting a trace of requests by time says what becomes of those of unknown time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gputwin.cli.main import main

CUT = {"slice": ["--first", "50%"], "split": ["--at", "50%"]}


@pytest.mark.parametrize("verb", CUT)
def test_requests_without_a_time_are_counted(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    timed = [{"timestamp": 1000 * k, "input_length": 10, "output_length": 1, "hash_ids": [k]} for k in range(40)]
    lines = [json.dumps(row) for row in timed] + [json.dumps({**timed[0], "timestamp": None})] * 3
    raw = tmp_path / "conversation_trace.jsonl"
    raw.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main([verb, str(raw), *CUT[verb], "-o", str(tmp_path / "part"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    kept = data["requests"] if verb == "slice" else data["train"]["requests"] + data["test"]["requests"]
    assert data["requests_without_time"] == 3
    assert kept == (20 if verb == "slice" else 40)
    assert main([verb, str(raw), *CUT[verb], "-o", str(tmp_path / "again")]) == 0
    assert "3 requests have no time" in capsys.readouterr().out


@pytest.mark.parametrize(
    "asked",
    [["slice", "t", "--first", "50%", "-o", "./t"], ["merge", "t", "u", "-o", "u"], ["split", "p/train", "-o", "p"]],
)
def test_a_trace_is_not_written_over_itself(
    asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("t", "u", "p/train"):
        assert main(["generate", "philly", "--jobs", "50", "-o", folder, "-q"]) == 0
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    capsys.readouterr()
    assert main([*asked, "-q"]) == 2
    assert "is the trace itself and would be lost" in capsys.readouterr().err
    assert kept == {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
