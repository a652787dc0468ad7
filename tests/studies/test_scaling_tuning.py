"""Tuning of scaling rules: a cool-down that suits the load is found and adopted, and mistakes are told."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

from gputwin.cli.main import main
from gputwin.core.errors import UserError
from gputwin.optimization.tuning.study_file import read_file
from gputwin.studies.scaling_tuning import Serving, made_rule, name_of, scaling_runs
from gputwin.traces.dataset import Trace, TraceMeta

WINDOWS = 10


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a trace of requests of 20 s each: a burst of two minutes, then eight quiet ones, in each of ten windows."""
    rng = np.random.default_rng(3)
    times = []
    for window in range(WINDOWS):
        begin = window * 600.0
        times += [*(begin + rng.uniform(0, 120, 60)), *(begin + rng.uniform(120, 600, 12))]
    frame = pl.DataFrame({"submit_time": sorted(times), "duration_seconds": [20.0] * len(times)})
    folder = tmp_path_factory.mktemp("requests") / "trace"
    Trace.from_frames({"requests": frame}, TraceMeta("made")).save(folder)
    return str(folder)


def study(trace: str, **more: object) -> dict:
    return {
        "trace": trace,
        "autoscaler": {"sla": "60s", "boot": "30s", "slots": 1, "maximum": 40, "penalty": 0.0001},
        "windows": 5,
        "held_out": 5,
        "present": {"rule": "hpa", "in_flight": 1, "downscale_window_s": 3600.0},
        "configurations": {"rule": ["hpa"], "in_flight": [1, 2], "downscale_window_s": [0.0, 600.0, 3600.0]},
        "objectives": {"cost": 1},
        **more,
    }


def test_a_cool_down_that_suits_bursts_is_found_and_adopted(
    requests: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(study(requests, budget=12)))
    ask = ["tune", str(path), "-o", str(tmp_path / "tuned"), "--json"]
    assert main(ask) == 0
    found = json.loads(capsys.readouterr().out)
    runs = scaling_runs(path, read_file(path))
    means = {name_of(c): np.mean([runs.loss(c, w) for w in range(5)]) for c in runs.study.configurations}
    best = min(means, key=lambda name: means[name])
    # Replicas that stay for an hour after each burst are paid for in every quiet part.
    assert "downscale_window_s 0.0" in best
    assert means[found["chosen"]] <= 1.02 * means[best]
    assert found["ab_test"]["verdict"] == "adopt"
    assert found["ab_test"]["high"] < 0
    stored = (tmp_path / "tuned" / "simulations.jsonl").read_text()
    assert main(ask) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert (tmp_path / "tuned" / "simulations.jsonl").read_text() == stored


def test_thresholds_are_given_to_each_rule_in_its_own_words() -> None:
    serving = Serving()
    for rule in ("threshold", "hpa", "knative", "keda"):
        assert made_rule({"rule": rule, "in_flight": 3}, serving) != made_rule({"rule": rule, "in_flight": 4}, serving)
    with pytest.raises(UserError, match="no threshold of 'predictive'"):
        made_rule({"rule": "predictive", "in_flight": 3}, serving)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"autoscaler": {"joy": 1}}, "unknown setting"),
        ({"joy": 1}, "unknown field"),
        ({"present": {}}, "no present rule"),
        ({"configurations": {"in_flight": [1]}}, "no configurations"),
        ({"configurations": {"rule": ["hpa"], "joy": [1]}}, "joy"),
        ({"objectives": {"joy": 1}}, "unknown objective"),
        ({"windows": 400}, "use fewer windows"),
    ],
)
def test_mistakes_are_told_in_one_line(
    requests: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: dict, said: str
) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(study(requests, **wrong)))
    assert main(["tune", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_what_was_served_under_other_settings_is_not_taken_for_this_study(requests: str, tmp_path: Path) -> None:
    path, store = tmp_path / "study.yaml", tmp_path / "store.jsonl"
    first = scaling_runs(path, study(requests), store=store)
    first.metrics(first.study.present, 0)
    assert len(scaling_runs(path, study(requests), store=store).known) == 1
    costly = study(requests, autoscaler={**study(requests)["autoscaler"], "slots": 2})
    assert not scaling_runs(path, costly, store=store).known
    assert not scaling_runs(path, study(requests, windows=3), store=store).known
