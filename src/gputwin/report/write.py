"""From a trace to its report: the sections that apply, in one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gputwin.analysis import Analysis
from gputwin.core.atomic import atomic_file
from gputwin.core.errors import UserError
from gputwin.core.overwriting import may_overwrite
from gputwin.report.html import render
from gputwin.report.page import Section
from gputwin.report.report_input import ReportInput
from gputwin.report.sections import APPENDIX, SECTIONS
from gputwin.report.sections.comparison import comparison
from gputwin.report.sections.method import method
from gputwin.report.sections.run import run_section
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.load import LoadCheck
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.use import use_of
from gputwin.studies.comparison import Comparison
from gputwin.traces.dataset import Trace


def write_report(
    path: Path,
    trace: Trace,
    *,
    check: LoadCheck | None = None,
    cluster: Cluster | None = None,
    fidelity: pl.DataFrame | None = None,
    title: str | None = None,
    generated_from: str | None = None,
    analysis: Analysis | None = None,
    compared: Comparison | None = None,
    simulated: SimulationResult | None = None,
    asked: Sequence[Section] = (),
    brief: bool = False,
) -> Path:
    """Write the trace's report to `path`, all or nothing, and return the path.

    `check` is the load check against `cluster` (the trace's own nodes where none is given), `generated_from` the
    `synthetic:…` name of a trace that was read back from generated files, `analysis` the trace's where it was made
    before. What the report is made for comes first, as its answer: `asked` sections, scenarios `compared`, a `simulated`
    run, else the trace itself. A report made for `asked` sections says of the trace only what it is. A `brief` report is
    the answer alone, on one printed page. The same trace gives the same bytes.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"'{path}' would not open as a report; name a file that ends in .html")
    check_replaceable(path)
    if asked and analysis is None:
        analysis = Analysis(trace.meta.source, ())
    subject = ReportInput.of(
        trace,
        check=check,
        cluster=cluster,
        fidelity=fidelity,
        title=title,
        generated_from=generated_from,
        analysis=analysis,
    )
    first = list(asked)
    if compared is not None:
        first.append(comparison(compared, subject.timeline))
    if simulated is not None:
        first.append(run_section(simulated, subject.timeline, use_of(trace)))
    page = render(subject.title, sections_of(subject, first), brief=brief)
    with atomic_file(path) as fresh:
        fresh.write_bytes(page)
    return path


def sections_of(subject: ReportInput, asked: Sequence[Section] = ()) -> tuple[Section, ...]:
    """Return the sections that apply to the subject: `asked`, the trace's own, method, manifest."""
    own = [section for build in SECTIONS if (section := build(subject)) is not None]
    appendix = [section for build in APPENDIX if (section := build(subject)) is not None]
    body = [*asked, *own]
    return (*body, method([*body, *appendix]), *appendix)


def check_replaceable(path: Path) -> None:
    """Raise a user error where a file stands at `path` that is no report of ours, and may not be overwritten."""
    if not path.is_file() or may_overwrite():
        return
    with path.open("rb") as file:
        start = file.read(4096)
    if start and b'name="generator" content="gputwin' not in start:
        raise UserError(
            f"refusing to overwrite '{path}': it is no report of gputwin's; name another file, or give --force"
        )
