"""What others published of this trace, next to what its file says."""

from __future__ import annotations

from gputwin.report.page import Findings, Kind, Section, TablePart
from gputwin.report.report_input import ReportInput


def published(subject: ReportInput) -> Section | None:
    """Return published claims and whether they reproduce; None where none are known."""
    topic = subject.analysis.topic("published")
    if topic is None:
        return None
    rows = [
        (
            r["claim"],
            r["source"],
            f"{r['published_seconds']:,.0f} s",
            f"{r['trace_seconds']:,.2f} s",
            f"{r['tasks']:,}",
            f"{r['difference_seconds']:+,.1f} s",
            "yes" if r["reproduces"] else "no",
        )
        for r in topic.tables["claims"].to_dicts()
    ]
    kinds = {"claim": Kind.TEXT, "by": Kind.TEXT} | dict.fromkeys(
        ("published", "this trace", "tasks", "difference"), Kind.NUMBER
    )
    table = TablePart("Published and found", kinds | {"reproduces": Kind.TEXT}, tuple(rows))
    return Section("published", "Published figures", (table, Findings(topic.remarks)), topic.notes)
