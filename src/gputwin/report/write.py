"""From a trace to its report: the sections that apply, in one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gputwin.analysis import Analysis
from gputwin.core.atomic import atomic_file
from gputwin.core.errors import UserError
from gputwin.report.html import render
from gputwin.report.page import Section
from gputwin.report.sections import APPENDIX, SECTIONS
from gputwin.report.sections.comparison import comparison
from gputwin.report.sections.method import method
from gputwin.report.subject import Subject
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.load import LoadCheck
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
    asked: Sequence[Section] = (),
) -> Path:
    """Write the trace's report to `path`, all or nothing, and return the path.

    `check` is the load check against `cluster` (the trace's own nodes where none is given), `generated_from` the
    `synthetic:…` name of a trace that was read back from generated files, `analysis` the trace's where it was made
    before, `compared` scenarios to put side by side, `asked` the sections the report is made
    for: they follow its overview.
    The same trace gives the same bytes.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise UserError(f"'{path}' would not open as a report; name a file that ends in .html")
    subject = Subject.of(
        trace,
        check=check,
        cluster=cluster,
        fidelity=fidelity,
        title=title,
        generated_from=generated_from,
        analysis=analysis,
    )
    scenarios = () if compared is None else (comparison(compared, subject.timeline),)
    page = render(subject.title, sections_of(subject, asked, scenarios))
    with atomic_file(path) as fresh:
        fresh.write_bytes(page)
    return path


def sections_of(subject: Subject, asked: Sequence[Section] = (), last: Sequence[Section] = ()) -> tuple[Section, ...]:
    """Return the sections that apply to the subject: overview, `asked`, the trace's own, `last`, method, manifest."""
    own = [section for build in SECTIONS if (section := build(subject)) is not None]
    appendix = [section for build in APPENDIX if (section := build(subject)) is not None]
    body = [*own[:1], *asked, *own[1:], *last]
    return (*body, method([*body, *appendix]), *appendix)
