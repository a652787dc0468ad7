"""How the numbers were made, gathered from the sections that show them."""

from __future__ import annotations

from collections.abc import Iterable

from gputwin.report.page import Bullets, Section


def method(sections: Iterable[Section]) -> Section:
    """Return the method notes of the sections, each note once."""
    notes = dict.fromkeys(note for section in sections for note in section.notes)
    closing = (
        "Figures show aggregates, never single tasks; the button under each downloads exactly the data it is drawn "
        "from. Nothing was sampled.",
    )
    conclusion = f"How the figures were made, in {len(notes) + 1} notes."
    return Section("method", "Method notes", (Bullets((*notes, *closing)),), conclusion=conclusion)
