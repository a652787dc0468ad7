"""A forecast study on disk: forecast, scores, choices, models, and the trace's report with the forecast in it."""

from __future__ import annotations

import json
from pathlib import Path

from gputwin.core.atomic import atomic_directory
from gputwin.forecasting.frame import FORECAST_FILE
from gputwin.forecasting.storage import write_model
from gputwin.forecasting.study import ForecastStudy
from gputwin.report.sections.forecast import forecast_section
from gputwin.report.timeline import Timeline
from gputwin.report.write import write_report
from gputwin.traces.dataset import Trace


def save_study(study: ForecastStudy, trace: Trace, path: Path) -> None:
    """Write the study to the directory `path`, all or nothing; `Forecast.open` reads the forecast from there."""
    with atomic_directory(path, marker=FORECAST_FILE) as folder:
        study.forecast.write(folder)
        study.scores.write_parquet(folder / "scores.parquet")
        study.calibration.write_parquet(folder / "calibration.parquet")
        record = json.dumps(study.record(), indent=1) + "\n"
        (folder / "study.json").write_text(record, encoding="utf-8")
        for name, model in study.models.items():
            inside = folder / "models" / name
            inside.mkdir(parents=True)
            write_model(model, name, inside)
        section = forecast_section(study, Timeline.of(trace))
        write_report(folder / "report.html", trace, asked=[section])
