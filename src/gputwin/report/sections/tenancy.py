"""Virtual clusters: how full, how often queued, and whether GPUs stood idle meanwhile."""

from __future__ import annotations

import polars as pl

from gputwin.core.units import percent, short_duration
from gputwin.report import charts
from gputwin.report.aggregates import mean
from gputwin.report.page import FigurePart, Findings, Kind, Part, Section, TablePart, number
from gputwin.report.subject import Subject

_MOST = 20


def tenancy(subject: Subject) -> Section | None:
    """Return the section on virtual clusters; None where the series do not tell their state."""
    topic = subject.analysis.topic("tenancy")
    if topic is None:
        return None
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
    parts: list[Part] = [FigurePart("virtual-clusters", "GPUs over time", figure, caption, shown)]
    shares = {
        "allocated_share": "allocated",
        "queues_share": "time with a queue",
        "queues_beside_idle_share": "time with a queue while GPUs are idle",
    }
    figure = charts.bars(by.head(_MOST), "entity", shares, "share", percent=True)
    top = by.sort("queues_share").row(-1, named=True)
    caption = (
        f"By virtual cluster, largest first; {top['entity']} queues most: "
        f"{percent(top['queues_share'], 1)} of the time."
    )
    parts.append(FigurePart("virtual-cluster-queues", "Full, and queued while GPUs are idle", figure, caption, by))
    rows = [
        (
            r["entity"],
            *(number(r[c]) for c in ("total_gpus", "running_gpus", "pending_gpus")),
            *(
                "–" if r.get(c) is None else percent(r[c], 1)
                for c in (*shares, "large_queue_share", "small_queue_share")
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
    parts.append(TablePart("Virtual clusters", kinds, tuple(rows)))
    return Section("tenancy", "Virtual clusters", (*parts, Findings(topic.remarks)), topic.notes)
