"""Every report opens with its question and answer, seen without scrolling on a desktop and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from gputwin.cli.main import main
from gputwin.report import Section, write_report
from gputwin.report.answer import answer_of
from gputwin.report.figures import bars
from gputwin.report.html import render
from gputwin.report.page import Bullets, Card, Cards, FigurePart, Findings, Remark, Statement
from tests.conftest import AXE, needs_axe
from tests.report.browser import DESKTOP, PHONE, Look, Measures, axe, look_at, open_all, page_of
from tests.report.samples import Page, trace_of

TRACE = "synthetic:pai2020?jobs=600"
MOST_PAGES_OPEN = 20


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a report of a trace, of a run, of a comparison, and of MIG layouts, as the command line makes them."""
    folder = tmp_path_factory.mktemp("reports")
    cluster = ["--cluster", "homogeneous:40x8", "--quiet"]
    for rule in ("strict", "greedy"):
        command = ["simulate", TRACE, *cluster, "--backfill", rule, "-o", str(folder / rule)]
        assert main(command) == 0
    runs = {"trace": [], "run": ["strict"], "comparison": ["strict", "greedy"]}
    for name, given in runs.items():
        of = [part for run in given for part in ("--run", str(folder / run))]
        assert main(["report", TRACE, *cluster, *of, "-o", str(folder / f"{name}.html")]) == 0
    assert main(["mig", "--gpus", "8", "--demand", "1g.5gb=20", "-o", str(folder / "mig"), "--quiet"]) == 0
    return {name: folder / f"{name}.html" for name in runs} | {"mig": folder / "mig" / "mig.html"}


def test_a_section_becomes_an_answer_and_its_evidence() -> None:
    cards = tuple(Card(str(i), "1") for i in range(7))
    remarks = tuple(Remark(f"finding {i}") for i in range(9))
    parts = (Statement("Yes."), Cards(cards), Findings(remarks), Bullets(("more",)))
    answer, evidence = answer_of(Section("s", "Title", parts, question="Is it?", next_steps=("Do it.",)))
    assert (answer.question, answer.verdict, len(answer.cards)) == ("Is it?", parts[0], 5)
    assert answer.findings is not None
    assert [r.text for r in answer.findings.remarks] == [f"finding {i}" for i in range(6)]
    assert evidence is not None
    left = [part for part in evidence.parts if isinstance(part, Cards | Findings | Bullets)]
    assert left == [Cards(cards[5:]), Bullets(("more",)), Findings(remarks[6:], "Further findings")]


def test_a_section_without_a_question_asks_by_its_title() -> None:
    answer, evidence = answer_of(Section("s", "Title", (Statement("Yes."),)))
    assert (answer.question, evidence) == ("Title", None)


def test_text_of_a_next_step_is_escaped_and_commands_are_set_apart() -> None:
    page = render("t", [Section("s", "T", (Statement("<b>"),), next_steps=("Run `gputwin <x>` & see.",))]).decode()
    assert "<code>gputwin &lt;x&gt;</code> &amp; see." in page
    assert "<b>" not in page


def test_an_option_is_not_broken_after_its_hyphens() -> None:
    page = render(
        "t", [Section("s", "T", (Statement("Yes."),), next_steps=("Try `gputwin place --ahead 6h`.",))]
    ).decode()
    assert '<code>gputwin place <span class="option">--ahead</span> 6h</code>' in page


@pytest.mark.parametrize("name", ["trace", "run", "comparison", "mig"])
def test_each_report_asks_and_answers(reports: dict[str, Path], name: str) -> None:
    page = Page(reports[name])
    sections = page.all("section")
    assert sections[0]["class"] == "answer"
    assert [a.get("class") for a in page.all("section")[1:]] == [None] * (len(sections) - 1)
    assert "open" not in {key for a in page.all("details") for key in a}
    (verdict,) = [a for a in page.all("p") if "verdict" in (a.get("class") or "")]
    assert set((verdict["class"] or "").split()) & {"good", "warning", "neutral"}
    (question,) = re.findall(r'class="question">([^<]*)<', page.source)
    assert question.endswith("?")
    (said,) = re.findall(r'<p class="statement verdict [a-z]+">(.*?)</p>', page.source, re.DOTALL)
    assert 10 < len(said) < 700


def test_tenants_are_in_reports_of_traces_runs_and_comparisons(reports: dict[str, Path]) -> None:
    for name, title in (("trace", "Per user: who waits for whom"), ("run", "Users"), ("comparison", "Users")):
        assert title in Page(reports[name]).text
    assert "Who waits while whose jobs hold GPUs" in Page(reports["run"]).text
    assert "Mean wait by user" in Page(reports["comparison"]).text


