"""The page in a real browser: every figure is drawn, nothing fails, nothing is asked of the network."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gputwin.report import write_report
from gputwin.simulation.cluster import open_cluster
from gputwin.simulation.load import check_load
from gputwin.traces.locate import open_trace

CHROMIUM = shutil.which("chromium")
QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--enable-logging=stderr", "--v=0"),
)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_are_drawn_without_error(tmp_path: Path, scheme: str) -> None:
    trace = open_trace("synthetic:pai2020?jobs=500")
    cluster = open_cluster("pai2020")
    path = write_report(tmp_path / "report.html", trace, check=check_load(trace, cluster), cluster=cluster)
    flags = [
        f"--blink-settings=preferredColorScheme={int(scheme == 'light')}",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    command = [str(CHROMIUM), *QUIET, *flags, "--virtual-time-budget=5000", "--dump-dom", path.as_uri()]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    (root,) = re.findall(r"<html[^>]*>", result.stdout)
    places = result.stdout.count("data-figure=")
    assert f'data-theme="{scheme}"' in root
    assert f'data-drawn="{places}"' in root
    assert "data-failed" not in root
    assert result.stdout.count('class="main-svg"') >= places
    assert "CONSOLE" not in result.stderr
