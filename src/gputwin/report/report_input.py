"""What a report is about: the trace, what was computed of it beforehand, and how its times are shown."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs

import polars as pl

from gputwin.analysis import Analysis, analyze
from gputwin.report.timeline import Timeline
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.load import LoadCheck
from gputwin.traces.dataset import Trace
from gputwin.traces.describe import Description, describe
from gputwin.traces.locate import SYNTHETIC


@dataclass(frozen=True)
class ReportInput:
    """The trace and all that its report's sections draw on; None where something does not apply."""

    trace: Trace
    description: Description
    timeline: Timeline
    title: str
    analysis: Analysis
    check: LoadCheck | None = None
    cluster: Cluster | None = None
    fidelity: pl.DataFrame | None = None
    generated_from: str | None = None

    @classmethod
    def of(
        cls,
        trace: Trace,
        *,
        check: LoadCheck | None = None,
        cluster: Cluster | None = None,
        fidelity: pl.DataFrame | None = None,
        title: str | None = None,
        generated_from: str | None = None,
        analysis: Analysis | None = None,
    ) -> ReportInput:
        """Return the subject with everything described; a generated trace is recognised by its source."""
        source = trace.meta.source
        title = title or trace.meta.title or source or "A trace"
        return cls(
            trace,
            describe(trace),
            Timeline.of(trace),
            # A file's name stays as it is.
            title[:1].upper() + title[1:] if " " in title else title,
            analyze(trace) if analysis is None else analysis,
            check,
            cluster,
            fidelity,
            generated_from or (source if source.startswith(SYNTHETIC) else None),
        )

    @property
    def nodes(self) -> pl.DataFrame:
        """Return the nodes of the cluster the load is checked against, else the trace's own."""
        return self.trace.nodes if self.cluster is None else self.cluster.nodes()

    @property
    def seed(self) -> str | None:
        """Return the seed a generated trace was made from."""
        settings = parse_qs((self.generated_from or "").partition("?")[2])
        return settings["seed"][0] if "seed" in settings else None


def name_of(trace: Trace) -> str:
    """Return what a trace is called: a generated one by how it was made."""
    source = trace.meta.source
    return source if source.startswith(SYNTHETIC) else trace.meta.title or source
