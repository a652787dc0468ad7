"""Machines: how busy they are, what they wait for, how evenly they are filled."""

from __future__ import annotations

import numpy as np
import polars as pl

from gputwin.analysis.machines import METRICS
from gputwin.analysis.topic import Topic
from gputwin.core.units import percent
from gputwin.report import charts
from gputwin.report.aggregates import mean
from gputwin.report.page import FigurePart, Findings, Kind, Part, Section, TablePart, number
from gputwin.report.report_input import ReportInput

_CPU = {
    "cpu_user_percent": "user mode",
    "cpu_kernel_percent": "kernel mode",
    "cpu_iowait_percent": "waiting for I/O",
    "gpu_percent": "GPU busy",
}


def machines(subject: ReportInput) -> Section | None:
    """Return the section on machines; None where the trace has nothing on them."""
    topic = subject.analysis.topic("machines")
    if topic is None:
        return None
    parts: list[Part] = [*_curves(topic), *_evenness(topic)]
    if topic.remarks:
        parts.append(Findings(topic.remarks))
    return Section("machines", "Machines", tuple(parts), topic.notes) if parts else None


def _curves(topic: Topic) -> list[Part]:
    curves, means = topic.table("curves"), topic.table("machines")
    if curves is None or means is None:
        return []
    parts: list[Part] = []
    cpu = curves.filter(pl.col("metric").is_in(list(_CPU))).with_columns(pl.col("metric").replace(_CPU).alias("of"))
    if not cpu.is_empty():
        figure = charts.curves(cpu, "of", "% of the time", "machines", scale="linear")
        words = ", ".join(f"{name} {mean(means[c]):.2f} %" for c, name in _CPU.items() if means[c].count())
        caption = f"Over {means.height:,} machines, means: {words}."
        parts.append(FigurePart("machine-cpu", "What machines spend their time on", figure, caption, cpu, half=True))
    network = curves.filter(pl.col("metric") == "network_receive_bytes").with_columns(pl.col("value") / 2**20)
    if not network.is_empty():
        figure = charts.curves(network, "metric", "MiB/s received", "machines", scale="linear")
        median = float(means["network_receive_bytes"].median() or 0.0) / 2**20  # type: ignore[arg-type]
        caption = (
            "Mean network receive rate of each machine, as the source counts it; the median machine takes "
            f"{median:,.1f} MiB/s."
        )
        parts.append(FigurePart("machine-network", "Network", figure, caption, network, half=True))
    rows = []
    for metric, name in METRICS.items():
        values = means[metric].drop_nulls()
        if values.len():
            spread = [values.mean(), *(values.quantile(q, "linear") for q in (0.5, 0.95, 0.99)), values.max()]
            rows.append((name, f"{values.len():,}", *(number(float(v)) for v in spread)))  # type: ignore[arg-type]
    kinds = {"metric": Kind.TEXT} | dict.fromkeys(("machines", "mean", "median", "p95", "p99", "max"), Kind.NUMBER)
    return [*parts, TablePart("Machines' means", kinds, tuple(rows))] if rows else parts


def _evenness(topic: Topic) -> list[Part]:
    placed = topic.table("placements")
    if placed is None or float(placed["instance_hours"].sum()) <= 0:
        return []
    hours = placed["instance_hours"].sort(descending=True).to_numpy()
    ranks = np.unique(np.linspace(0, hours.size, min(hours.size + 1, 300)).round().astype(np.int64))
    held = np.concatenate([[0.0], np.cumsum(hours)]) / hours.sum()
    frame = pl.DataFrame({"of": "instance-hours", "value": ranks / hours.size, "share": held[ranks].clip(max=1.0)})
    figure = charts.curves(frame, "of", "share of machines, fullest first", "instance-hours", scale="percent")
    tenth = float(held[max(round(hours.size / 10), 1)])
    caption = (
        f"The fullest tenth of {hours.size:,} machines holds {percent(tenth, 1)} of the instance-hours; evenly filled it "
        "would be 10 %."
    )
    return [FigurePart("evenness", "How evenly machines are filled", figure, caption, frame, half=True)]