def test_a_comparison_answers_with_a_small_table_with_intervals(reports: dict[str, Path]) -> None:
    answer = Page(reports["comparison"]).source.partition('class="answer"')[2].partition("</section>")[0]
    (table,) = re.findall(r"<table>.*?</table>", answer, re.DOTALL)
    assert answer.index("<table>") < answer.index("<figure")
    assert "mean wait against strict" in table
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)[1:]
    assert len(rows) == 2
    assert re.search(r"−[^<]* \[−[^<]*, [−+][^<]*\]", rows[1])


def test_a_closed_section_says_a_whole_number_of_words() -> None:
    said = "word " * 60
    gist = Section("s", "T", (Statement(said),)).gist
    assert len(gist) <= 182
    assert gist.endswith("word …")
    assert Section("s", "T", (Cards((Card("Jobs", "7", "9 instances"),)),)).gist == "Jobs: 7 (9 instances)"


def test_requests_are_in_the_report_of_a_serving_trace(tmp_path: Path) -> None:
    rows = [
        {
            "submit_time": 5.0 * i,
            "input_tokens": 100 + i,
            "output_tokens": 10,
            "user": "ab"[i % 2],
            "duration_seconds": 2.0,
        }
        for i in range(120)
    ]
    page = Page(write_report(tmp_path / "r.html", trace_of({"requests": rows})))
    for text in ("Requests per minute", "Burst", "Tokens per request", "Clients", "Time to serve"):
        assert text in page.text


class Seen(NamedTuple):
    look: Look
    axe: Measures | None


@pytest.fixture(scope="module")
def seen(browser: Any, reports: dict[str, Path]) -> Callable[[str], Seen]:
    """Return what a browser finds in a report, which is opened once; a run's is checked by axe-core in the dark."""

    @cache
    def see(name: str) -> Seen:
        with page_of(browser, reports[name], "light") as page:
            look = look_at(page)
            if name != "run":
                page.emulate_media(color_scheme="light")
            return Seen(look, axe(page) if AXE.is_file() else None)

    return see


@pytest.mark.parametrize("name", ["trace", "run", "comparison", "mig"])
def test_the_answer_is_above_the_fold(seen: Callable[[str], Seen], name: str) -> None:
    found = seen(name).look.desktop
    assert found["failed"] is None
    assert 0 < found["verdict"]["top"] < found["verdict"]["bottom"] < DESKTOP[1]
    assert 1 <= found["tiles"] <= 5
    assert found["charts"] == 1
    assert found["findings"] <= 6
    assert found["next"] >= 1
    assert found["open"] == 0
    assert found["closed"] >= 2
    assert found["pageHeight"] < 12_000
    assert found["pageWidth"] <= found["width"]
    assert found["lang"] == "en"
    assert found["unnamed"] == []
    assert found["tablesWithoutHead"] == 0
    assert found["levels"][0] == 1
    assert all(b - a <= 1 for a, b in zip(found["levels"], found["levels"][1:], strict=False))
    assert found["faint"] == []


@needs_axe
@pytest.mark.parametrize("name", ["trace", "run", "comparison", "mig"])
def test_axe_finds_nothing(seen: Callable[[str], Seen], name: str) -> None:
    found = seen(name).axe
    assert found is not None
    assert found["violations"] == []
    assert found["rules"] > 20


@pytest.mark.parametrize("name", ["trace", "run", "comparison", "mig"])
def test_contrast_holds_in_every_section(seen: Callable[[str], Seen], name: str) -> None:
    look = seen(name).look
    assert [found["theme"] for found in (look.opened, look.other_theme)] == ["light", "dark"]
    for found in (look.opened, look.other_theme):
        assert found["closed"] == 0
        assert found["faint"] == []
        assert found["small"] == []


@pytest.mark.parametrize("name", ["trace", "run", "comparison", "mig"])
def test_a_phone_shows_the_verdict_and_never_scrolls_sideways(seen: Callable[[str], Seen], name: str) -> None:
    look = seen(name).look
    assert 0 < look.phone["verdict"]["top"] < look.phone["verdict"]["bottom"] < PHONE[1]
    for found in (look.phone, look.opened_on_phone):
        assert found["width"] == PHONE[0]
        assert found["pageWidth"] <= found["width"]


@pytest.mark.parametrize(("flags", "most"), [([], 11), (["--brief"], 1)], ids=["whole", "brief"])
def test_printed_pages(browser: Any, tmp_path: Path, flags: list[str], most: int) -> None:
    path = tmp_path / "r.html"
    assert main(["report", TRACE, "--cluster", "pai2020", *flags, "-o", str(path), "--quiet"]) == 0
    with page_of(browser, path) as page:
        printed = page.pdf(prefer_css_page_size=True)
    assert 1 <= len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= most


