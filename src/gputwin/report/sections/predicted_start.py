"""When a job would have been expected to start, asked at the moment it was submitted, next to when it did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gputwin.core.units import format_duration
from gputwin.report.page import Card, Cards, Kind, Part, Section, Statement, TablePart, Tone

_NOTE = (
    "Remaining run times are drawn from a model of durations that knows only jobs which had ended by then, and the cluster "
    "is simulated ahead many times. The 80 % interval leaves a tenth of these futures on either side."
)


def predicted_start(job: str, row: Mapping[str, Any] | None, waited: float | None) -> Section:
    """Return the section on a job's predicted start: `row` is that of `estimate`, None where it started at once."""
    question = "When would it have been expected to start?"
    if row is None:
        parts: tuple[Part, ...] = (
            Statement("There was room for it: it started as soon as it was submitted.", Tone.GOOD),
        )
        return Section("start", "Predicted start", parts, (), question)
    low, median, high = (float(row[f"{name}_seconds"]) for name in ("low", "median", "high"))
    is_held = waited is not None and low <= waited <= high
    was = "It did not start." if waited is None else f"It started after {format_duration(waited)}"
    was += "" if waited is None else (", within the interval." if is_held else ", outside the interval.")
    text = (
        f"When it was submitted, it could be expected to start after {format_duration(median)} "
        f"(80 %: {format_duration(low)} to {format_duration(high)}). {was}"
    )
    cards = Cards(
        (
            Card("Predicted", format_duration(median), "median of the simulated futures"),
            Card("80 % interval", f"{format_duration(low)} – {format_duration(high)}"),
            Card("What happened", "–" if waited is None else format_duration(waited), "in this run"),
        )
    )
    why = TablePart("As seen then", {"what": Kind.TEXT, "value": Kind.TEXT}, (("why it waits", str(row["why"])),))
    tone = Tone.GOOD if is_held else Tone.NEUTRAL
    return Section("start", "Predicted start", (Statement(text, tone), cards, why), (_NOTE,), question)
