"""Every page in a real browser: it loads, says nothing on the console, asks nobody else, and is usable without a mouse."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.conftest import AXE
from tests.server.conftest import CLUSTER, ended

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is a test dependency")
EVIL = (
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    "{{constructor.constructor('window.hacked=1')()}}",
    "`${window.hacked=1}`",
    "<a href=https://evil.example>prize</a>" + "long" * 500,
)
HOSTILE = "id,team,at,took,gpus\n" + "".join(
    f'"{EVIL[i % 5]}{i}/../../etc/passwd","{EVIL[(i + 1) % 5]}",{i * 60},{600 + i},{1 + i % 8}\n' for i in range(60)
)

BROKEN_QUANTITIES = """[...document.querySelectorAll(".verdict, .cards dd, .findings li")].map((e) => e.textContent)
  .filter((text) => /\\d (%|(d|h|min|s|GPUs?|nodes?)\\b)/.test(text))"""
"""Texts in which a line may end inside "2 min 16 s": a space there is one that does not break."""
BROKEN_NAMES = """[...document.querySelectorAll("td.code")].filter((e) => {
  const all = document.createRange(); all.selectNodeContents(e);
  return e.textContent.length < 10 && new Set([...all.getClientRects()].map((r) => r.top)).size > 1;
}).map((e) => e.textContent)"""
"""Short names and ids that stand on two lines."""


@pytest.fixture(scope="module")
def base(workspace: Path, run: str) -> Iterator[str]:
    """The address of a server started by the command line, on a folder with a trace and a run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from gputwin.cli.main import run; run()", "serve"]
    command += ["--port", str(port), "--workspace", str(workspace)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    assert server.stdout is not None
    assert "http://127.0.0.1" in server.stdout.readline()
    yield f"http://127.0.0.1:{port}"
    server.send_signal(signal.SIGINT)
    _, said = server.communicate(timeout=20)
    assert server.returncode in (0, 130)
    assert "Traceback" not in said, said


@pytest.fixture(scope="module")
def other_run(client: TestClient, run: str) -> str:
    started = client.post(
        "/api/runs", json={"trace": "small", "cluster": CLUSTER, "rules": {"backfill": "strict"}}
    ).json()
    if started["task"]:
        assert ended(client, started["task"])["state"] == "done"
    return str(started["run"])


@pytest.fixture
def page(browser: Any, base: str) -> Iterator[Any]:
    """A page that fails the test if anything goes wrong in it or anybody else is asked."""
    context = browser.new_context(viewport={"width": 1400, "height": 900}, base_url=base, color_scheme="light")
    opened = context.new_page()
    opened.set_default_timeout(120_000)
    wrong: list[str] = []
    opened.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
    opened.on("pageerror", lambda e: wrong.append(str(e)))
    opened.on("dialog", lambda d: d.accept())
    own = (base, base.replace("http", "ws", 1), "data:", "blob:")
    opened.on("request", lambda r: None if r.url.startswith(own) else wrong.append(f"asked {r.url}"))
    yield opened
    context.close()
    assert wrong == []


def _settle(page: Any) -> None:
    """Wait until nothing is under way on the page and its figures are drawn."""
    until = time.monotonic() + 120
    while True:
        assert time.monotonic() < until
        try:
            page.wait_for_selector("h1")
            if page.query_selector(".track") is None:
                break
        except playwright.Error:
            continue  # The page went on to its result meanwhile.
        page.wait_for_timeout(100)
    if page.query_selector(".plot"):
        page.wait_for_function(
            "document.querySelector('.plot').offsetTop > innerHeight + 200 || document.querySelector('.plot .main-svg')"
        )


def _axe(page: Any) -> list[Any]:
    if not AXE.is_file():
        pytest.skip("axe-core is not there; get it with: npm ci --prefix tests/browser")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[Any] = page.evaluate(
        "axe.run().then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 200))]))"
    )
    return found


def _addresses(run: str, other: str) -> list[str]:
    return [
        "/", "/traces/small", "/traces/small/forecast", "/traces/small/plan", "/traces/small/queueing", "/new?trace=small",
        "/policies", "/rest", f"/runs/{run}", f"/runs/{run}/cluster", f"/runs/{run}/nodes/3", f"/runs/{run}/jobs",
        f"/runs/{run}/jobs/100", f"/compare?runs={other},{run}", "/compare", "/runs/nothing",
    ]  # fmt: skip


def test_every_page_loads_is_accessible_and_fits_a_phone(page: Any, run: str, other_run: str) -> None:
    for address in _addresses(run, other_run):
        page.set_viewport_size({"width": 1400, "height": 900})
        page.goto(address)
        _settle(page)
        assert "gputwin" in page.title(), address
        assert page.locator("h1").count() == 1, address
        assert _axe(page) == [], address
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= 391, address
        assert page.evaluate(BROKEN_QUANTITIES) == [], address
        assert page.evaluate(BROKEN_NAMES) == [], address


def test_dark_pages_have_contrast(page: Any, run: str) -> None:
    page.emulate_media(color_scheme="dark")
    for address in ("/", f"/runs/{run}", f"/runs/{run}/cluster"):
        page.goto(address)
        _settle(page)
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        assert _axe(page) == [], address
    page.get_by_role("button", name="Light theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "light"


def test_from_upload_to_why_a_job_waited(page: Any, base: str) -> None:
    page.goto("/")
    page.get_by_label("Files").set_input_files(
        {"name": "<b>log.csv", "mimeType": "text/csv", "buffer": HOSTILE.encode()}
    )
    page.get_by_role("heading", name="A table of your own").click()
    page.get_by_label("What columns mean", exact=True).fill("job_id=id,tenant=team,submit=at,duration=took,gpus=gpus")
    page.get_by_role("button", name="Upload").click()
    page.wait_for_url("**/traces/*")
    _settle(page)
    for summary in page.locator("details > summary").all():
        summary.click()
    page.get_by_role("link", name="New run").last.click()
    page.wait_for_url("**/new?trace=*")
    page.get_by_label("Cluster").fill("homogeneous:2x8")
    page.get_by_label("Who may overtake").select_option("strict")
    page.get_by_role("button", name="Run").click()
    page.wait_for_url("**/runs/*")
    _settle(page)
    page.locator("#tenants > summary").click()
    page.wait_for_timeout(500)
    page.get_by_role("link", name="Jobs", exact=True).click()
    page.wait_for_url("**/jobs")
    assert max(len(text) for text in page.locator("td").all_inner_texts()) < 200
    page.locator("tbody a").first.click()
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    _settle(page)
    assert "It waited" in page.locator(".verdict").inner_text()
    assert "<" in page.locator("h1").inner_text()  # shown as text
    page.get_by_role("link", name="Cluster").click()
    page.wait_for_url("**/cluster")
    _settle(page)
    assert page.evaluate("window.hacked") is None
    assert page.locator("a[href*='evil.example']").count() == 0
    assert page.evaluate("document.querySelectorAll('#app img, #app script').length") == 0


def test_work_is_cancelled_from_its_page(page: Any) -> None:
    page.goto("/")
    page.get_by_label("Jobs", exact=True).fill("2000000")
    page.get_by_role("button", name="Generate").click()
    page.wait_for_url("**/tasks/*")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled after").wait_for()


def test_a_mistake_is_told_where_it_was_made(page: Any) -> None:
    page.goto("/new?trace=small")
    page.get_by_label("Cluster").fill("nonsense")
    page.evaluate("window.stays = true")
    page.get_by_role("button", name="Run").click()
    assert "nonsense" in page.get_by_role("alert").inner_text()
    assert page.evaluate("window.stays")


def test_runs_are_chosen_and_compared(page: Any, run: str, other_run: str) -> None:
    page.goto("/")
    for id_ in (other_run, run):
        page.locator(f"input[value='{id_}']").check()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url(f"**/compare?runs={other_run},{run}")
    _settle(page)
    assert "greedy" in page.locator(".verdict").inner_text()


def test_many_labels_below_a_figure_stand_on_end_on_a_phone(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/traces/small")
    _settle(page)
    page.evaluate("() => { for (const part of document.querySelectorAll('details')) part.open = true; }")
    figure = page.locator('[aria-label="Who waits for whom, GPU-hours"].plot')
    figure.scroll_into_view_if_needed()
    label = figure.locator(".xtick text").first
    label.wait_for()
    assert "rotate(-90" in label.get_attribute("transform")


def test_a_form_names_its_fields_in_words(page: Any) -> None:
    page.goto("/new?trace=small")
    _settle(page)
    text = page.locator("body").text_content()
    assert "Mean time between failures of a GPU (s)" in text
    assert not {"Gpu", "gpus", "mtbf"} & set(text.replace("(", " ").split())


def test_policies_and_routes_are_read_whole_on_a_phone(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for address in ("/policies", "/rest"):
        page.goto(address)
        _settle(page)
        cells = page.locator("td").all_inner_texts()
        assert len(cells) > 30
        assert [text for text in cells if text.endswith("…")] == []
        beyond = (
            "[...document.querySelectorAll('td')].filter((e) => e.getBoundingClientRect().right > innerWidth).length"
        )
        assert page.evaluate(beyond) == 0, address


def test_gangs_larger_than_the_cluster_are_not_counted(page: Any, run: str) -> None:
    page.goto(f"/runs/{run}/cluster")
    _settle(page)
    table = page.get_by_role("table", name="Gangs of whole idle nodes")
    names = table.locator("th").all_inner_texts()
    nodes = int(table.locator("tbody tr").first.locator("td").nth(1).inner_text())
    assert [int(name.removeprefix("gangs of ")) for name in names if name.startswith("gangs of ")][-1] <= nodes


def test_the_slider_moves_the_moment_by_keyboard(page: Any, run: str) -> None:
    page.goto(f"/runs/{run}/cluster?at=0")
    _settle(page)
    slider = page.get_by_role("slider")
    before = page.locator(".cards").inner_text()
    slider.focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
    page.wait_for_url("**at=0.02*")
    assert page.locator(".cards").inner_text() != before
    page.get_by_label("share held").check()
    page.locator(".tile").first.click()
    page.wait_for_url("**/nodes/0")


def test_the_server_asks_for_its_token(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from gputwin.cli.main import run; run()", "serve", "--host", "0.0.0.0"]
    told = subprocess.run(
        [*command, "--workspace", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "GPUTWIN_TOKEN": ""},
        check=False,
    )
    assert told.returncode == 2
    assert told.stderr.count("\n") == 1
    assert "token" in told.stderr
