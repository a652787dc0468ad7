"""MIG layouts as a directory: the mig-parted file, the figures as JSON, and a page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from gputwin.core.atomic import atomic_directory
from gputwin.optimization.mig.fleet import FleetPlan
from gputwin.optimization.mig.layouts import Layout, mix_of
from gputwin.optimization.mig.over_time import Periods
from gputwin.optimization.mig.parted import parted_text
from gputwin.report.figures import blank
from gputwin.report.html import render
from gputwin.report.page import Card, Cards, FigurePart, Kind, Section, Statement, TablePart, Tone
from gputwin.report.sections.method import method

DATA_FILE, PAGE_FILE, PARTED_FILE = "mig.json", "mig.html", "mig-parted.yaml"
_NOTES = (
    "Layouts are those NVIDIA's tables allow: instances stand on memory slices, at given starts. The program over "
    "layouts is exact: most value served, then fewest instances created and destroyed, then fewest GPUs.",
)


def verdict(plan: FleetPlan) -> str:
    """Return in one sentence how much of the demand is served, and whether more could be."""
    served = sum(plan.served.values())
    asked, gpus = sum(plan.demand.values()), f"{plan.gpus_used:,} of {len(plan.after):,} GPUs"
    if served == asked:
        return f"All {asked:,} instances fit on {gpus}."
    text = f"{served:,} of {asked:,} instances are served, on {gpus}"
    if plan.value >= plan.bound:
        return f"{text}; no layout serves more."
    return f"{text}; at most {plan.bound:,} of value could be, {plan.value:,} is."


def mig_section(plan: FleetPlan, least: int) -> Section:
    """Return the section of a fleet's layouts."""
    data, served = plan.to_json(), plan.served
    all_met = served == plan.demand
    frame = pl.DataFrame(
        {"profile": list(plan.demand), "wanted": list(plan.demand.values()), "served": [served[n] for n in plan.demand]}
    )
    figure = blank(height=320, yaxis={"title": "instances"}, showlegend=True, barmode="group")
    for column in ("wanted", "served"):
        figure.add_bar(x=frame["profile"].to_list(), y=frame[column].to_list(), name=column)
    rows = tuple(
        (", ".join(f"{n} × {p}" for p, n in m["mix"].items()) or "not cut", f"{m['gpus']:,}") for m in data["mixes"]
    )
    cards = (
        Card("GPUs", f"{len(plan.after):,}", plan.gpu.name),
        Card("Needed for all", f"{least:,}", "fewest, exact"),
        Card("Instances created", f"{plan.created:,}"),
        Card("Instances destroyed", f"{plan.destroyed:,}"),
    )
    return Section(
        "mig",
        "MIG layouts",
        (
            Statement(verdict(plan), Tone.GOOD if all_met else Tone.WARNING),
            Cards(cards),
            FigurePart("mig-served", "Demand and what is served", figure, "Instances by profile.", frame),
            TablePart("Layouts", {"mix on one GPU": Kind.TEXT, "GPUs": Kind.NUMBER}, rows),
        ),
        _NOTES,
        f"How should {len(plan.after):,} {plan.gpu.name} be cut to serve this demand?",
        ("Apply the layouts: `nvidia-mig-parted apply -f mig-parted.yaml`, the file in the same folder.",)
        if all_met
        else (
            f"Serve all of it: {least:,} GPUs are needed.",
            "Or serve what matters most: give values with `--value`.",
        ),
        conclusion=_layouts_words(data["mixes"]),
    )


def _layouts_words(mixes: Sequence[Mapping[str, Any]]) -> str:
    """Return how many layouts there are, and the one that most GPUs have."""
    cut = [m for m in mixes if m["mix"]]
    if not cut:
        return "No GPU is cut."
    most = max(cut, key=lambda m: m["gpus"])
    mix = " and ".join(f"{n} × {p}" for p, n in most["mix"].items())
    return f"{len(cut)} layout{'s' if len(cut) > 1 else ''}; most GPUs, {most['gpus']:,}, have {mix}."


def write_mig_report(path: Path, plan: FleetPlan, least: int) -> Path:
    """Write the layouts to the directory `path`, all or nothing, and return the path of the page."""
    title = f"MIG layouts of {len(plan.after):,} {plan.gpu.name}"
    return _write(path, title, mig_section(plan, least), plan.to_json(), {"gputwin": plan.after})


def periods_verdict(plan: Periods, demands: Sequence[Mapping[str, int]]) -> str:
    """Return in one sentence how much of the demand is served over the periods, and what cutting it takes."""
    served, asked = sum(sum(s.values()) for s in plan.served), sum(sum(d.values()) for d in demands)
    text = (
        f"{served:,} of {asked:,} instances of {len(demands)} periods are served, with {sum(plan.changes):,} instances "
        "created and destroyed on the way"
    )
    if plan.objective >= plan.bound:
        return f"{text}; nothing else is worth more, the cost of cutting taken off."
    return f"{text}; worth {plan.objective:,} with the cost of cutting taken off, and nothing is worth above {plan.bound:,}."


