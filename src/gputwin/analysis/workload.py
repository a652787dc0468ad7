"""What was asked of the cluster: when, by whom, how bursty, how often again."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gputwin.analysis.arrivals import burstiness, hourly_pattern, interarrival
from gputwin.analysis.dimensions import BY_NAME, WEEKDAYS, Dimension
from gputwin.analysis.frames import Frame
from gputwin.analysis.population import composition, instances_per_task, owners, recurrence
from gputwin.analysis.tasks import TaskFacts
from gputwin.analysis.topic import Remark, Topic
from gputwin.analysis.words import share, times, unit_words
from gputwin.core.units import DAY

OWNERS = ("user", "tenant", "application")
COMPOSED = ("gpu_request", "job_class", "workload", "role", "gpu_model", "qos")
_NOTES = (
    "Arrival is the submit time, or the start time where the source has no submit time.",
    "The index of dispersion is the variance of counts per bin over their mean: 1 at every scale for a Poisson process. "
    "CV is the standard deviation of gaps between arrivals over their mean: 1 for a Poisson process.",
    "Short and long are separated by the median runtime of the trace. GPU-hours are GPUs asked for × "
    "time held within the trace.",
)


def workload(frame: Frame, facts: TaskFacts, dimensions: Sequence[Dimension]) -> Topic:
    """Return what was asked of the cluster."""
    tables = {"instances_per_task": instances_per_task(frame)}
    if facts.knows("arrival"):
        tables |= {"burstiness": burstiness(frame), "interarrival": interarrival(frame)}
    if BY_NAME["hour"] in dimensions:
        tables["hourly"] = hourly_pattern(frame)
    for name in OWNERS:
        if facts.knows(name):
            totals = owners(frame, name)
            if totals.height > 1:
                tables[f"{name}s"] = totals
    if facts.knows("group"):
        tables["recurrence"] = recurrence(frame)
    parts = [composition(frame, d) for d in dimensions if d.name in COMPOSED]
    parts = [p for p in parts if p.height > 1 or p["dimension"][:1].to_list() == ["gpu_request"]]
    if parts:
        tables["composition"] = pl.concat(parts)
    tables = {name: table for name, table in tables.items() if not table.is_empty()}
    span = facts.last_arrival - facts.first_arrival
    remarks = (*_burst_remarks(tables), *_pattern_remarks(tables, span), *_population_remarks(tables))
    return Topic("workload", "Workload", tables, remarks, _NOTES)


_SCALES = ("1 h", "6 h", "1 d", "5 min", "1 min")
"""Intervals by which arrivals are judged, the first that is known."""


def _burst_remarks(tables: dict[str, pl.DataFrame]) -> list[Remark]:
    if "burstiness" not in tables or "interarrival" not in tables:
        return []
    # Intervals that bring less than one task on average look even whatever comes.
    scales = {r["scale"]: r for r in tables["burstiness"].to_dicts() if r["mean"] >= 1}
    gaps = tables["interarrival"].row(0, named=True)
    name, r = next(((n, scales[n]) for n in _SCALES if n in scales), (None, None))
    if name is None or r is None or gaps["cv"] is None:
        return []
    degree = "in strong bursts" if r["dispersion"] > 10 else "in bursts" if r["dispersion"] > 2 else "evenly"
    unit = unit_words(name)
    text = f"Tasks arrive {degree}: the busiest {unit} brings {times(r['peak_over_mean'])} the mean"
    if r["empty_share"] > 0:
        text += (
            f"; none arrives in {share(r['empty_share'])} of all {f'spans of {unit}' if unit == name else f'{unit}s'}"
        )
    text += "."
    remarks = [Remark(text)]
    if gaps["together_share"] > 0.2:
        remarks.append(
            Remark(
                f"{share(gaps['together_share'])} of tasks arrive at the very time of another: they come in batches."
            )
        )
    return remarks


def _pattern_remarks(tables: dict[str, pl.DataFrame], span: float) -> list[Remark]:
    if "hourly" not in tables or span < 2 * DAY:
        return []
    hours = tables["hourly"].group_by("hour").agg(pl.col("tasks").sum()).sort("tasks")
    if hours.height < 24:
        return []
    quiet, busy = hours.row(0, named=True), hours.row(-1, named=True)
    text = (
        f"By local hour, most arrive from {busy['hour']:02d}:00, {times(busy['tasks'] / quiet['tasks'])} as many as from "
        f"{quiet['hour']:02d}:00"
    )
    days = tables["hourly"].group_by("weekday").agg(pl.col("tasks").sum(), pl.col("week").n_unique().alias("weeks"))
    days = days.with_columns((pl.col("tasks") / pl.col("weeks")).alias("rate")).sort("rate")
    if days.height == 7:
        text += (
            f"; the busiest day is {WEEKDAYS[days['weekday'][-1] - 1]}, the quietest {WEEKDAYS[days['weekday'][0] - 1]}"
        )
    return [Remark(f"{text}.")]


def _population_remarks(tables: dict[str, pl.DataFrame]) -> list[Remark]:
    remarks = []
    name = next((n for n in OWNERS if f"{n}s" in tables), None)
    if name:
        totals = tables[f"{name}s"]
        top = max(-(-totals.height // 20), 1)
        part = share(float(totals["task_share"].head(top).sum()))
        most = f"{top:,} most active" if top > 1 else "most active"
        verb = "submit" if top > 1 else "submits"
        remarks.append(Remark(f"The {most} of {totals.height:,} {name}s {verb} {part} of the tasks."))
    if "recurrence" in tables:
        again = tables["recurrence"].filter(~pl.col("runs").is_in(["1", "2–4"]))
        part = share(float(again["task_share"].sum()))
        text = f"{part} of tasks belong to groups that ran five times or more: their past shows what to expect."
        remarks.append(Remark(text))
    if "composition" in tables:
        classes = tables["composition"].filter(pl.col("dimension") == "job_class")
        if classes.height > 1 and classes["gpu_hour_share"].null_count() == 0:
            is_long = pl.col("group").str.starts_with("long")
            held, rest = (float(classes.filter(x)["gpu_hour_share"].sum()) for x in (is_long, ~is_long))
            text = f"The longer half of tasks holds {share(held)} of the GPU-hours, the shorter half {share(rest)}"
            remarks.append(Remark(f"{text}: a scheduler that lets short tasks pass gives up little."))
    return remarks
