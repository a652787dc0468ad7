"""The comparison of scaling rules as a directory: its table, every decision, a page, and manifests of the chosen rules."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from gputwin.autoscaling.compare import Comparison
from gputwin.autoscaling.decisions.registry import rule_from_plain
from gputwin.autoscaling.manifests.files import manifest_text
from gputwin.core.atomic import atomic_directory
from gputwin.core.errors import UserError
from gputwin.report.html import render
from gputwin.report.report_input import name_of
from gputwin.report.sections.autoscale import autoscale
from gputwin.report.sections.method import method
from gputwin.traces.dataset import Trace

DATA_FILE, SERIES_FILE, PAGE_FILE = "autoscale.json", "decisions.parquet", "autoscale.html"


def write_autoscale_report(path: Path, trace: Trace, result: Comparison) -> Path:
    """Write the comparison to the directory `path`, all or nothing, and return the path of the page."""
    section = autoscale(result)
    series = pl.concat([pl.DataFrame({"rule": r.rule, **vars(r.run.series)}) for r in result.rows])
    with atomic_directory(path, marker=DATA_FILE) as folder:
        text = json.dumps(result.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        (folder / DATA_FILE).write_text(text + "\n", encoding="utf-8")
        series.write_parquet(folder / SERIES_FILE)
        for rule, manifest in _manifests(result).items():
            (folder / f"{rule}.yaml").write_text(manifest, encoding="utf-8")
        (folder / PAGE_FILE).write_bytes(render(f"Scaling rules: {name_of(trace)}", (section, method([section]))))
    return path / PAGE_FILE


def _manifests(result: Comparison) -> dict[str, str]:
    """Return the rules that Kubernetes has an object for, as YAML, with the settings that were chosen."""
    texts = {}
    for row in result.rows:
        if not row.parameters:
            continue
        try:
            texts[row.rule] = manifest_text(rule_from_plain(row.parameters))
        except UserError:
            # Threshold, predictive and hybrid rules run as a controller of their own.
            continue
    return texts
