"""The three-way comparison as a directory: its tables as JSON, and a page with the figures."""

from __future__ import annotations

import json
from pathlib import Path

from gputwin.core.atomic import atomic_directory
from gputwin.report.html import render
from gputwin.report.report_input import name_of
from gputwin.report.sections.method import method
from gputwin.report.sections.queueing import queueing
from gputwin.studies.validation.curve import stability, wait_against_load
from gputwin.studies.validation.threeway import ThreeWay
from gputwin.traces.dataset import Trace

DATA_FILE, PAGE_FILE = "queueing.json", "queueing.html"


def write_queueing_report(path: Path, trace: Trace, result: ThreeWay) -> Path:
    """Write the comparison to the directory `path`, all or nothing, and return the path of the page."""
    section = queueing(result, wait_against_load(result), stability(result))
    title = f"Queueing: {name_of(trace)} on {result.cluster}"
    with atomic_directory(path, marker=DATA_FILE) as folder:
        text = json.dumps(result.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        (folder / DATA_FILE).write_text(text + "\n", encoding="utf-8")
        (folder / PAGE_FILE).write_bytes(render(title, (section, method([section]))))
    return path / PAGE_FILE
