"""Virtual clusters: how full, how often queued, and whether GPUs stood idle meanwhile."""

from __future__ import annotations

import polars as pl

from gputwin.analysis.topic import Topic
from gputwin.core.units import percent, short_duration
from gputwin.report import charts
from gputwin.report.aggregates import mean
from gputwin.report.page import Card, FigurePart, Findings, Kind, Part, Section, TablePart, number
from gputwin.report.report_input import ReportInput

_MOST = 20
_SHARES = {
    "allocated_share": "allocated",
    "queues_share": "time with a queue",
    "queues_beside_idle_share": "time with a queue while GPUs are idle",
}


def tenancy(subject: ReportInput) -> Section | None:
    """Return the section on virtual clusters; None where the series do not give their state.

    Where a trace has nothing but such series, GPUs over time are in the report's answer.
    """
    topic = subject.analysis.topic("tenancy")
    if topic is None:
        return None
    by = topic.tables["virtual_clusters"]
    parts: list[Part] = [] if is_state_alone(subject) else [state_over_time(subject, topic)]
    parts += [_queues(by), _table(by), Findings(topic.remarks)]
    return Section("tenancy", "Virtual clusters", tuple(parts), topic.notes)


def is_state_alone(subject: ReportInput) -> bool:
    """Return whether the trace gives the state of virtual clusters and neither tasks nor requests."""
    has_more = subject.description.tasks or subject.description.requests
    return subject.analysis.topic("tenancy") is not None and not has_more


def state_cards(topic: Topic) -> tuple[Card, ...]:
    """Return the GPUs of all virtual clusters, how many are allocated and waited for, and who queues most."""
    by = topic.tables["virtual_clusters"]
    total, running, pending = (float(by[name].sum()) for name in ("total_gpus", "running_gpus", "pending_gpus"))
    top = by.sort("queues_share").row(-1, named=True)
    cards = [Card("GPUs", f"{total:,.0f}", f"in {by.height} virtual cluster{'s' if by.height > 1 else ''}")]
    if total > 0:
        cards.append(Card("GPUs allocated", percent(running / total, 1), f"{running:,.1f} on average"))
    cards.append(Card("GPUs waited for", f"{pending:,.1f}", "on average"))
    cards.append(Card("Time with a queue", percent(top["queues_share"], 1), f"in {top['entity']}, which queues most"))
    idle = percent(top["queues_beside_idle_share"], 1)
    cards.append(Card("Queue while GPUs are idle", idle, f"of the time, in {top['entity']}"))
    return tuple(cards)


def state_over_time(subject: ReportInput, topic: Topic) -> FigurePart:
    """Return GPUs allocated, there and waited for over time."""
    by, over_time = topic.tables["virtual_clusters"], topic.tables["over_time"]
    timeline = subject.timeline.until(float(over_time["begin"].max()))  # type: ignore[arg-type]
    shown = over_time.with_columns(timeline.shown(pl.col("begin")).alias("at"))
    columns = {"running_gpus": "allocated", "total_gpus": "there", "pending_gpus": "waited for"}
    figure = charts.over_time(shown, columns, timeline.axis, "GPUs")
    width = (
        f" of {short_duration(float(over_time['begin'][1] - over_time['begin'][0]))}" if over_time.height > 1 else ""
    )
    caption = (
        f"Sums over {by.height} virtual clusters, means over bins{width}: {mean(over_time['running_gpus']):,.1f} of "
        f"{mean(over_time['total_gpus']):,.1f} GPUs allocated, {mean(over_time['pending_gpus']):,.1f} waited for."
    )
    return FigurePart("virtual-clusters", "GPUs over time", figure, caption, shown)


def _queues(by: pl.DataFrame) -> FigurePart:
    figure = charts.bars(by.head(_MOST), "entity", _SHARES, "share", percent=True)
    top = by.sort("queues_share").row(-1, named=True)
    caption = (
        f"By virtual cluster, largest first; {top['entity']} queues most: "
        f"{percent(top['queues_share'], 1)} of the time."
    )
    return FigurePart("virtual-cluster-queues", "Full, and queued while GPUs are idle", figure, caption, by)


def _table(by: pl.DataFrame) -> TablePart:
    rows = [
        (
            r["entity"],
            *(number(r[c]) for c in ("total_gpus", "running_gpus", "pending_gpus")),
            *(
                "–" if r.get(c) is None else percent(r[c], 1)
                for c in (*_SHARES, "large_queue_share", "small_queue_share")
            ),
        )
        for r in by.head(_MOST).to_dicts()
    ]
    names = (
        "GPUs",
        "allocated",
        "waited for",
        "share allocated",
        "queued",
        "queued while idle",
        "large jobs queue",
        "small jobs queue",
    )
    kinds = {"virtual cluster": Kind.CODE} | dict.fromkeys(names, Kind.NUMBER)
    return TablePart("Virtual clusters", kinds, tuple(rows))
