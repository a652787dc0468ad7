"""The page in a real browser: every figure is drawn, nothing fails, nothing is asked of the network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gputwin.cli.main import main
from gputwin.report import write_report
from gputwin.simulation.cluster import open_cluster
from gputwin.simulation.load import check_load
from gputwin.traces.synthetic import generate
from tests.report.browser import dom, needs_browser

REAL = {
    "dlrm2025": ["alibaba_v2025_dlrm"],
    "openb": ["alibaba_v2023_openb/openb_pod_list_default.csv.gz", "alibaba_v2023_openb/openb_node_list_gpu_node.csv"],
    "pai": ["alibaba_v2020_pai"],
    "philly": ["philly/philly_jobs_by_vc.csv.gz", "philly/philly_node_sequence.csv.gz"],
    "helios": ["helios_earth/vc6YE_sequence.csv.gz", "helios_earth/vchbv_sequence.csv.gz"],
    "genai": ["alibaba_v2026_genai"],
}


def assert_drawn(path: Path, scheme: str, profile: Path) -> None:
    """Open the page and assert that every figure is drawn and nothing is complained about."""
    text, log = dom(path, profile, f"--blink-settings=preferredColorScheme={int(scheme == 'light')}", fragment="#all")
    (root,) = re.findall(r"<html[^>]*>", text)
    places = text.count("data-figure=")
    assert f'data-theme="{scheme}"' in root
    assert f'data-drawn="{places}"' in root
    assert "data-failed" not in root
    assert text.count('class="main-svg"') >= places
    # What the page's policy forbids, any request among it, would be complained about on the console.
    assert "CONSOLE" not in log


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_are_drawn_without_error(tmp_path: Path, scheme: str) -> None:
    trace = generate("pai2020", jobs=500, seed=0, instances=True).to_trace()
    cluster = open_cluster("pai2020")
    path = write_report(tmp_path / "report.html", trace, check=check_load(trace, cluster), cluster=cluster)
    assert_drawn(path, scheme, tmp_path / "profile")


@needs_browser
@pytest.mark.parametrize("name", REAL)
def test_reports_of_real_traces(real_data: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "report.html"
    assert main(["report", *(str(real_data / p) for p in REAL[name]), "-o", str(path), "--quiet"]) == 0
    assert path.stat().st_size < 15e6
    assert_drawn(path, "light", tmp_path / "profile")