def periods_section(plan: Periods, demands: Sequence[Mapping[str, int]]) -> Section:
    """Return the section of a fleet's layouts over several periods."""
    rows = [
        (k + 1, name, n, served.get(name, 0))
        for k, (demand, served) in enumerate(zip(demands, plan.served, strict=True))
        for name, n in demand.items()
    ]
    frame = pl.DataFrame(rows, schema=["period", "profile", "wanted", "served"], orient="row")
    figure = blank(
        height=360,
        yaxis={"title": "instances"},
        xaxis={"title": "period", "dtick": 1},
        showlegend=True,
        barmode="stack",
    )
    for (name,), part in frame.group_by("profile", maintain_order=True):
        figure.add_bar(x=part["period"].to_list(), y=part["served"].to_list(), name=f"{name} served")
    missing = frame.group_by("period", maintain_order=True).agg((pl.col("wanted") - pl.col("served")).sum())
    unserved = missing["wanted"].to_list()
    figure.add_bar(x=missing["period"].to_list(), y=unserved, name="not served", marker={"color": "#8a949e"})
    all_met = bool((frame["wanted"] == frame["served"]).all())
    cards = (
        Card("GPUs", f"{len(plan.gpus[0]):,}", plan.gpu.name),
        Card("Served", f"{frame['served'].sum():,}", f"of {frame['wanted'].sum():,} instances"),
        Card("Instances created and destroyed", f"{sum(plan.changes):,}"),
        Card("Value", f"{plan.objective:,}", f"with the cost of cutting taken off; at most {plan.bound:,}"),
    )
    table = tuple(
        (str(k + 1), ", ".join(f"{n} × {p}" for p, n in mix) or "not cut", f"{gpus:,}", f"{changes:,}")
        for k, (period, changes) in enumerate(zip(plan.gpus, plan.changes, strict=True))
        for mix, gpus in Counter(mix_of(layout) for layout in period).most_common()
    )
    columns = {
        "period": Kind.NUMBER,
        "mix on one GPU": Kind.TEXT,
        "GPUs": Kind.NUMBER,
        "changes at its start": Kind.NUMBER,
    }
    return Section(
        "mig",
        "MIG layouts over time",
        (
            Statement(periods_verdict(plan, demands), Tone.GOOD if all_met else Tone.WARNING),
            Cards(cards),
            FigurePart("mig-periods", "What is served in each period", figure, "Instances by profile.", frame),
            TablePart("Layouts", columns, table),
        ),
        (
            "A GPU may have any layout NVIDIA's tables allow. The program weighs the value served against the cost of "
            "every instance created or destroyed, and is exact.",
        ),
        f"How should {len(plan.gpus[0]):,} {plan.gpu.name} be cut as demand changes?",
        (
            "Apply a period's layouts: `nvidia-mig-parted apply -f mig-parted.yaml -c period-2`, the file in this folder.",
        ),
        conclusion=_periods_words(frame),
    )


def _periods_words(frame: pl.DataFrame) -> str:
    """Return in which periods all of the demand is served, or which is served least."""
    periods = frame.group_by("period", maintain_order=True).agg(pl.col("wanted", "served").sum())
    worst = periods.sort(pl.col("served") - pl.col("wanted"), maintain_order=True).row(0, named=True)
    whole = periods.filter(pl.col("served") == pl.col("wanted")).height
    if whole == periods.height:
        return "All of the demand is served in every period."
    return (
        f"All of the demand is served in {whole} of {periods.height} periods; most is missing in period {worst['period']}: "
        f"{worst['served']:,} of {worst['wanted']:,} instances are served."
    )


def write_periods_report(path: Path, plan: Periods, demands: Sequence[Mapping[str, int]]) -> Path:
    """Write the layouts of all periods to the directory `path`, all or nothing, and return the path of the page."""
    title = f"MIG layouts of {len(plan.gpus[0]):,} {plan.gpu.name} over {len(demands)} periods"
    configs = {f"period-{k + 1}": layouts for k, layouts in enumerate(plan.gpus)}
    return _write(path, title, periods_section(plan, demands), plan.to_json(demands), configs)


def _write(
    path: Path, title: str, section: Section, data: Mapping[str, Any], configs: Mapping[str, Sequence[Layout]]
) -> Path:
    with atomic_directory(path, marker=DATA_FILE) as folder:
        (folder / DATA_FILE).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
        (folder / PARTED_FILE).write_text(parted_text(configs), encoding="utf-8")
        (folder / PAGE_FILE).write_bytes(render(title, (section, method([section]))))
    return path / PAGE_FILE
