"""What was asked of model-serving systems: requests over time, tokens, and time to serve."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.bins import MOST_BINS
from gputwin.report import aggregates, figures
from gputwin.report.page import FigurePart, Part, Section
from gputwin.report.sections.durations import duration_parts
from gputwin.report.sections.workload import arrivals_caption, known_times
from gputwin.report.subject import Subject


def requests(subject: Subject) -> Section | None:
    """Return the section on requests; None for a trace without them."""
    if not subject.description.requests:
        return None
    parts = [*_rate(subject), *_tokens(subject), *_durations(subject)]
    notes = (f"Requests are counted in equal bins, at most {MOST_BINS}; tokens in powers of two.",)
    return Section("requests", "Requests", tuple(parts), notes) if parts else None


def _rate(subject: Subject) -> list[Part]:
    times = known_times(subject.trace.scan("requests"), pl.col("submit_time"))
    if times.is_empty():
        return []
    timeline = subject.timeline.until(float(times.max()))  # type: ignore[arg-type]
    frame = aggregates.counts_over_time(times, timeline)
    figure = figures.counts_over_time(frame, timeline.axis, "requests per bin")
    caption = arrivals_caption(frame, subject, "requests", subject.description.requests)
    return [FigurePart("request-rate", "Requests over time", figure, caption, frame)]


def _tokens(subject: Subject) -> list[Part]:
    scan = subject.trace.scan("requests")
    frame = aggregates.token_classes(scan)
    if frame.is_empty():
        return []
    sentences = []
    for direction in frame["direction"].unique(maintain_order=True):
        tokens = scan.select(pl.col(f"{direction}_tokens").alias("n")).filter(pl.col("n") >= 0).collect()["n"]
        sentences.append(
            f"{direction}: {tokens.sum():,} tokens in {tokens.len():,} requests, median "
            f"{tokens.quantile(0.5, 'linear'):,.0f}, 95th percentile {tokens.quantile(0.95, 'linear'):,.0f}"
        )
    caption = f"Tokens per request; {'; '.join(sentences)}."
    return [FigurePart("tokens", "Tokens per request", figures.token_classes(frame), caption, frame, half=True)]


def _durations(subject: Subject) -> list[Part]:
    values = subject.trace.scan("requests").select("duration_seconds").collect()["duration_seconds"].drop_nulls()
    return duration_parts("service-time", "Time to serve", "time to serve", "requests", values)
