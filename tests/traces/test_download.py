from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gputwin.core.errors import UserError
from gputwin.traces.download import check_address
from gputwin.traces.fetch import fetch
from tests.traces.site import JOBS, SIZE, Site, get, part, refusal, serve, visible


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as site:
        yield site


def test_a_cut_download_goes_on_where_it_stopped(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS)
    site.cuts = [2 << 20]
    get(tmp_path)
    assert (tmp_path / "jobs.csv").read_bytes() == JOBS
    assert site.asked == [("jobs.csv", None), ("jobs.csv", f"bytes={2 << 20}-")]
    assert site.sent == SIZE


def test_many_cuts_are_borne_as_long_as_each_try_brings_something(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS)
    site.cuts = [SIZE // 20] * 15
    get(tmp_path)
    assert (tmp_path / "jobs.csv").read_bytes() == JOBS
    assert site.sent == SIZE


def test_an_interrupted_fetch_leaves_its_part_and_resumes(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS)

    def interrupt(name: str, here: int, total: int | None) -> None:
        if here > SIZE // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(tmp_path, progress=interrupt)
    here = part(tmp_path).stat().st_size
    assert here > SIZE // 2
    assert visible(tmp_path) == set()
    get(tmp_path)
    assert site.asked[1:] == [("jobs.csv", f"bytes={here}-")]
    assert (tmp_path / "jobs.csv").read_bytes() == JOBS


def test_a_part_that_is_whole_is_not_asked_for_again(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS)
    part(tmp_path).parent.mkdir()
    part(tmp_path).write_bytes(JOBS)
    get(tmp_path)
    assert (tmp_path / "jobs.csv").read_bytes() == JOBS
    assert site.sent == 0


def test_a_server_without_ranges_is_asked_for_the_whole_again(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS)
    site.ranges, site.cuts = False, [2 << 20]
    get(tmp_path)
    assert (tmp_path / "jobs.csv").read_bytes() == JOBS
    assert site.sent == SIZE + (2 << 20)


def test_a_file_that_changed_meanwhile_is_started_anew(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS, checksum=None)
    with pytest.raises(KeyboardInterrupt):
        get(tmp_path, progress=lambda *step: (_ for _ in ()).throw(KeyboardInterrupt))
    site.publish("jobs.csv", JOBS[::-1], checksum=None)
    get(tmp_path)
    assert (tmp_path / "jobs.csv").read_bytes() == JOBS[::-1]


def test_without_validator_and_checksum_nothing_is_spliced(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS, checksum=None)
    site.validators, site.cuts = False, [2 << 20]
    get(tmp_path)
    assert [wanted for _, wanted in site.asked] == [None, None]


def test_a_server_that_never_delivers_is_given_up_and_says_so(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS)
    site.cuts = [1000] + [0] * 10
    slept: list[float] = []
    assert "gave up after 4 tries" in refusal(tmp_path, sleep=slept.append)
    assert slept == [0.5, 1.0, 2.0, 4.0]
    assert part(tmp_path).stat().st_size == 1000


def test_a_passing_failure_is_tried_again(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS)
    site.failures = [503, 500]
    get(tmp_path)
    assert len(site.asked) == 3


def test_a_missing_file_is_one_line_that_names_the_homepage(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS)
    site.files.clear()
    line = refusal(tmp_path)
    assert f"{site.url}/jobs.csv: the server answers 404 Not Found" in line
    assert "https://example.org/test" in line
    assert len(site.asked) == 1


def test_a_server_that_is_not_there_is_one_line(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS)
    assert "gave up" in refusal(tmp_path, base_url="http://127.0.0.1:9")


@pytest.mark.parametrize("lengths", [True, False])
def test_a_file_far_larger_than_it_should_be_is_refused(
    lengths: bool, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.publish("jobs.csv", JOBS)
    site.lengths = lengths
    monkeypatch.setattr("gputwin.traces.fetch._ALWAYS_ALLOWED_BYTES", 1000)
    monkeypatch.setattr("gputwin.traces.fetch._SIZE_MARGIN", 0)
    assert "larger than it can be" in refusal(tmp_path)
    assert not part(tmp_path).exists()


def test_a_file_that_does_not_fit_on_the_disk_is_not_begun(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.publish("jobs.csv", JOBS)
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("gputwin.traces.download.shutil.disk_usage", lambda path: usage)
    assert "only 1,000 are free" in refusal(tmp_path)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/a",
        "ftp://example.org/a",
        "file:///etc/passwd",
        "http://127.0.0.1.example.org/a",
        "https:///a",
        "jobs.csv",
        "http://[::1",
    ],
)
def test_only_https_or_this_machine_is_asked(url: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="give an https address"):
        check_address(url)
    with pytest.raises(UserError, match="give an https address"):
        fetch("dlrm2025", tmp_path, base_url=url)


@pytest.mark.parametrize("url", ["https://example.org/a", "http://localhost:1/a", "http://[::1]/a"])
def test_https_and_this_machine_may_be_asked(url: str) -> None:
    check_address(url)


@pytest.mark.parametrize("to", ["http://example.org/jobs.csv", "file:///etc/passwd", "ftp://example.org/a"])
def test_a_redirect_cannot_lead_to_what_could_not_be_asked_directly(to: str, site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS)
    site.redirects["jobs.csv"] = to
    assert to in refusal(tmp_path)
    assert len(site.asked) == 1
    assert visible(tmp_path) == set()


def test_a_redirect_is_followed_and_resumed_through(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS)
    site.files["elsewhere.csv"] = site.files["jobs.csv"]
    site.redirects["jobs.csv"] = f"{site.url}/elsewhere.csv"
    site.cuts = [1 << 20]
    get(tmp_path)
    assert (tmp_path / "jobs.csv").read_bytes() == JOBS
    assert site.asked[-1] == ("elsewhere.csv", f"bytes={1 << 20}-")
