"""profile(): the model it keeps, what it predicts of another trace, and how a notebook shows it."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pytest

import gputwin
from gputwin.core.errors import UserError
from gputwin.profiling.jobs import History
from gputwin.profiling.profile import Profile, profile
from gputwin.profiling.store import load
from gputwin.traces.dataset import Trace, TraceMeta
from tests.profiling.workloads import tasks

DOCS = Path(__file__).resolve().parents[2] / "docs" / "profiling.md"


def trace_of(frame: pl.DataFrame) -> Trace:
    return Trace.from_frames({"tasks": frame}, TraceMeta("test"))


@pytest.fixture(scope="module")
def found() -> Profile:
    return profile(trace_of(tasks(300)), models=("median", "forest"))


def test_the_model_with_the_least_pinball_loss_is_kept(found: Profile) -> None:
    losses = {e.model: e.scores.pinball_seconds for e in found.evaluations}
    assert losses["forest"] < losses["median"]
    assert found.chosen == "forest"


def test_what_cannot_be_tested_is_a_mistake_of_the_user() -> None:
    with pytest.raises(UserError, match="unknown duration model"):
        profile(trace_of(tasks(60)), models=("nosuch",))
    at_once = tasks(5).with_columns(pl.lit(0.0).alias("submit_time"), pl.lit(0.0).alias("start_time"))
    at_once = at_once.with_columns(end_time=pl.col("duration_seconds"))
    with pytest.raises(UserError, match="too few to test"):
        profile(trace_of(at_once), models=("median",))


def test_classes_ran_as_their_members_did(found: Profile) -> None:
    ran = History.of_tasks(tasks(300)).outcomes.duration
    for entry in found.classes.classes:
        members = ran[found.classes.labels == entry.number]
        low, middle, high = found.durations_by_class()[entry.name] or (0.0, 0.0, 0.0)
        assert low <= middle <= high
        assert (members <= middle).mean() == pytest.approx(0.5, abs=0.1)
        assert (members <= high).mean() == pytest.approx(0.9, abs=0.1)


def test_what_was_saved_predicts_the_same(found: Profile, tmp_path: Path) -> None:
    later = tasks(40, seed=3)
    from gputwin.profiling.predict import predict_trace

    again = predict_trace(load(found.save(tmp_path / "model")), trace_of(later)).frame
    assert again.equals(found.predict(trace_of(later)))


def test_a_running_task_is_predicted_given_how_long_it_ran(found: Profile) -> None:
    later = tasks(40, seed=3)
    running = pl.int_range(pl.len()) < 10
    later = later.with_columns(
        running.alias("is_running"),
        *(pl.when(~running).then(pl.col(c)).alias(c) for c in ("end_time", "duration_seconds")),
    )
    told = found.predict(trace_of(later))
    begun = later.filter(pl.col("is_running"))["start_time"]
    expected = later["end_time"].max() - begun  # type: ignore[operator]
    now = told.filter(pl.col("ran_seconds") > 0)
    assert now["ran_seconds"].to_list() == pytest.approx(expected.to_list())
    assert (now["predicted_seconds"] >= now["ran_seconds"]).all()
    assert (told.tail(30)["ran_seconds"] == 0).all()


def test_the_notebook_shows_text_of_the_trace_as_text() -> None:
    hostile = tasks(120).with_columns(pl.lit("<script>alert(1)</script>").alias("role"))
    shown = profile(trace_of(hostile), models=("median",))._repr_html_()
    assert "<script" not in shown
    assert "&lt;script" in shown


def test_the_docs_example_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    names = {
        "trace": gputwin.open_trace("synthetic:pai2020?jobs=300"),
        "later": gputwin.open_trace("synthetic:pai2020?jobs=100&seed=1"),
        "cluster": "homogeneous:20x8",
    }
    exec(block, names)
    assert names["result"].summary["jobs"] > 0  # type: ignore[attr-defined]
    assert names["reasons"].height > 0  # type: ignore[attr-defined]
