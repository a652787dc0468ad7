"""What a trace says is text, wherever it ends up: never markup, never a script, never a formula."""

from __future__ import annotations

import base64
import zlib
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from gputwin.report import write_report
from gputwin.report.html import as_csv
from gputwin.simulation.cluster import Cluster, NodeGroup
from gputwin.simulation.load import check_load
from gputwin.traces.dataset import InputFile
from gputwin.traces.quality import Finding
from tests.report.samples import Page, strings_of, trace_of

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<!-- <script>",
    '"><img src=x onerror=alert(3)>',
    "</style></title></table>",
    "<a href='javascript:alert(4)'>x</a>",
    "&lt;b&gt; \u2028 \x00 \x1b[31m",
)


@pytest.fixture(scope="module", params=HOSTILE)
def hostile(request: pytest.FixtureRequest) -> str:
    text: str = request.param
    return text


@pytest.fixture(scope="module")
def page(hostile: str, tmp_path_factory: pytest.TempPathFactory) -> Page:
    tasks = [
        {
            "job_id": f"{hostile}{i}",
            "user": f"{hostile}{i % 2}",
            "tenant": hostile,
            "application": hostile,
            "role": hostile,
            "gpu_count": 100 if i == 0 else 1,
            "gpu_models_allowed": f"{hostile}0",
            "submit_time": float(i),
            "start_time": float(i) + 1,
            "duration_seconds": 10.0 + i,
        }
        for i in range(4)
    ]
    series = [
        {"time": float(t), "metric": f"{hostile}{m}", "entity": hostile, "value": 1.0} for t in (0, 9) for m in "ab"
    ]
    trace = trace_of({"tasks": tasks, "series": series}, source=hostile, title=hostile, zone=hostile)
    finding = Finding("Q01", hostile, hostile, 1, "flagged", hostile, ({hostile: hostile},))
    trace.meta = replace(trace.meta, inputs=(InputFile(hostile, 1, hostile),), findings=(finding,))
    cluster = Cluster(hostile, tuple(NodeGroup(f"{hostile}{i}", 2, 8, f"{hostile}{i}") for i in range(2)))
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    return Page(write_report(path, trace, check=check_load(trace, cluster), cluster=cluster))


def test_no_element_comes_from_the_trace(page: Page, tmp_path: Path) -> None:
    assert page.open == []
    assert len(page.all("script")) == 3
    assert page.all("img") == []
    assert all(not name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert all((a.get("href") or "#")[0] in "#d" for a in page.all("a"))
    assert page.source.count("<!--") == 0


def test_the_text_is_shown_as_it_is(page: Page, hostile: str) -> None:
    shown = "".join(c if c.isprintable() else "�" for c in hostile)
    # Title and heading, owner, model, reason, quality, manifest.
    assert page.text.count(shown) >= 12


def test_no_value_can_end_the_data(page: Page) -> None:
    begin = page.source.index('id="report-data">') + len('id="report-data">')
    raw = page.source[begin : page.source.index("</script>", begin)]
    assert "<" not in raw
    assert "<" not in zlib.decompress(base64.b64decode(raw)).decode()
    assert page.data["figures"]


def test_labels_of_figures_are_not_markup(page: Page) -> None:
    ours = ("<br>", "<extra></extra>")
    for text in strings_of(page.data["figures"]):
        for tag in ours:
            text = text.replace(tag, "")
        assert "<" not in text.replace("<1", ""), text


def test_a_spreadsheet_runs_nothing() -> None:
    cells = ["=1+1", "+1", "-1", "@x", "\tx", "plain", "a=b", None]
    lines = as_csv(pl.DataFrame({"name": cells, "n": range(8)})).splitlines()
    assert lines[1:6] == ["'=1+1,0", "'+1,1", "'-1,2", "'@x,3", "'\tx,4"]
    assert lines[6:] == ["plain,5", "a=b,6", ",7"]