def test_a_brief_comparison_of_four_scenarios_prints_on_one_page(browser: Any, tmp_path: Path) -> None:
    trace, runs = "synthetic:philly?jobs=300", []
    for order, backfill in (("fifo", "greedy"), ("sjf", "greedy"), ("fifo", "easy"), ("sjf", "easy")):
        runs += ["--run", str(tmp_path / f"{order}-{backfill}")]
        rules = ["--order", order, "--backfill", backfill]
        assert main(["simulate", trace, "--cluster", "homogeneous:4x8", *rules, "-o", runs[-1], "--quiet"]) == 0
    path = tmp_path / "r.html"
    assert main(["report", trace, *runs, "--brief", "-o", str(path), "--quiet"]) == 0
    with page_of(browser, path) as page:
        printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) == 1


def test_all_sections_open_print_two_figures_in_a_row(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    assert main(["report", TRACE, "--cluster", "pai2020", "-o", str(path), "--quiet"]) == 0
    with page_of(browser, path) as page:
        open_all(page)
        printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= MOST_PAGES_OPEN


def test_the_closed_section_of_a_plan_is_printed_with_its_answer(browser: Any, tmp_path: Path) -> None:
    plan = ["plan", "synthetic:philly?jobs=300", "--cluster", "homogeneous:4x8", "--target", "p95_wait=600", "--quiet"]
    assert main([*plan, "-o", str(tmp_path / "plan")]) == 0
    with page_of(browser, tmp_path / "plan" / "plan.html") as page:
        printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) == 1


def test_a_report_does_not_overwrite_what_it_did_not_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "index.html"
    path.write_text("<p>my own page</p>")
    command = ["report", "synthetic:pai2020?jobs=20", "-o", str(path), "--quiet"]
    assert main(command) == 2
    assert "--force" in capsys.readouterr().err
    assert path.read_text() == "<p>my own page</p>"
    assert main([*command, "--force"]) == 0
    assert main(command) == 0


def test_after_printing_charts_are_as_wide_as_before(browser: Any, reports: dict[str, Path]) -> None:
    width = "() => document.querySelector('[data-figure] .main-svg').clientWidth"
    with page_of(browser, reports["trace"]) as page:
        before = page.evaluate(width)
        page.pdf(prefer_css_page_size=True)
        page.wait_for_timeout(1000)
        assert page.evaluate(width) == before


_OVERLAPS = """() => [...document.querySelectorAll('.main-svg')].flatMap((svg) => {
  const level = (label) => !/rotate\\((?!0)/.test(label.getAttribute("transform"));
  const boxes = [...svg.querySelectorAll('.xtick text')].filter(level).map((label) => label.getBoundingClientRect());
  return boxes.filter((box, i) => boxes.slice(0, i).some((other) => Math.min(box.right, other.right) -
    Math.max(box.left, other.left) > 2 && Math.min(box.bottom, other.bottom) - Math.max(box.top, other.top) > 3));
  }).length"""


def test_labels_below_bars_do_not_overlap_on_a_phone(browser: Any, reports: dict[str, Path]) -> None:
    with page_of(browser, reports["trace"]) as page:
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        page.reload()
        open_all(page)
        assert page.evaluate(_OVERLAPS) == 0


def test_long_ids_beside_bars_leave_room_for_the_bars_on_a_phone(browser: Any, tmp_path: Path) -> None:
    names = pl.Series(["ddd2e8c220072a5951b37078518ba809", "4c2487237ebe5f821950d09158742384", "M0001"])
    figure = bars(names, pl.Series([2240, 1080, 832]), "GPUs", "%{x}")
    path = tmp_path / "r.html"
    part = FigurePart("f", "F", figure, "C.", names.to_frame("n"))
    path.write_bytes(render("t", [Section("s", "T", (Statement("Yes."), part))]))
    with page_of(browser, path) as page:
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        page.reload()
        open_all(page)
        texts = "(sort) => [...document.querySelectorAll(sort)].map((text) => text.textContent)"
        assert page.evaluate(texts, ".ytick text") == ["ddd2e8c2…a809", "4c248723…2384", "M0001"]
        edges = "() => [...document.querySelectorAll('.bartext')].map((text) => text.getBoundingClientRect().right)"
        right = page.evaluate("() => document.querySelector('[data-figure]').getBoundingClientRect().right")
        assert max(page.evaluate(edges)) <= right
