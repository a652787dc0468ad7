"""MIG layouts as a directory: the mig-parted file, the figures as JSON, and a page."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from gputwin.core.atomic import atomic_directory
from gputwin.optimization.mig.fleet import FleetPlan
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


def mig_section(plan: FleetPlan, least: int) -> Section:
    """Return the section of a fleet's layouts."""
    data, served = plan.to_json(), plan.served
    all_met = served == plan.demand
    text = f"{sum(served.values()):,} of {sum(plan.demand.values()):,} instances are served by {plan.gpus_used:,} GPUs"
    text += (
        "; no layouts serve more."
        if data["is_optimal"]
        else f"; at most {plan.bound:,} of value could be, {plan.value:,} is."
    )
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
            Statement(text, Tone.GOOD if all_met else Tone.WARNING),
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
    )


def write_mig_report(path: Path, plan: FleetPlan, least: int) -> Path:
    """Write the layouts to the directory `path`, all or nothing, and return the path of the page."""
    section = mig_section(plan, least)
    with atomic_directory(path, marker=DATA_FILE) as folder:
        (folder / DATA_FILE).write_text(json.dumps(plan.to_json(), indent=1) + "\n", encoding="utf-8")
        (folder / PARTED_FILE).write_text(parted_text(plan.after), encoding="utf-8")
        page = render(f"MIG layouts of {len(plan.after):,} {plan.gpu.name}", (section, method([section])))
        (folder / PAGE_FILE).write_bytes(page)
    return path / PAGE_FILE
