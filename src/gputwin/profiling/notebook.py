"""A profile as a notebook shows it: job classes, and how well each model predicts durations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gputwin.core.units import format_duration, percent
from gputwin.traces.notebook import html_table, html_text

if TYPE_CHECKING:
    from gputwin.profiling.profile import Profile

_MOST_CLASSES = 12


def profile_html(profile: Profile) -> str:
    """Return the profile as a small piece of HTML without script or style sheet; every text is escaped."""
    found, ran = profile.classes, profile.durations_by_class()
    said = f"{len(found.classes)} job classes of {found.rows:,} tasks, {percent(found.accuracy)} recognised at submit"
    largest = sorted(found.classes, key=lambda c: -c.tasks)[:_MOST_CLASSES]
    classes = [
        (c.name, f"{c.tasks:,}", *(format_duration(seconds) for seconds in ran[c.name] or (None, None, None)))
        for c in largest
    ]
    models = [
        (e.model, f"{s.mae_seconds:,.0f}", percent(s.within_2x, 1), percent(e.coverage, 1))
        for e in profile.evaluations
        for s in [e.scores]
    ]
    parts = [
        f"<p><b>{html_text(said)}</b></p>",
        html_table(("class", "tasks", "ran: 10 %", "median", "90 %"), classes),
        f"<p>Durations in time order; chosen: {html_text(profile.chosen)}</p>",
        html_table(("model", "mean error s", "within 2×", "80 % interval holds"), models),
    ]
    return f"<div>{''.join(parts)}</div>"
