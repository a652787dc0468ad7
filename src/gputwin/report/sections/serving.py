"""Serving: latency by what is asked, cold starts, GPU duty, and how metrics move together."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.serving import LATENCY_BY, LOAD_SUFFIX
from gputwin.analysis.topic import Topic
from gputwin.analysis.words import duration, metric, size_class
from gputwin.core.units import percent
from gputwin.report import charts, matrices
from gputwin.report.page import Card, Cards, FigurePart, Findings, Kind, Part, Section, TablePart
from gputwin.report.report_input import ReportInput

_MOST_GROUPS = 12
_FEWEST = 10


def serving(subject: ReportInput) -> Section | None:
    """Return the section on serving; None where the trace has neither requests nor serving metrics."""
    topic = subject.analysis.topic("serving")
    if topic is None:
        return None
    parts: list[Part] = [*_cards(topic), *_latency(topic), *_loads(topic), *_correlations(topic)]
    if topic.remarks:
        parts.append(Findings(topic.remarks))
    return Section("serving", "Serving", tuple(parts), topic.notes) if parts else None


def _cards(topic: Topic) -> list[Part]:
    cards = []
    latency, duty, gaps = (topic.table(n) for n in ("latency", "gpu_duty", "request_gaps"))
    if latency is not None:
        r = latency.row(0, named=True)
        cards.append(
            Card("Mean time to serve", duration(r["mean"]), f"median {duration(r['p50'])}, p99 {duration(r['p99'])}")
        )
    if gaps is not None and gaps["cv"][0] is not None:
        cards.append(
            Card("CV of gaps", f"{gaps['cv'][0]:.1f}", "between requests; 1 for a Poisson process, more in bursts")
        )
    if duty is not None:
        d = duty.row(0, named=True)
        cards.append(Card("GPU duty", f"{d['mean']:.1f} %", f"{percent(d['idle_share'], 1)} of samples idle"))
    return [Cards(tuple(cards))] if cards else []


def _latency(topic: Topic) -> list[Part]:
    by = topic.table("latency_by")
    parts: list[Part] = []
    if by is None:
        return parts
    for name in by["dimension"].unique(maintain_order=True):
        groups = by.filter((pl.col("dimension") == name) & (pl.col("count") >= _FEWEST))
        if groups.height > _MOST_GROUPS:
            groups = groups.sort("count", descending=True).head(_MOST_GROUPS)
        if groups.height < 2 or not (groups["mean"] > 0).any():
            continue
        top = groups.sort("mean").row(-1, named=True)
        caption = (
            f"Mean, median and 95th percentile; the mean is longest at {size_class(top['group'])}: "
            f"{duration(top['mean'])} over {top['count']:,} requests."
        )
        figure = charts.dots(groups, {"mean": "mean", "p50": "median", "p95": "95th percentile"}, "time to serve")
        id_, title = f"latency-{name.replace('_', '-')}", f"Time to serve by {LATENCY_BY[name]}"
        parts.append(FigurePart(id_, title, figure, caption, groups, half=True))
    return parts


def _loads(topic: Topic) -> list[Part]:
    metrics = topic.table("metrics")
    if metrics is None:
        return []
    loads = metrics.filter(pl.col("metric").str.ends_with(LOAD_SUFFIX))
    if loads.is_empty():
        return []
    shown = loads.select(
        pl.Series("group", [metric(name.removesuffix(LOAD_SUFFIX)) for name in loads["metric"]]),
        *((pl.col(c) / 1000).alias(c) for c in ("mean", "p50", "p95", "p99")),
        "count",
    )
    figure = charts.dots(shown, {"mean": "mean", "p50": "median", "p95": "95th percentile"}, "time to load")
    words = ", ".join(f"{r['group']} {r['mean']:.1f} s" for r in shown.to_dicts())
    parts: list[Part] = [
        FigurePart("cold-starts", "Cold starts", figure, f"Time to load, means: {words}.", shown, half=True)
    ]
    rows = [
        (r["group"], f"{r['count']:,}", *(f"{r[c]:,.1f} s" for c in ("mean", "p50", "p95", "p99")))
        for r in shown.to_dicts()
    ]
    kinds = {"what is loaded": Kind.TEXT} | dict.fromkeys(("samples", "mean", "median", "p95", "p99"), Kind.NUMBER)
    return [*parts, TablePart("Cold starts", kinds, tuple(rows))]


def _correlations(topic: Topic) -> list[Part]:
    frame = topic.table("correlations")
    if frame is None:
        return []
    names = list(dict.fromkeys([*frame["first"], *frame["second"]]))
    values = {(r["first"], r["second"]): r["rho"] for r in frame.to_dicts()}
    top = frame.sort(pl.col("rho").abs()).row(-1, named=True)
    caption = (
        f"Spearman's correlation of means over five-minute bins; strongest {metric(top['first'])} with "
        f"{metric(top['second'])} ({top['rho']:+.2f} over {top['bins']:,} bins)."
    )
    figure = matrices.matrix(names, values, "Spearman", metric)
    return [FigurePart("correlations", "What moves together", figure, caption, frame)]
