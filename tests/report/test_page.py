"""The report is one valid page that needs nothing else and runs nothing it did not bring."""

from __future__ import annotations

import base64
import hashlib
import zlib
from pathlib import Path

import pytest
from plotly.offline import get_plotlyjs

from gputwin.core.errors import UserError
from gputwin.report import Section, fidelity_of, write_report
from gputwin.report.page import Prose
from gputwin.simulation.cluster import open_cluster
from gputwin.simulation.load import check_load
from gputwin.traces.locate import open_trace
from tests.report.samples import Page, trace_of


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    trace = open_trace("synthetic:pai2020?jobs=600")
    cluster = open_cluster("pai2020")
    return write_report(
        tmp_path_factory.mktemp("report") / "report.html",
        trace,
        check=check_load(trace, cluster),
        cluster=cluster,
        fidelity=fidelity_of(trace),
    )


@pytest.fixture(scope="module")
def page(report: Path) -> Page:
    return Page(report)


def test_every_element_is_closed_and_every_id_used_once(page: Page) -> None:
    assert page.open == []
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids))


def test_all_sections_are_there_and_in_the_contents(page: Page) -> None:
    analyses = ["workload", "delays", "tenants", "runtimes", "placement", "cluster", "bottlenecks"]
    expected = ["overview", "overview-evidence", *analyses, "load", "quality", "fidelity", "method", "manifest"]
    assert [a["id"] for a in page.all("section")] == expected
    links = [a["href"] for a in page.all("a")]
    assert [link for link in links if link != "#content"] == [f"#{id_}" for id_ in expected]


def test_plotly_is_inside_exactly_once_and_compressed(page: Page) -> None:
    scripts = zip(page.scripts, page.all("script"), strict=True)
    (packed,) = [script for script, attributes in scripts if attributes.get("id") == "plotly"]
    assert zlib.decompress(base64.b64decode(packed)).decode() == get_plotlyjs()
    assert len(page.source) < 3_000_000


def test_nothing_is_loaded_from_outside(page: Page) -> None:
    for tag, attributes in page.elements:
        for name in ("src", "href", "srcset", "action", "data", "poster"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:")), (tag, name, value)
    style = page.source[page.source.index("<style>") : page.source.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_the_policy_lets_only_the_two_scripts_of_the_page_run(page: Page) -> None:
    (policy,) = [a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    programs = [s for s, a in zip(page.scripts, page.all("script"), strict=True) if a.get("type") is None]
    assert len(programs) == 1
    for program in (*programs, get_plotlyjs()):
        digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "'unsafe-inline'" not in policy.split("script-src")[1].split(";")[0]
    assert "http" not in policy


def test_figures_cannot_be_sent_to_plotlys_makers(page: Page) -> None:
    assert "showSendToCloud: false" in page.scripts[0]
    assert 'plotlyServerURL: ""' in page.scripts[0]


def test_each_figure_has_a_caption_its_data_and_a_place(page: Page) -> None:
    places = [a["data-figure"] for a in page.all("div") if "data-figure" in a]
    buttons = [a["data-csv"] for a in page.all("button") if "data-csv" in a]
    assert places == buttons
    assert set(places) == set(page.data["figures"]) == set(page.data["tables"])
    assert len(places) >= 9
    for table in page.data["tables"].values():
        header, *rows = table.splitlines()
        assert rows
        assert all(row.count(",") >= header.count(",") for row in rows)


def test_figures_carry_no_colours_of_their_own_theme(page: Page) -> None:
    assert set(page.data["themes"]) == {"light", "dark"}
    for figure in page.data["figures"].values():
        assert "template" not in figure["layout"]


def test_the_same_trace_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = (
        write_report(tmp_path / name, open_trace("synthetic:pai2020?jobs=50")) for name in ("a.html", "b.html")
    )
    assert first.read_bytes() == second.read_bytes()


def test_the_manifest_tells_source_seed_fingerprint_and_version(page: Page) -> None:
    trace = open_trace("synthetic:pai2020?jobs=600")
    for fact in ("synthetic:pai2020?jobs=600&seed=0", trace.meta.fingerprint, "0.1.0"):
        assert fact in page.text


def test_what_a_report_is_made_for_comes_first_and_the_trace_is_not_analysed_for_it(tmp_path: Path) -> None:
    extra = Section("more", "More", (Prose("Added later."),), ("How it was added.",))
    path = write_report(tmp_path / "r.html", trace_of({"tasks": [{"job_id": "a"}]}), asked=[extra])
    page = Page(path)
    assert [a["id"] for a in page.all("section")] == ["more", "more-evidence", "overview", "method", "manifest"]
    assert "How it was added." in page.text


def test_a_report_is_an_html_file(tmp_path: Path) -> None:
    trace = trace_of({"tasks": [{"job_id": "a"}]})
    with pytest.raises(UserError, match=r"\.html"):
        write_report(tmp_path / "tasks.parquet", trace)
    assert list(tmp_path.iterdir()) == []


def test_size_does_not_grow_with_the_trace(report: Path, tmp_path: Path) -> None:
    trace = open_trace("synthetic:pai2020?jobs=60000")
    assert trace.tasks.height > 70_000
    cluster = open_cluster("pai2020")
    large = write_report(tmp_path / "large.html", trace, check=check_load(trace, cluster), cluster=cluster)
    assert large.stat().st_size < 3e6
    # 100 times the jobs: a tenth more, as data; the rest of a page does not depend on the trace.
    assert large.stat().st_size < report.stat().st_size + 300_000
