"""The answer of a trace's report: how long work waits, how full the cluster is, what stands out, what to do next."""

from __future__ import annotations

import math
from dataclasses import replace

import polars as pl

from gputwin.analysis.occupancy import time_mean
from gputwin.analysis.verdict import main_findings, verdict
from gputwin.analysis.words import over_or_none, share
from gputwin.core.units import HOUR, format_count, format_duration, percent
from gputwin.report import charts
from gputwin.report.aggregates import known_sum
from gputwin.report.page import (
    Card,
    Cards,
    FigurePart,
    Findings,
    Kind,
    Part,
    Prose,
    Section,
    Statement,
    TablePart,
    Tone,
)
from gputwin.report.report_input import ReportInput
from gputwin.report.sections.load import tone_of
from gputwin.report.sections.owners import unnamed
from gputwin.report.sections.requests import request_cards, request_rate
from gputwin.report.sections.tenancy import is_state_alone, state_cards, state_over_time
from gputwin.report.sections.workload import arrivals_figure
from gputwin.traces.lifetimes import LIFE_COLUMNS, observed, with_lives
from gputwin.traces.reader import Clock
from gputwin.traces.schema import TABLES

QUESTION = "How long does work wait, how full is the cluster, and what stands out?"
REQUESTS_QUESTION = "How many requests come, how evenly, and how large are they?"
STATE_QUESTION = "How full are the virtual clusters, and which of them queue?"
_MANY_DROPPED = 0.01
_OF_STATE = (
    "Forecast the GPUs waited for: `gputwin forecast TRACE --target metric --metric pending_gpus --bin 1h --horizon 1d`.",
)
_ENDED = {"completed": "completed", "failed": "failed"}
_ROWS = {"usage": "samples of use", "series": "samples of series"}
_NEARLY_ALL = 0.95
"""Share of the span; an average over less says over how much."""


def overview(subject: ReportInput) -> Section:
    """Return the answer of the trace's report."""
    parts: list[Part] = [_verdict(subject)] if subject.analysis.topics else []
    parts += [Cards(_cards(subject)), *(chart for chart in (_chart(subject),) if chart is not None)]
    if main := main_findings(subject.analysis):
        parts.append(Findings(main, "What stands out"))
    parts += [Prose(_what(subject)), Prose(_clock(subject)), _tables(subject)]
    if subject.description.status:
        parts.append(_status(subject))
    notes = (
        "Quantiles interpolate linearly between neighbouring values and are taken over the tasks whose value is known.",
    )
    return Section(
        "overview",
        "The trace",
        tuple(parts),
        notes if subject.description.tasks else (),
        _question(subject),
        _next_steps(subject),
        conclusion=_conclusion(subject),
    )


def _question(subject: ReportInput) -> str:
    if subject.description.tasks:
        return QUESTION
    if subject.description.requests:
        return REQUESTS_QUESTION
    return STATE_QUESTION if is_state_alone(subject) else "What is in this trace?"


def _verdict(subject: ReportInput) -> Statement:
    found = verdict(subject.analysis)
    tone = {True: Tone.GOOD, False: Tone.WARNING, None: Tone.NEUTRAL}[found.is_good]
    is_known = subject.analysis.table("delays", "wait") is not None
    # What waited on the trace's own nodes says more than whether its load would fit them.
    if subject.check is None or (is_known and subject.cluster is None):
        return Statement(found.text, tone)
    load = tone_of(subject.check)
    worse = Tone.WARNING if Tone.WARNING in (tone, load) else tone if load == Tone.GOOD else load
    fits = subject.check.verdict.split(". ")[0].removesuffix(".")
    return Statement(f"{found.text} {fits}.", worse)


