"""What was wrong with the data, and what was done about it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gputwin.report.page import Card, Cards, Kind, Part, Prose, Section, TablePart
from gputwin.report.report_input import ReportInput
from gputwin.traces.dataset import TraceMeta
from gputwin.traces.quality import Action, Finding

_MOST_ROWS = 100
_NOTES = (
    "A rule drops the rows it concerns, repairs them (a wrong value becomes unknown, never a guess) or flags them "
    "(they stay as they are). Rows read = rows kept + rows dropped. A row may be concerned by several rules.",
)


def quality(subject: ReportInput) -> Section | None:
    """Return the data-quality findings; None where no rows were counted."""
    meta = subject.trace.meta
    if not meta.rows_read and not meta.findings:
        return None
    by_action = {action: sum(f.count for f in meta.findings if f.action == action) for action in Action}
    cards = (
        Card("Rows read", f"{meta.rows_read:,}", f"= {meta.rows_kept:,} kept + {meta.rows_dropped:,} dropped"),
        Card("Repaired", f"{by_action[Action.REPAIRED]:,}", "values made unknown, or rounded"),
        Card("Flagged", f"{by_action[Action.FLAGGED]:,}", "kept as they are"),
    )
    parts: list[Part] = [Cards(cards)]
    if meta.findings:
        parts.append(_findings(meta.findings))
    else:
        parts.append(Prose("No rule found anything."))
    return Section("quality", "Data quality", tuple(parts), _NOTES, conclusion=_conclusion(meta, by_action))


def _conclusion(meta: TraceMeta, by_action: Mapping[Action, int]) -> str:
    """Return how many rows were kept, and what rules found in them."""
    text = (
        f"{meta.rows_dropped:,} of {meta.rows_read:,} rows were dropped"
        if meta.rows_dropped
        else f"All {meta.rows_read:,} rows read were kept"
    )
    found = [f"{by_action[a]:,} {a}" for a in (Action.REPAIRED, Action.FLAGGED) if by_action[a]]
    return f"{text}; {' and '.join(found)} by rules." if found else f"{text}; no rule found anything else."


def _findings(findings: tuple[Finding, ...]) -> TablePart:
    rows = [
        (
            f.rule,
            # A file by its name alone: the manifest has whole paths.
            Path(f.table).name,
            f"{f.count:,}",
            f.action,
            f"{f.title} ({f.detail})" if f.detail else f.title,
            " · ".join(", ".join(f"{key}={value}" for key, value in e.items()) for e in f.examples),
        )
        for f in findings[:_MOST_ROWS]
    ]
    kinds = {
        "rule": Kind.TEXT,
        "where": Kind.TEXT,
        "count": Kind.NUMBER,
        "action": Kind.TEXT,
        "what": Kind.TEXT,
        "examples": Kind.CODE,
    }
    left = len(findings) - len(rows)
    return TablePart("Findings", kinds, tuple(rows), f"{left:,} further findings are not listed." if left else "")
