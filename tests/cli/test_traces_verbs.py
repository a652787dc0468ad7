"""`gputwin traces`: list, fetch from a server on this machine, verify."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gputwin.cli.main import main
from gputwin.traces.catalog import CATALOG
from gputwin.traces.reader import READERS
from tests.traces.samples import dlrm2025
from tests.traces.site import JOBS, Site, serve, sum_of, visible
from tests.traces.test_fetch import tar_gz

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as site:
        yield site


def result(arguments: list[str], capsys: Capture, code: int = 0) -> dict[str, Any]:
    """Return the JSON object that is all there is on stdout."""
    assert main([*arguments, "--json"]) == code
    captured = capsys.readouterr()
    if code == 0:
        assert captured.err == ""
    assert captured.out.count("\n") == 1
    return json.loads(captured.out)


def test_list_tells_size_licence_and_citation_of_each(capsys: Capture) -> None:
    listed = result(["traces", "list"], capsys)["traces"]
    assert [t["name"] for t in listed] == CATALOG.names()
    for trace in listed:
        assert trace["size_bytes"] > 0
        assert trace["licence"]
        assert trace["citation"]
        assert trace["homepage"].startswith("https://")
        assert 0 <= trace["files_with_checksum"] <= trace["files"]
        assert trace["format"] is None or trace["format"] in READERS.names()
    pai = next(t for t in listed if t["name"] == "pai2020")
    assert (pai["licence"], pai["files"], pai["files_with_checksum"]) == ("CC-BY-4.0", 7, 7)


def test_list_shows_people_the_same(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    assert main(["traces", "list"]) == 0
    out = capsys.readouterr().out
    for trace in CATALOG:
        assert trace.name in out
        assert trace.licence.split()[0] in out


def test_fetch_brings_a_trace_that_ingests(site: Site, tmp_path: Path, capsys: Capture) -> None:
    (raw,) = dlrm2025.write(tmp_path)
    data = tar_gz(trace=raw.read_bytes())
    site.publish("trace.tar.gz", data)
    site.files = {"mirror/trace.tar.gz": data}
    fetched = result(["traces", "fetch", "test", "-o", str(tmp_path / "t"), "--from", f"{site.url}/mirror"], capsys)
    (file,) = fetched["files"]
    assert fetched["directory"] == str(tmp_path / "t")
    assert {k: fetched[k] for k in ("name", "licence", "citation")} == {
        "name": "test",
        "licence": "none",
        "citation": "nobody",
    }
    assert file == {
        "name": "trace.tar.gz",
        "path": str(tmp_path / "t" / ".downloads" / "trace.tar.gz"),
        "sha256": sum_of(data),
        "checksum": "published",
        "was_there": False,
        "unpacked": [str(tmp_path / "t" / "trace.csv")],
    }
    assert result(["ingest", str(tmp_path / "t")], capsys)["tables"] == dlrm2025.ROWS
    again = result(["traces", "fetch", "test", "-o", str(tmp_path / "t")], capsys)
    assert again["files"][0]["was_there"]
    assert len(site.asked) == 1


def test_fetch_goes_into_a_folder_of_the_traces_name_and_can_leave_it_packed(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    site.publish("trace.tar.gz", tar_gz(jobs=JOBS))
    assert main(["traces", "fetch", "test", "--packed"]) == 0
    out, err = capsys.readouterr()
    assert visible(tmp_path / "test") == {"trace.tar.gz"}
    assert "trace.tar.gz: downloaded, checksum verified" in out
    assert "licence: none" in out
    assert "cite: nobody" in out
    assert err == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("options", [[], ["--quiet"], ["--json"]], ids=["plain", "quiet", "json"])
def test_progress_is_for_terminals_and_on_stderr(
    options: list[str], site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    site.publish("jobs.csv", JOBS)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["traces", "fetch", "test", "-o", str(tmp_path), *options]) == 0
    assert ("jobs.csv" in terminal.getvalue()) == (options == [])
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fetch", "pai2021"], "did you mean 'pai2020'?"),
        (["fetch", "test", "--from", "ftp://example.org"], "give an https address"),
        (["fetch", "test", "--from", "http://example.org"], "give an https address"),
        (["verify", "nowhere"], "no such file or folder"),
        (["verify", "empty"], "the folder has no files"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str],
    says: str,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    site.publish("jobs.csv", JOBS)
    assert main(["traces", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("gputwin: ")
    assert err.count("\n") == 1
    assert says in err
    assert [p.name for p in tmp_path.iterdir()] == ["empty"]


def test_a_file_the_server_does_not_have_is_one_line(site: Site, tmp_path: Path, capsys: Capture) -> None:
    site.publish("jobs.csv", JOBS)
    assert main(["traces", "fetch", "test", "-o", str(tmp_path / "t"), "--from", f"{site.url}/nowhere"]) == 2
    err = capsys.readouterr().err
    assert "404" in err
    assert "see https://example.org/test" in err
    assert err.count("\n") == 1


def test_verify_counts_and_refuses_what_differs(site: Site, tmp_path: Path, capsys: Capture) -> None:
    site.publish("jobs.csv", JOBS)
    assert main(["traces", "fetch", "test", "-o", str(tmp_path), "--json"]) == 0
    (tmp_path / "notes.txt").write_text("mine")
    capsys.readouterr()
    checked = result(["traces", "verify", str(tmp_path)], capsys)
    assert (checked["files_ok"], checked["files_wrong"], checked["files_unknown"]) == (1, 0, 1)
    assert checked["files"][0] == {
        "path": str(tmp_path / "jobs.csv"),
        "status": "ok",
        "sha256": sum_of(JOBS),
        "expected_sha256": sum_of(JOBS),
        "known_from": "published with test",
    }
    (tmp_path / "jobs.csv").write_bytes(JOBS[:-1])
    assert main(["traces", "verify", str(tmp_path), "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)["files_wrong"] == 1
    assert err == f"gputwin: {tmp_path / 'jobs.csv'}: wrong checksum; delete what is wrong and fetch the trace again\n"
