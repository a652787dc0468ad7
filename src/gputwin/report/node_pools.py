"""Autoscaled node pools as a directory: tables, node events, manifest, and a page that opens with the answer."""

from __future__ import annotations

from pathlib import Path

from gputwin.autoscaling.nodes.choose import Choice
from gputwin.autoscaling.nodes.report import CHOICE_FILE, TABLE_FILE, PoolReport, write_choice, write_report
from gputwin.core.atomic import atomic_directory
from gputwin.report.html import render
from gputwin.report.page import Section
from gputwin.report.report_input import name_of
from gputwin.report.sections.method import method
from gputwin.report.sections.node_pools import node_pools, pool_choice
from gputwin.traces.dataset import Trace

PAGE_FILE = "pools.html"


def write_pools_report(path: Path, trace: Trace, report: PoolReport) -> Path:
    """Write the comparison to the directory `path`, all or nothing, and return the path of the page."""
    with atomic_directory(path, marker=TABLE_FILE) as folder:
        write_report(report, folder)
        _write_page(folder, trace, node_pools(report))
    return path / PAGE_FILE


def write_choice_report(path: Path, trace: Trace, choice: Choice) -> Path:
    """Write the choice for a wait target to the directory `path`, all or nothing, and return the path of the page."""
    with atomic_directory(path, marker=CHOICE_FILE) as folder:
        write_choice(choice, folder)
        _write_page(folder, trace, pool_choice(choice))
    return path / PAGE_FILE


def _write_page(folder: Path, trace: Trace, section: Section) -> None:
    (folder / PAGE_FILE).write_bytes(render(f"Node pools: {name_of(trace)}", (section, method([section]))))
