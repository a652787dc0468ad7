"""What the trace is: its clock, span, counts, and the figures a reader asks for first."""

from __future__ import annotations

import polars as pl

from gputwin.analysis import Remark
from gputwin.core.units import HOUR, format_count, format_duration
from gputwin.report.aggregates import known_sum
from gputwin.report.page import Card, Cards, Findings, Kind, Part, Prose, Section, TablePart
from gputwin.report.subject import Subject
from gputwin.traces.lifetimes import LIFE_COLUMNS, observed, with_lives
from gputwin.traces.reader import Clock
from gputwin.traces.schema import TABLES

_MOST_FINDINGS = 10


def overview(subject: Subject) -> Section:
    """Return the overview."""
    parts: list[Part] = [Cards(_cards(subject)), Prose(_what(subject)), Prose(_clock(subject))]
    if main := _main_findings(subject):
        parts.append(Findings(main, "Main findings"))
    parts.append(_tables(subject))
    if subject.description.status:
        parts.append(_status(subject))
    notes = (
        "Quantiles interpolate linearly between neighbouring values and are taken over the tasks whose value is known.",
    )
    return Section("overview", "Overview", tuple(parts), notes if subject.description.tasks else ())


def _cards(subject: Subject) -> tuple[Card, ...]:
    d = subject.description
    cards = [Card("Span", format_duration(subject.timeline.span), "first to last event")]
    if d.tasks:
        cards.append(Card("Tasks", format_count(d.tasks), f"{d.jobs:,} jobs, {d.instances:,} instances"))
    for count, label, note in (
        (d.users, "Users", "who submitted tasks"),
        (d.applications, "Applications", "whose replicas the tasks are"),
        (d.requests, "Requests", "to model-serving systems"),
        (len(d.metrics), "Metrics", f"{sum(d.metrics.values()):,} samples"),
    ):
        if count:
            cards.append(Card(label, format_count(count), note))
    if d.nodes:
        cards.append(Card("GPUs", format_count(d.gpus), f"on {d.nodes:,} nodes"))
    if d.gpu_hours:
        cards.append(Card("GPU-hours", format_count(d.gpu_hours), f"{d.gpus_held_mean:,.1f} GPUs held on average"))
    for label, spread in (("Median wait", d.wait_seconds), ("Median runtime", d.runtime_seconds)):
        if spread:
            cards.append(
                Card(label, format_duration(spread["p50"]), f"95th percentile {format_duration(spread['p95'])}")
            )
    return tuple(cards)


def _main_findings(subject: Subject) -> tuple[Remark, ...]:
    """Return the first sentence of each topic and its first warning, in the report's order, ten at most."""
    chosen: list[Remark] = []
    for topic in subject.analysis.topics:
        firsts = [next((r for r in topic.remarks if r.is_warning is w), None) for w in (False, True)]
        chosen += [r for r in topic.remarks if r in firsts]
    if len(chosen) > _MOST_FINDINGS:
        # Warnings go first where not all find room, in their order.
        ranked = sorted(range(len(chosen)), key=lambda i: (not chosen[i].is_warning, i))[:_MOST_FINDINGS]
        chosen = [chosen[i] for i in sorted(ranked)]
    return tuple(chosen)


def _what(subject: Subject) -> str:
    meta = subject.trace.meta
    if subject.generated_from:
        sentences = [
            f"The trace is synthetic: generated as {subject.generated_from} from figures published of its original, "
            f"not recorded on a cluster. The original is {meta.title or meta.source}."
        ]
    else:
        title = meta.title or "A trace"
        sentences = [f"{title[:1].upper()}{title[1:]} (format {meta.source})."]
    d = subject.description
    if d.tasks:
        sentences.append(
            f"Submit, start and runtime are all known for {d.tasks_complete:,} of {d.tasks:,} tasks "
            f"({d.tasks_complete / d.tasks:.1%})."
        )
    for count, what in (
        (d.tasks_already_running, "ran when it began"),
        (d.tasks_running, "were still running when it ended"),
        (d.tasks_never_started, "never started"),
        (d.tasks_of_unknown_life, "tell no time at which they ran"),
    ):
        if count:
            sentences.append(f"{count:,} {what}.")
    return " ".join(sentences)


def _clock(subject: Subject) -> str:
    timeline = subject.timeline
    if timeline.has_dates:
        begin, end = timeline.words(timeline.first), timeline.words(timeline.last)
        return f"Its clock is true: it runs from {begin} to {end} ({timeline.zone})."
    if timeline.origin is not None and subject.trace.meta.clock == Clock.WEEKDAY:
        return f"Time of day and day of the week are true ({timeline.zone}); the publisher shifted the dates."
    return "Its clock is relative: only differences between times mean something."


def _tables(subject: Subject) -> TablePart:
    rows = [(name, f"{count:,}", TABLES[name].row) for name, count in subject.description.tables.items()]
    return TablePart("Tables", {"table": Kind.TEXT, "rows": Kind.NUMBER, "a row is": Kind.TEXT}, tuple(rows))


def _status(subject: Subject) -> TablePart:
    total = subject.description.tasks
    tasks = subject.trace.collect(subject.trace.scan("tasks").select(LIFE_COLUMNS))
    lives = with_lives(tasks, observed(tasks))
    hours_held = known_sum(pl.col("gpus") * pl.col("held_seconds") / HOUR)
    totals = lives.group_by(pl.col("status").cast(pl.String)).agg(hours_held)
    hours = dict(totals.iter_rows())
    rows = [
        (status, f"{count:,}", f"{count / total:.1%}", format_count(hours[status]))
        for status, count in subject.description.status.items()
    ]
    kinds = {"status": Kind.TEXT, "tasks": Kind.NUMBER, "share": Kind.NUMBER, "GPU-hours": Kind.NUMBER}
    return TablePart("How tasks ended", kinds, tuple(rows))
