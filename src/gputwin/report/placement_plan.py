"""A placement as a directory: its figures as JSON, the patterns, and a page."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from gputwin.core.atomic import atomic_directory
from gputwin.optimization.placement.problem import PlacementResult
from gputwin.report.html import render
from gputwin.report.sections.method import method
from gputwin.report.sections.placement_plan import placement_plan

DATA_FILE, PAGE_FILE = "placement.json", "placement.html"


def patterns_frame(result: PlacementResult) -> pl.DataFrame:
    """Return one row per pattern and group: node type, nodes that hold it, group, instances on each."""
    schema = {"pattern": pl.Int64, "node_type": pl.String, "nodes": pl.Int64, "group": pl.String, "instances": pl.Int64}
    if result.packing is None:
        return pl.DataFrame(schema=schema)
    problem = result.problem
    rows = [
        (i, problem.types[use.node_type].name, use.nodes, problem.groups[problem.group_of[choice]].name, n)
        for i, use in enumerate(result.packing.uses)
        for choice, n in use.pattern
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def write_placement_report(path: Path, title: str, result: PlacementResult, *, are_nodes_assumed: bool = False) -> Path:
    """Write the placement to the directory `path`, all or nothing, and return the path of the page."""
    section = placement_plan(result, are_nodes_assumed=are_nodes_assumed)
    with atomic_directory(path, marker=DATA_FILE) as folder:
        text = json.dumps(result.to_json(), indent=1, ensure_ascii=False)
        (folder / DATA_FILE).write_text(text + "\n", encoding="utf-8")
        patterns_frame(result).write_parquet(folder / "patterns.parquet")
        (folder / PAGE_FILE).write_bytes(render(title, (section, method([section]))))
    return path / PAGE_FILE
