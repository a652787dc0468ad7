"""Learn from a trace's first part and predict the rest, as a user does: by commands in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gputwin.cli.main import main
from gputwin.profiling.evaluation.scores import LEVELS, Scores, score
from gputwin.profiling.jobs import History
from gputwin.profiling.model import fit
from gputwin.profiling.predict import BASELINE, HERE
from gputwin.traces.locate import open_trace
from tests.cli.process import gputwin

GENERATED = "synthetic:philly?jobs=3000&seed=3"


def asked(folder: Path, *arguments: str) -> dict[str, Any]:
    """Return the JSON a command prints."""
    done = gputwin([*arguments, "--json", "--quiet"], folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def by_commands(trace: str, model: str, folder: Path) -> tuple[dict[str, Any], pl.DataFrame]:
    # Parts need no process of their own: what a model keeps must reach another one.
    assert main(["slice", trace, "--first", "70%", "-o", str(folder / "earlier"), "--quiet"]) == 0
    assert main(["slice", trace, "--last", "30%", "-o", str(folder / "later"), "--quiet"]) == 0
    asked(folder, "profile", "earlier", "--model", model, "--no-value", "-o", "profile")
    found = asked(folder, "predict", "profile/model", "later", "-o", "predictions.csv")
    return found, pl.read_csv(folder / "predictions.csv")


def in_process(trace: str, model: str) -> Scores:
    """Return the scores of the model fitted to what was known after 70 % of the jobs and told of ends as they come."""
    history = History.of(open_trace(trace))
    first = round(0.7 * history.size)
    cut = float(history.jobs.arrival[first])
    rest = history.take(history.jobs.arrival >= cut)
    told = fit(model, history.as_of(cut)).observing(rest).forecast(rest.jobs, LEVELS)
    ended = rest.outcomes.finished
    return score(rest.outcomes.duration[ended], told.seconds[ended], told.quantiles[ended])


def check(found: dict[str, Any], frame: pl.DataFrame, method: Scores) -> None:
    here, baseline = found["scores"][HERE], found["scores"][BASELINE]
    actual, predicted = frame["actual_seconds"].to_numpy(), frame["predicted_seconds"].to_numpy()
    known = np.isfinite(actual.astype(float))
    assert here["jobs"] == known.sum()
    assert here["mae_seconds"] == pytest.approx(np.abs(actual - predicted)[known].mean())
    assert here["mae_seconds"] <= method.mae_seconds * 1.005
    assert here["within_2x"] >= method.within_2x - 0.002
    assert here["within_2x"] > baseline["within_2x"]
    assert found["notes"] == []


def test_on_thetagpu_the_command_predicts_as_well_as_the_method(real_data: Path, tmp_path: Path) -> None:
    trace = str(real_data / "thetagpu")
    found, frame = by_commands(trace, "online", tmp_path)
    check(found, frame, in_process(trace, "online"))
    assert found["scores"][HERE]["mae_seconds"] < 0.8 * found["scores"][BASELINE]["mae_seconds"]
    assert 0.74 <= found["scores"][HERE]["coverage"] <= 0.86


def test_on_a_generated_trace_the_command_predicts_as_well_as_the_method(tmp_path: Path) -> None:
    found, frame = by_commands(GENERATED, "online", tmp_path)
    check(found, frame, in_process(GENERATED, "online"))


def test_two_files_that_each_count_from_their_own_zero_share_the_wall_clock(real_data: Path, tmp_path: Path) -> None:
    """Two exports of one job log, each read on its own."""
    log = pl.read_csv(real_data / "thetagpu" / "thetagpu_jobs.csv.gz", infer_schema=False).sort(
        pl.col("submit_time").cast(pl.Float64), maintain_order=True
    )
    log.head(3000).write_csv(tmp_path / "first.csv")
    log.slice(3000, 1500).write_csv(tmp_path / "second.csv")
    asked(tmp_path, "profile", "first.csv", "--model", "online", "--no-value", "-o", "profile")
    found = asked(tmp_path, "predict", "profile/model", "second.csv", "-o", "predictions.parquet")
    here, baseline = found["scores"][HERE], found["scores"][BASELINE]
    assert here["mae_seconds"] < 0.9 * baseline["mae_seconds"]
    assert here["within_2x"] > baseline["within_2x"] + 0.1
    assert pl.read_parquet(tmp_path / "predictions.parquet")["predicted_seconds"].n_unique() > 50
    assert not any("assumed" in note for note in found["notes"])
