"""The comparison of scaling rules as a directory: its table as JSON, every decision as Parquet, and a page."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from gputwin.autoscaling.compare import Comparison
from gputwin.report.html import render
from gputwin.report.sections.autoscale import autoscale
from gputwin.report.sections.method import method
from gputwin.report.subject import name_of
from gputwin.traces.atomic import atomic_directory
from gputwin.traces.dataset import Trace

DATA_FILE, SERIES_FILE, PAGE_FILE = "autoscale.json", "decisions.parquet", "autoscale.html"


def write_autoscale_report(path: Path, trace: Trace, result: Comparison) -> Path:
    """Write the comparison to the directory `path`, all or nothing, and return the path of the page."""
    section = autoscale(result)
    series = pl.concat([pl.DataFrame({"rule": r.rule, **vars(r.run.series)}) for r in result.rows])
    with atomic_directory(path, marker=DATA_FILE) as folder:
        text = json.dumps(result.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        (folder / DATA_FILE).write_text(text + "\n", encoding="utf-8")
        series.write_parquet(folder / SERIES_FILE)
        (folder / PAGE_FILE).write_bytes(render(f"Scaling rules: {name_of(trace)}", (section, method([section]))))
    return path / PAGE_FILE