def _cards(subject: ReportInput) -> tuple[Card, ...]:
    """Return the key figures, the five a reader asks for first in front."""
    d = subject.description
    cards = []
    if d.tasks:
        cards.append(Card("Tasks", format_count(d.tasks), f"in {format_duration(subject.timeline.span)}"))
    if d.wait_seconds:
        note = over_or_none(d.wait_seconds["p95"])
        cards.append(Card("Median wait", format_duration(d.wait_seconds["p50"]), note))
    if d.gpu_hours:
        of = f"{format_count(d.gpu_hours)} GPU-hours" + (f", of {d.gpus:,} GPUs" if d.nodes else "")
        if d.window_seconds < _NEARLY_ALL * d.span_seconds:
            of += f"; mean over {format_duration(d.window_seconds)}"
        cards.append(Card("GPUs held on average", f"{d.gpus_held_mean:,.0f}", of))
    if d.runtime_seconds:
        note = f"one in twenty over {format_duration(d.runtime_seconds['p95'])}"
        cards.append(Card("Median runtime", format_duration(d.runtime_seconds["p50"]), note))
    if d.requests:
        cards.append(Card("Requests", format_count(d.requests), _requests_note(subject)))
    if not d.tasks:
        cards += request_cards(subject)
    state = subject.analysis.topic("tenancy") if is_state_alone(subject) else None
    if state is not None:
        cards += state_cards(state)
    for count, label, note in (
        (d.users, "Users", _users_note(subject)),
        (d.applications, "Applications", "each task is a replica of one"),
        *_owners(subject),
        (d.jobs if d.jobs != d.tasks or d.instances != d.tasks else 0, "Jobs", f"{d.instances:,} instances"),
        (len(d.metrics), "Metrics", f"{sum(d.metrics.values()):,} samples"),
    ):
        if count:
            cards.append(Card(label, format_count(count), note))
    if not d.tasks and not d.requests:
        cards.append(Card("Span", format_duration(subject.timeline.span), "first to last event"))
    return tuple(cards)


def _owners(subject: ReportInput) -> list[tuple[int, str, str]]:
    """Return how many tenants there are and what part of the tasks the largest has."""
    table = subject.analysis.table("workload", "tenants")
    if table is None or table.height < 2:
        return []
    return [(table.height, "Tenants", f"the most active submits {share(table['task_share'][0])} of the tasks")]


def _users_note(subject: ReportInput) -> str:
    users = subject.analysis.table("workload", "users")
    return ("" if users is None else unnamed("user", users).rstrip(".")) or "who submitted tasks"


def _requests_note(subject: ReportInput) -> str:
    totals = subject.analysis.table("requests", "totals")
    if totals is None or not totals["span_seconds"][0]:
        return "to model-serving systems"
    timed, requests = totals["timed"][0], totals["requests"][0]
    of = f"{timed:,} of them " if timed < requests else ""
    return f"{of}in {format_duration(totals['span_seconds'][0])}"


def _chart(subject: ReportInput) -> FigurePart | None:
    """Return GPUs held and waited for over time, or what else shows the load: tasks running, or arrivals."""
    if not subject.description.tasks and (rate := request_rate(subject)) is not None:
        rate.figure.update_layout(height=300)
        return replace(rate, id="answer-requests")
    state = subject.analysis.topic("tenancy") if is_state_alone(subject) else None
    if state is not None:
        return state_over_time(subject, state)
    series = subject.analysis.table("cluster", "over_time")
    if series is None or series.height < 2:
        return arrivals_figure(subject)
    timeline = subject.timeline.until(float(series["begin"].max()))  # type: ignore[arg-type]
    has_gpus = float(series["gpus"].sum()) > 0
    held, waited, what = ("gpus", "queued_gpus", "GPUs") if has_gpus else ("running", "queued", "tasks")
    columns = {held: "held by running tasks" if has_gpus else "running"}
    caption = f"{time_mean(series, held):,.0f} {what} {'held' if has_gpus else 'running'} on average"
    if waited in series.columns and float(series[waited].sum()) > 0:
        columns[waited] = "asked for by waiting tasks" if has_gpus else "waiting"
        caption += f"; waiting tasks ask for {time_mean(series, waited):,.1f}" if has_gpus else ""
    shown = series.with_columns(timeline.shown(pl.col("begin")).alias("at")).select("at", "begin", *columns)
    figure = charts.over_time(shown, columns, timeline.axis, what)
    figure.update_layout(height=300)
    of = "held" if has_gpus else "running"
    title = f"{what} {of} and waited for, over time" if len(columns) > 1 else f"{what} {of} over time"
    return FigurePart("answer-load", title[:1].upper() + title[1:], figure, f"{caption}.", shown)


