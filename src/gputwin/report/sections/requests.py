"""What was asked of model-serving systems: rates and bursts, tokens, sessions, clients, and time to serve."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.bins import MOST_BINS
from gputwin.analysis.requests import rates_in_words
from gputwin.analysis.topic import Topic
from gputwin.analysis.words import duration
from gputwin.core.units import percent
from gputwin.report import aggregates, figures
from gputwin.report.page import Card, Cards, FigurePart, Findings, Kind, Part, Section, TablePart, number
from gputwin.report.report_input import ReportInput
from gputwin.report.sections.durations import duration_parts
from gputwin.report.sections.workload import arrivals_caption, bin_of, known_times

_MOST_CLIENTS = 12


def requests(subject: ReportInput) -> Section | None:
    """Return the section on requests; None for a trace without them.

    Where a trace has no tasks, key figures and the rate over time are in the report's answer.
    """
    topic = subject.analysis.topic("requests")
    has_requests = bool(subject.description.requests)
    cards = request_cards(subject) if subject.description.tasks else ()
    rate = request_rate(subject) if subject.description.tasks else None
    parts: list[Part] = [*([Cards(cards)] if cards else ()), *([rate] if rate else ())]
    if has_requests:
        parts += [*_tokens(subject), *_durations(subject)]
    if topic is not None:
        parts += [*_tables(topic), *([Findings(topic.remarks)] if topic.remarks else [])]
    notes: tuple[str, ...] = () if topic is None else topic.notes
    if has_requests:
        notes = (f"Requests are counted in equal bins, at most {MOST_BINS}; tokens in powers of two.", *notes)
    return Section("requests", "Requests", tuple(parts), notes) if parts else None


def request_cards(subject: ReportInput) -> tuple[Card, ...]:
    """Return rates, tokens, sessions and clients as key figures."""
    topic = subject.analysis.topic("requests")
    if topic is None:
        return ()
    cards = []
    totals, sessions, clients = topic.table("totals"), topic.table("sessions"), topic.table("clients")
    if totals is not None:
        r = totals.row(0, named=True)
        if r["rate_per_s"]:
            peak = r["peak_rate_per_s"]
            unit, mean, most = rates_in_words(r["rate_per_s"], peak)
            cards.append(Card(f"Requests {unit}", mean, f"{most} in the fullest minute"))
            cards.append(Card("Burst", f"{peak / r['rate_per_s']:.1f}", "fullest minute over the mean rate"))
        if r["output_tokens_per_s"]:
            note = "" if not r["input_tokens_per_s"] else f"{number(r['input_tokens_per_s'])} in"
            cards.append(Card("Tokens out per second", number(r["output_tokens_per_s"]), note))
    if sessions is not None:
        s = sessions.row(0, named=True)
        note = f"{s['turns_mean']:.1f} turns each; {percent(s['follow_up_share'], 1)} of requests continue one"
        cards.append(Card("Sessions", f"{s['sessions']:,}", note))
    rates = topic.table("client_rates") if clients is None else clients
    if rates is not None and rates.height > 1:
        cards.append(Card("Clients", f"{rates.height:,}", f"the largest sends {percent(rates['share'][0], 1)}"))
    return tuple(cards)


def _tables(topic: Topic) -> list[Part]:
    """Return tokens per request, and the clients that send most."""
    parts: list[Part] = []
    tokens, clients, rates = topic.table("tokens"), topic.table("clients"), topic.table("client_rates")
    if tokens is not None:
        names = ("mean", "p50", "p95", "p99", "max")
        rows = tuple(
            (r["what"].replace("_", " "), f"{r['count']:,}", *(f"{r[n]:,.0f}" for n in names))
            for r in tokens.to_dicts()
        )
        kinds = {"what": Kind.TEXT} | dict.fromkeys(("requests", *names), Kind.NUMBER)
        parts.append(TablePart("Tokens per request", kinds, rows))
    if clients is not None:
        clients_shown = tuple(
            (
                r["client"],
                f"{r['requests']:,}",
                percent(r["share"], 1),
                *(number(r[c]) for c in ("mean_input_tokens", "mean_output_tokens", "cv")),
                duration(r["mean_duration_seconds"]),
            )
            for r in clients.head(_MOST_CLIENTS).to_dicts()
        )
        own = ("requests", "of all", "tokens in", "tokens out", "CV of gaps", "time to serve")
        parts.append(_clients(clients, own, clients_shown))
    if rates is not None:
        rates_shown = tuple(
            (
                r["client"],
                *(number(r[c]) for c in ("rate_per_s", "peak_rate_per_s")),
                *("–" if r[c] is None else percent(r[c], 1) for c in ("share", "active_share")),
                number(r["cv"]),
            )
            for r in rates.head(_MOST_CLIENTS).to_dicts()
        )
        parts.append(_clients(rates, ("requests/s", "peak", "of all", "active", "CV of gaps"), rates_shown))
    return parts


def _clients(clients: pl.DataFrame, names: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> TablePart:
    many = f": the {len(rows)} largest of {clients.height:,}" if clients.height > len(rows) else ""
    return TablePart(f"Clients{many}", {"client": Kind.CODE} | dict.fromkeys(names, Kind.NUMBER), rows)


def request_rate(subject: ReportInput) -> FigurePart | None:
    """Return requests over time; None for a trace without them."""
    if not subject.description.requests:
        return None
    times = known_times(subject.trace.scan("requests"), pl.col("submit_time"))
    if times.is_empty():
        return None
    timeline = subject.timeline.until(float(times.max()))  # type: ignore[arg-type]
    frame = aggregates.counts_over_time(times, timeline)
    figure = figures.counts_over_time(frame, timeline.axis, f"requests per {bin_of(frame)}")
    caption = arrivals_caption(frame, subject, "requests", subject.description.requests)
    return FigurePart("request-rate", "Requests over time", figure, caption, frame)


def _tokens(subject: ReportInput) -> list[Part]:
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


def _durations(subject: ReportInput) -> list[Part]:
    values = subject.trace.scan("requests").select("duration_seconds").collect()["duration_seconds"].drop_nulls()
    return duration_parts("service-time", "Time to serve", "time to serve", "requests", values)
