"""Whether the trace fits the cluster: offered load over time against capacity, and tasks that never can run."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gputwin.core.units import RESOURCE_UNITS, format_duration, percent
from gputwin.report import figures
from gputwin.report.page import FigurePart, Kind, Part, Section, Statement, TablePart, Tone
from gputwin.report.report_input import ReportInput
from gputwin.simulation.load import LoadCheck
from gputwin.simulation.offered import ANY, Load

_MOST_CURVES = 8
_MOST_ROWS = 40
_NAMES = {"gpu_milli": "GPU", "cpu_milli": "CPU", "memory_mib": "memory", "disk_mib": "disk", "rdma_percent": "RDMA"}
_NOTES = (
    "Offered load is what the tasks would occupy if each started on arrival and ran as long as it did; a task that ran "
    "when the trace began occupies its share from then on, one alive at the end until then. Above 1, a queue forms "
    "whatever the scheduler does.",
    "The load of a set of GPU models counts the tasks that may run on no other model. Means are over the window from the "
    "first to the last arrival (from the trace's beginning where tasks ran then already), curves and the 95th percentile "
    "over 400 bins of it; the peak is instantaneous.",
    "A task can never be placed if the empty cluster could not hold it.",
)


def load(subject: ReportInput) -> Section | None:
    """Return the load check; None where none was made."""
    check = subject.check
    if check is None:
        return None
    parts: list[Part] = [Statement(" ".join([check.verdict, *check.window.sentences()]), tone_of(check))]
    whole = [x for x in check.loads if x.models == ANY]
    bound = sorted((x for x in check.loads if x.models != ANY), key=lambda x: -x.mean)
    parts += _curves(subject, check, "load", "Offered load of the whole cluster", whole)
    parts += _curves(subject, check, "load-by-model", "Offered load bound to GPU models", bound)
    if check.loads:
        parts.append(load_table([*whole, *bound]))
    if not check.never_fit.is_empty():
        parts.append(never_table(check))
    return Section("load", "Load check", tuple(parts), _NOTES)


def tone_of(check: LoadCheck) -> Tone:
    """Return whether the load check is good news, bad news or neither."""
    if any(x.mean >= 1 or x.time_above_capacity > 0 for x in check.loads) or not check.never_fit.is_empty():
        return Tone.WARNING
    # Where tasks of unknown life could turn the answer, there is none.
    is_sure = bool(check.loads) and all(x.peak_at_most <= 1 for x in check.loads)
    return Tone.GOOD if is_sure else Tone.NEUTRAL


def _curves(subject: ReportInput, check: LoadCheck, id_: str, title: str, loads: list[Load]) -> list[Part]:
    loads = loads[:_MOST_CURVES]
    if not loads:
        return []
    labels = pl.DataFrame(
        [(x.resource, x.models, _label(x)) for x in loads],
        schema={"resource": pl.String, "models": pl.String, "label": pl.String},
        orient="row",
    )
    timeline = subject.timeline.until(float(check.series["time"].max()))  # type: ignore[arg-type]
    frame = check.series.join(labels, on=["resource", "models"], maintain_order="left").select(
        "time", timeline.shown(pl.col("time")).alias("at"), "resource", "models", "label", "load"
    )
    top = max(loads, key=lambda x: x.mean)
    caption = (
        f"The most loaded is {_label(top)}: {percent(top.mean, 1)} of {_capacity(top)} on average, 95th percentile "
        f"{percent(top.p95, 1)}, peak {percent(top.peak, 1)}, {_above(top)}."
    )
    highest = max(loads, key=lambda x: x.peak)
    if highest is not top:
        caption += f" The highest peak is {_label(highest)}: {percent(highest.peak, 1)}, {_above(highest)}."
    caption += f" Means over bins of {format_duration(_bin_width(frame))}."
    figure = figures.load_over_time(frame, timeline.axis, labels["label"].to_list())
    return [FigurePart(id_, title, figure, caption, frame)]


def _above(x: Load) -> str:
    return (
        f"above capacity {percent(x.time_above_capacity, 1)} of the time"
        if x.time_above_capacity
        else "never above capacity"
    )


def _bin_width(frame: pl.DataFrame) -> float | None:
    times = frame["time"].unique().sort()
    return float(times[1] - times[0]) if times.len() > 1 else None


def _label(x: Load) -> str:
    name = _NAMES.get(x.resource, x.resource)
    return name if x.models == ANY else f"{name} {x.models}"


def _capacity(x: Load) -> str:
    size, unit = RESOURCE_UNITS.get(x.resource, (1, x.resource))
    return f"{x.capacity / size:,.0f} {unit}"


def load_table(loads: Sequence[Load]) -> TablePart:
    """Return the offered load of each resource and set of GPU models as a share of what there is."""
    rows = [
        (
            _NAMES.get(x.resource, x.resource),
            x.models,
            _capacity(x),
            *(percent(share, 1) for share in (x.mean, x.p95, x.peak, x.time_above_capacity)),
        )
        for x in loads[:_MOST_ROWS]
    ]
    kinds = {"resource": Kind.TEXT, "GPU models": Kind.TEXT} | dict.fromkeys(
        ("capacity", "mean", "p95", "peak", "time above capacity"), Kind.NUMBER
    )
    left = len(loads) - len(rows)
    note = f"{left:,} sets of GPU models with less load are not listed." if left else ""
    return TablePart("Offered load as a share of capacity", kinds, tuple(rows), note)


def never_table(check: LoadCheck) -> TablePart:
    """Return why tasks can never be placed, the most frequent reason first."""
    reasons = check.never_fit_by_reason()
    rows = [
        (f"{r['tasks']:,}", percent(r["tasks"] / check.tasks, 2), r["reason"], r["example_job"])
        for r in reasons.head(_MOST_ROWS).to_dicts()
    ]
    kinds = {"tasks": Kind.NUMBER, "of all": Kind.NUMBER, "why": Kind.TEXT, "for example": Kind.CODE}
    left = reasons.height - len(rows)
    note = f"{left:,} further reasons are not listed." if left else ""
    return TablePart("Tasks that can never be placed", kinds, tuple(rows), note)