def _next_steps(subject: ReportInput) -> tuple[str, ...]:
    if not subject.description.tasks:
        of_requests = (
            "Forecast what comes next: `gputwin forecast TRACE --target requests`.",
            "Compare scaling rules on these requests: `gputwin autoscale TRACE`.",
        )
        return of_requests if subject.description.requests else _OF_STATE if is_state_alone(subject) else ()
    named = _cluster_option(subject)
    steps = [
        f"See why each job waits: `gputwin simulate TRACE{named} -o run`, then `gputwin explain run longest`.",
        f"Find how many nodes keep waits short: `gputwin plan TRACE{named} --target p95_wait=10m`.",
    ]
    meta = subject.trace.meta
    if meta.rows_read and meta.rows_dropped > _MANY_DROPPED * meta.rows_read:
        part = meta.rows_dropped / meta.rows_read
        steps.insert(0, f"Look at Data quality first: {percent(part, 1)} of the rows read were dropped.")
    return tuple(steps)


def _cluster_option(subject: ReportInput) -> str:
    """Return the option that names a cluster: none where the trace has its own, else one with room for what ran."""
    if subject.cluster is not None:
        return f" --cluster {subject.cluster.name}"
    if not subject.trace.nodes.is_empty():
        return ""
    most = subject.description.gpus_held_most or 0.0
    return f" --cluster homogeneous:{max(math.ceil(most / 8), 1)}x8"


def _what(subject: ReportInput) -> str:
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
            f"({percent(d.tasks_complete / d.tasks, 1)})."
        )
    for count, what in (
        (d.tasks_already_running, "ran when it began"),
        (d.tasks_running, "were still running when it ended"),
        (d.tasks_never_started, "never started"),
        (d.tasks_of_unknown_life, "have no times at which they ran"),
    ):
        if count:
            sentences.append(f"{count:,} {what}.")
    return " ".join(sentences)


def _conclusion(subject: ReportInput) -> str:
    """Return what the trace has, and how tasks ended."""
    d = subject.description
    has = [f"{count:,} {_ROWS.get(name, name)}" for name, count in d.tables.items()]
    listed = ", ".join(has[:-1]) + (" and " if len(has) > 1 else "") + has[-1] if has else "nothing"
    of = "Generated, not recorded" if subject.generated_from else f"Format {subject.trace.meta.source}"
    text = f"{of}: {listed}, over {format_duration(subject.timeline.span)}"
    known = {status: count for status, count in d.status.items() if status != "unknown"}
    if known:
        most = max(known, key=known.__getitem__)
        ended = _ENDED.get(most, f"were {most}")
        if most == "running":
            # A status last recorded as running does not mean that the trace has no end of it.
            all_run_on = known[most] == d.tasks_running
            ended = "were still running when it ended" if all_run_on else "have the status running"
        text += f"; {percent(known[most] / d.tasks, 1)} of tasks {ended}"
    return f"{text}."


def _clock(subject: ReportInput) -> str:
    timeline = subject.timeline
    if timeline.has_dates:
        begin, end = timeline.words(timeline.first), timeline.words(timeline.last)
        return f"Times are real dates, from {begin} to {end} ({timeline.zone})."
    if timeline.origin is not None and subject.trace.meta.clock == Clock.WEEKDAY:
        return f"Time of day and day of the week are real ({timeline.zone}); the publisher shifted the dates."
    return "Times are relative: only differences between them mean something."


def _tables(subject: ReportInput) -> TablePart:
    rows = [(name, f"{count:,}", TABLES[name].row) for name, count in subject.description.tables.items()]
    return TablePart("Tables", {"table": Kind.TEXT, "rows": Kind.NUMBER, "a row is": Kind.TEXT}, tuple(rows))


def _status(subject: ReportInput) -> TablePart:
    total = subject.description.tasks
    tasks = subject.trace.collect(subject.trace.scan("tasks").select(LIFE_COLUMNS))
    lives = with_lives(tasks, observed(tasks))
    hours_held = known_sum(pl.col("gpus") * pl.col("held_seconds") / HOUR)
    totals = lives.group_by(pl.col("status").cast(pl.String)).agg(hours_held)
    hours = dict(totals.iter_rows())
    rows = [
        (status, f"{count:,}", percent(count / total, 1), format_count(hours[status]))
        for status, count in subject.description.status.items()
    ]
    kinds = {"status": Kind.TEXT, "tasks": Kind.NUMBER, "share": Kind.NUMBER, "GPU-hours": Kind.NUMBER}
    return TablePart("Tasks by last recorded status", kinds, tuple(rows))
