"""One job of a run: why it waited, who held what it needed, when it could have started otherwise, and where it ran."""

from __future__ import annotations

import polars as pl

from gputwin.core.units import WHOLE_GPU_MILLI, format_duration, percent
from gputwin.report import charts
from gputwin.report.page import (
    Bullets,
    Card,
    Cards,
    FigurePart,
    Kind,
    Part,
    Section,
    Statement,
    TablePart,
    Tone,
    number,
)
from gputwin.report.timeline import Timeline
from gputwin.simulation.cause_words import cause_words
from gputwin.simulation.explanation import Explanation
from gputwin.simulation.priority_parts import FACTORS, points
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.verdict import LONG_WAIT

_MOST_STRETCHES = 50


def explanation_section(result: SimulationResult, found: Explanation, timeline: Timeline) -> Section:
    """Return the section on one job."""
    story = found.story()
    tone = Tone.WARNING if (found.wait_seconds or 0.0) > LONG_WAIT or found.start_time is None else Tone.NEUTRAL
    parts: list[Part] = [Statement(" ".join(story[:3]), tone), _cards(found, timeline)]
    parts += [part for part in (_causes(found),) if part is not None]
    if story[3:]:
        parts.append(Bullets(tuple(story[3:])))
    parts += _otherwise(found)
    parts += _priority(found)
    parts += _others("Jobs that held what it needed", found.holders, "gpu_hours", "GPU-hours during the wait")
    parts += _others("Jobs that came later and started before it", found.overtakers, None, "")
    parts += _places(result, found, timeline)
    return Section("job", "Who held what it needed, and where it ran", tuple(parts), (), "Why did this job wait?")


def _cards(found: Explanation, timeline: Timeline) -> Cards:
    wait = "–" if found.wait_seconds is None else format_duration(found.wait_seconds)
    size = f"{found.instances:,} instance{'s' if found.instances != 1 else ''}"
    return Cards(
        (
            Card("Wait", wait, found.outcome.replace("_", " ")),
            Card("GPUs", f"{found.gpus:g}", size),
            Card("Submitted", timeline.words(found.submit_time), f"by {found.tenant}"),
            Card("Started before it", f"{found.overtaken_by:,}", "jobs that came later"),
        )
    )


def _causes(found: Explanation) -> FigurePart | None:
    waited = {k: v for k, v in sorted(found.causes_seconds.items(), key=lambda kv: -kv[1]) if v > 0}
    if len(waited) < 2:
        return None
    total = sum(waited.values())
    frame = pl.DataFrame(
        {
            "cause": [cause_words(k, found.has_rounds) for k in waited],
            "minutes": [v / 60 for v in waited.values()],
        }
    )
    figure = charts.bars(frame, "cause", {"minutes": "waited"}, "minutes waited")
    figure.update_layout(height=300)
    top, seconds = next(iter(waited.items()))
    words = cause_words(top, found.has_rounds)
    caption = f"Every waiting second has one cause; {percent(seconds / total)} of the wait is {words}."
    return FigurePart("job-causes", "What it waited for", figure, caption, frame)


def _otherwise(found: Explanation) -> list[Part]:
    if not found.could_have_started:
        return []
    rows = tuple(
        (what, "no sooner" if after is None else format_duration(after))
        for what, after in found.could_have_started.items()
    )
    return [TablePart("When it could have started", {"with": Kind.TEXT, "after waiting": Kind.NUMBER}, rows)]


def _priority(found: Explanation) -> list[Part]:
    """Return what each factor added to its priority, when it came and when it started."""
    at = {"when submitted": found.priority_at_submit, "when it started": found.priority_at_start}
    known = {when: parts for when, parts in at.items() if parts is not None}
    if not known:
        return []
    names = list(dict.fromkeys(name for parts in known.values() for name in parts.parts))
    rows = [
        (FACTORS.get(name, name.replace("_", " ")), *(points(p.parts.get(name, 0.0)) for p in known.values()))
        for name in names
        if any(p.parts.get(name) for p in known.values())
    ]
    rows.append(("priority", *(points(p.priority) for p in known.values())))
    return [TablePart("What made its priority", {"factor": Kind.TEXT} | dict.fromkeys(known, Kind.NUMBER), tuple(rows))]


def _others(title: str, jobs: list[dict[str, object]], column: str | None, name: str) -> list[Part]:
    if not jobs:
        return []
    kinds = {"job": Kind.CODE, "tenant": Kind.CODE, "GPUs": Kind.NUMBER} | ({name: Kind.NUMBER} if column else {})
    rows = tuple(
        (
            str(j["job_id"]),
            str(j["tenant"]),
            f"{j['gpus']:g}",
            *((number(float(str(j[column]))),) if column else ()),
        )
        for j in jobs
    )
    return [TablePart(title, kinds, rows)]


def _places(result: SimulationResult, found: Explanation, timeline: Timeline) -> list[Part]:
    """Return where the job ran, from when until when, and why each stretch ended."""
    row = result.jobs.with_row_index("job").filter(pl.col("job_id") == found.job_id)["job"]
    segments = result.segments.with_row_index("segment").filter(pl.col("job") == row[0])
    if segments.is_empty():
        return []
    gpus = (pl.col("gpu_count").cast(pl.Int64) * pl.col("gpu_milli")).sum() / WHOLE_GPU_MILLI
    nodes = result.nodes.with_row_index("node").select("node", "node_id")
    held = (
        result.placements.join(segments.select("segment"), on="segment", how="semi")
        .join(nodes, on="node")
        .group_by("segment", "node_id", maintain_order=True)
        .agg(gpus.alias("gpus"))
        .join(segments, on="segment")
        .sort("start_time", "node_id")
    )
    rows = tuple(
        (
            r["node_id"],
            f"{r['gpus']:g}",
            timeline.words(r["start_time"]),
            format_duration(max(r["end_time"] - r["start_time"], 0.0)),
            str(r["why"]).replace("_", " "),
        )
        for r in held.head(_MOST_STRETCHES).to_dicts()
    )
    kinds = {
        "node": Kind.CODE,
        "GPUs": Kind.NUMBER,
        "from": Kind.TEXT,
        "for": Kind.NUMBER,
        "then": Kind.TEXT,
    }
    left = held.height - len(rows)
    return [TablePart("Where it ran", kinds, rows, f"{left:,} more are not listed." if left > 0 else "")]
