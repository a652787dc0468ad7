"""The page in a real browser: every figure is drawn, nothing fails, nothing is asked of the network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gputwin.cli.main import main
from gputwin.report import write_report
from gputwin.simulation.cluster import open_cluster
from gputwin.simulation.load import check_load
from gputwin.traces.synthetic import generate
from tests.report.browser import PROBE, look_at, open_all, page_of

REAL = {
    "dlrm2025": ["alibaba_v2025_dlrm"],
    "openb": ["alibaba_v2023_openb/openb_pod_list_default.csv.gz", "alibaba_v2023_openb/openb_node_list_gpu_node.csv"],
    "pai": ["alibaba_v2020_pai"],
    "philly": ["philly/philly_jobs_by_vc.csv.gz", "philly/philly_node_sequence.csv.gz"],
    "helios": ["helios_earth/vc6YE_sequence.csv.gz", "helios_earth/vchbv_sequence.csv.gz"],
    "genai": ["alibaba_v2026_genai"],
}


def assert_drawn(found: dict[str, Any], theme: str) -> None:
    """Assert that every figure of an opened page is drawn, in this theme, and nothing failed."""
    assert found["theme"] == theme
    assert found["failed"] is None
    assert found["closed"] == 0
    assert found["drawn"] == found["figures"] > 0
    assert found["pictures"] >= found["figures"]


def test_figures_are_drawn_without_error_in_both_themes(browser: Any, tmp_path: Path) -> None:
    trace = generate("pai2020", jobs=500, seed=0, instances=True).to_trace()
    cluster = open_cluster("pai2020")
    path = write_report(tmp_path / "report.html", trace, check=check_load(trace, cluster), cluster=cluster)
    with page_of(browser, path, "dark") as page:
        look = look_at(page)
    assert_drawn(look.opened, "dark")
    assert_drawn(look.other_theme, "light")


@pytest.mark.parametrize("name", REAL)
def test_reports_of_real_traces(browser: Any, real_data: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "report.html"
    assert main(["report", *(str(real_data / p) for p in REAL[name]), "-o", str(path), "--quiet"]) == 0
    assert path.stat().st_size < 15e6
    with page_of(browser, path) as page:
        open_all(page)
        assert_drawn(page.evaluate(PROBE), "light")
