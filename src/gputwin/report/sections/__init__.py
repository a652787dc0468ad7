"""The sections of a report, in order: each a function from the subject to a section, or None where nothing is known.

A new section is one file here and one line in `SECTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable

from gputwin.report.page import Section
from gputwin.report.report_input import ReportInput
from gputwin.report.sections.bottlenecks import bottlenecks
from gputwin.report.sections.cluster import cluster
from gputwin.report.sections.delays import delays
from gputwin.report.sections.efficiency import efficiency
from gputwin.report.sections.fidelity import fidelity
from gputwin.report.sections.load import load
from gputwin.report.sections.machines import machines
from gputwin.report.sections.manifest import manifest
from gputwin.report.sections.overview import overview
from gputwin.report.sections.placement import placement
from gputwin.report.sections.published import published
from gputwin.report.sections.quality import quality
from gputwin.report.sections.requests import requests
from gputwin.report.sections.runtimes import runtimes
from gputwin.report.sections.series import series
from gputwin.report.sections.serving import serving
from gputwin.report.sections.tenancy import tenancy
from gputwin.report.sections.tenants import tenants
from gputwin.report.sections.workload import workload

SECTIONS: tuple[Callable[[ReportInput], Section | None], ...] = (
    overview,
    published,
    workload,
    delays,
    tenants,
    runtimes,
    placement,
    efficiency,
    cluster,
    machines,
    bottlenecks,
    load,
    tenancy,
    requests,
    serving,
    series,
    quality,
    fidelity,
)
APPENDIX: tuple[Callable[[ReportInput], Section | None], ...] = (manifest,)

__all__ = ["APPENDIX", "SECTIONS"]
