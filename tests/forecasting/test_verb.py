"""`gputwin forecast` and its report section."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from gputwin.cli.main import main
from gputwin.forecasting.frame import Forecast
from gputwin.forecasting.storage import open_model
from gputwin.forecasting.study import forecast
from gputwin.report.page import FigurePart, Statement, TablePart
from gputwin.report.sections.forecast import forecast_section
from gputwin.report.timeline import Timeline
from tests.forecasting.made import service_trace, trace_of

QUICK = ["--model", "seasonal-naive", "--model", "ses", "--model", "rollout"]


@pytest.fixture(scope="module")
def trace_directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("forecast") / "trace"
    service_trace(days=6).save(path)
    return path


def test_a_forecast_from_the_command_line(trace_directory, tmp_path, capsys):
    out = tmp_path / "out"
    command = ["forecast", str(trace_directory), "--target", "in-force", "--horizon", "30m", *QUICK, "-o", str(out)]
    assert main([*command, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {s["model"] for s in said["scores"]} >= {"naive", "mean", "rollout", "auto"}
    assert said["directory"] == str(out)
    assert len(said["verdicts"]) == len(said["choices"])
    made = Forecast.open(out)
    assert made.frame.height == len(said["forecast"]) == 6
    assert "Skill by horizon" in (out / "report.html").read_text()
    for model in (out / "models").iterdir():
        from gputwin.forecasting.demand import demand
        from gputwin.traces.dataset import Trace

        series = demand(Trace.open(trace_directory), "in-force")
        again = open_model(model, series).predict_at(series, np.array([len(series)]), (1,))
        assert np.isfinite(again).all()
    # A second run replaces what is ours.
    assert main([*command, "--quiet"]) == 0
    text = capsys.readouterr().out
    assert "30 min ahead" in text
    assert "better than the last value" in text or "auto kept the last value" in text


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["--target", "rain"], "unknown target"),
        (["--horizon", "7m"], "not a whole number of bins"),
        (["--horizon", "30d"], "too long to be tested"),
        (["--model", "lightgmb"], "did you mean"),
        (["--tune", "naive"], "nothing to tune"),
        (["--bin", "2d"], "too few for a backtest"),
        (["--test", "2"], "between 0 and 1"),
        (["--target", "metric"], "say which metric"),
    ],
)
def test_mistakes_are_one_line(trace_directory, arguments, what, capsys):
    horizon = [] if "--horizon" in arguments or "--bin" in arguments else ["--horizon", "5m"]
    if "--bin" in arguments:
        horizon = ["--horizon", "2d"]
    assert main(["forecast", str(trace_directory), *horizon, *arguments]) == 2
    error = capsys.readouterr().err
    assert what in error
    assert error.count("\n") == 1


def test_the_section_says_what_it_shows():
    trace = service_trace(days=6)
    study = forecast(trace, "in-force", horizon_seconds=1800, models=("ses", "rollout", "lightgbm-change"))
    section = forecast_section(study, Timeline.of(trace))
    (headline,) = (p for p in section.parts if isinstance(p, Statement))
    assert "better than the last value" in headline.text
    assert [f.id for f in section.figures] == ["forecast-fan", "forecast-skill", "forecast-calibration"]
    tables = [p for p in section.parts if isinstance(p, TablePart)]
    # Of a single series the first column, its name, is left out.
    assert any({row[1] for row in table.rows} >= {"auto", "naive", "mean"} for table in tables)
    fan = next(p for p in section.parts if isinstance(p, FigurePart))
    assert fan.data.height == study.forecast.frame.height


def test_learning_curves_are_shown_where_there_are_networks():
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    rows = [{"request_id": str(i), "submit_time": float(t)} for i, t in enumerate(np.sort(rng.uniform(0, 2e5, 4000)))]
    trace = trace_of(rows, "requests")
    study = forecast(trace, "requests", horizon_seconds=300, models=("gru",))
    assert len(study.curves["gru"].train) == len(study.curves["gru"].validation)
    assert "forecast-curves" in [f.id for f in forecast_section(study, Timeline.of(trace)).figures]


def test_bins_and_horizon_that_are_proposed_can_be_tested(tmp_path, capsys):
    log = tmp_path / "requests.csv"
    rows = "".join(f"2023-11-16 18:{15 + i // 60:02d}:{i % 60:02d}.000,100,10\n" for i in range(0, 2400, 3))
    log.write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n{rows}")
    command = ["forecast", str(log), "--target", "requests", "--model", "mean", "--quiet"]
    assert main(command) == 2
    proposed = re.search(r"as in (--bin \S+ --horizon \S+), or a longer trace", capsys.readouterr().err)
    assert proposed is not None
    assert main([*command, *proposed[1].split()]) == 0
