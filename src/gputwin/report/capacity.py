"""The capacity plan as a directory: its figures as JSON, and a page."""

from __future__ import annotations

import json
from pathlib import Path

from gputwin.core.atomic import atomic_directory
from gputwin.optimization.capacity.plan import Plan
from gputwin.report.html import render
from gputwin.report.report_input import name_of
from gputwin.report.sections.capacity import capacity
from gputwin.report.sections.method import method
from gputwin.traces.dataset import Trace

DATA_FILE, PAGE_FILE = "plan.json", "plan.html"


def write_plan_report(path: Path, trace: Trace, plan: Plan, *, rules: str = "") -> Path:
    """Write the plan to the directory `path`, all or nothing, and return the path of the page; `rules` are named there."""
    section = capacity(plan, rules)
    title = f"Capacity plan: {name_of(trace)} on {plan.cluster.name}"
    with atomic_directory(path, marker=DATA_FILE) as folder:
        text = json.dumps(plan.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        (folder / DATA_FILE).write_text(text + "\n", encoding="utf-8")
        (folder / PAGE_FILE).write_bytes(render(title, (section, method([section]))))
    return path / PAGE_FILE
