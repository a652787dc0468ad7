from __future__ import annotations

import gzip
import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gputwin.core.errors import InputError, UserError
from gputwin.traces.catalog import CATALOG
from gputwin.traces.checksums import CheckStatus
from gputwin.traces.download import check_address
from gputwin.traces.fetch import fetch, verify
from gputwin.traces.sources import gather, sha256
from tests.traces.site import JOBS, SIZE, Site, get, part, refusal, serve, sum_of, visible


def tar_gz(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as out:
        for name, data in members.items():
            info = tarfile.TarInfo(f"{name}.csv")
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as site:
        yield site


def test_a_file_is_downloaded_and_its_progress_told(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS)
    seen: list[tuple[str, int, int | None]] = []
    result = get(tmp_path, progress=lambda *step: seen.append(step))
    assert result.files[0].path == tmp_path / "jobs.csv"
    assert (tmp_path / "jobs.csv").read_bytes() == JOBS
    assert result.files[0].line() == "jobs.csv: downloaded, checksum verified"
    assert seen[-1] == ("jobs.csv", SIZE, SIZE)
    assert [here for _, here, _ in seen] == sorted(here for _, here, _ in seen)
    assert not part(tmp_path).exists()


def test_a_wrong_checksum_tells_both_and_keeps_nothing(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS, checksum="0" * 64)
    line = refusal(tmp_path)
    assert "0" * 64 in line
    assert sum_of(JOBS) in line
    assert not part(tmp_path).exists()
    assert visible(tmp_path) == set()


def test_a_file_already_fetched_is_not_asked_for_again(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.tar.gz", tar_gz(jobs=JOBS))
    first = get(tmp_path)
    again = get(tmp_path)
    assert len(site.asked) == 1
    assert again.files[0].was_there
    assert again.files[0].unpacked == first.files[0].unpacked == (tmp_path / "jobs.csv",)


def test_a_damaged_copy_of_ours_is_repaired(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS)
    get(tmp_path)
    (tmp_path / "jobs.csv").write_bytes(JOBS[:-1])
    get(tmp_path)
    assert (tmp_path / "jobs.csv").read_bytes() == JOBS


def test_a_file_of_the_users_is_never_overwritten(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.tar.gz", tar_gz(jobs=JOBS))
    (tmp_path / "jobs.csv").write_text("mine")
    assert "in the way" in refusal(tmp_path)
    assert (tmp_path / "jobs.csv").read_text() == "mine"
    site.publish("jobs.csv", JOBS)
    assert "in the way" in refusal(tmp_path)
    assert (tmp_path / "jobs.csv").read_text() == "mine"


def test_without_a_published_checksum_the_first_one_holds(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS, checksum=None)
    assert f"no published checksum: recorded {sum_of(JOBS)}" in get(tmp_path).files[0].line()
    assert get(tmp_path).files[0].was_there
    (tmp_path / "jobs.csv").unlink()
    site.files["jobs.csv"] = JOBS[::-1]
    line = refusal(tmp_path)
    assert f"expected {sum_of(JOBS)} (recorded at the first download)" in line
    assert visible(tmp_path) == set()


def test_ingest_sees_an_unpacked_trace_once_and_nothing_else(site: Site, tmp_path: Path) -> None:
    site.publish("trace.tar.gz", tar_gz(jobs=JOBS, nodes=b"nodes"))
    result = get(tmp_path)
    assert result.files[0].path == tmp_path / ".downloads" / "trace.tar.gz"
    with gather([tmp_path]) as sources:
        assert [s.name for s in sources] == ["jobs.csv", "nodes.csv"]


def test_an_archive_can_stay_packed(site: Site, tmp_path: Path) -> None:
    site.publish("trace.tar.gz", tar_gz(jobs=JOBS))
    get(tmp_path, unpack=False)
    assert visible(tmp_path) == {"trace.tar.gz"}
    get(tmp_path)
    assert visible(tmp_path) == {"jobs.csv"}
    assert len(site.asked) == 1


def test_a_gzipped_table_is_no_archive_and_stays_as_it_is(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv.gz", gzip.compress(JOBS))
    get(tmp_path)
    assert visible(tmp_path) == {"jobs.csv.gz"}


def test_a_truncated_archive_is_refused_and_unpacks_nothing(site: Site, tmp_path: Path) -> None:
    data = tar_gz(jobs=JOBS)
    site.publish("trace.tar.gz", data[: len(data) // 2])
    assert "cut short or damaged" in refusal(tmp_path)
    assert visible(tmp_path) == set()


def test_a_member_with_another_sum_than_published_is_refused(site: Site, tmp_path: Path) -> None:
    site.publish("trace.tar.gz", tar_gz(jobs=JOBS), contents=(("jobs.csv", "0" * 64),))
    assert "member 'jobs.csv': wrong checksum" in refusal(tmp_path)
    assert visible(tmp_path) == set()


def test_an_archive_cannot_touch_our_records(site: Site, tmp_path: Path) -> None:
    site.publish("trace.tar.gz", tar_gz(**{".downloads/evil": b"{}"}))
    assert "would overwrite our own records" in refusal(tmp_path)


def test_a_git_lfs_pointer_is_not_taken_for_the_file(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", checksum=None)
    assert "Git LFS pointer" in refusal(tmp_path)


def test_a_mirror_has_the_files_under_their_names(site: Site, tmp_path: Path) -> None:
    site.publish("deep/jobs list.csv", JOBS)
    site.files["mirror/deep/jobs%20list.csv"] = JOBS
    get(tmp_path, base_url=f"{site.url}/mirror/")
    assert visible(tmp_path) == {"deep/jobs list.csv"}


def test_a_wrong_name_suggests_the_right_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown public trace 'pai2021'; did you mean 'pai2020'"):
        fetch("pai2021", tmp_path)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file"):
        fetch("dlrm2025", tmp_path / "file")


@pytest.mark.parametrize("checksum", ["right", None], ids=["published", "recorded"])
def test_verify_finds_a_flipped_byte(checksum: str | None, site: Site, tmp_path: Path) -> None:
    site.publish("trace.tar.gz", tar_gz(jobs=JOBS, nodes=b"nodes"), checksum=checksum)
    get(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    status = {v.path.name: v.status for v in verify(tmp_path)}
    assert status == {
        "trace.tar.gz": CheckStatus.OK,
        "jobs.csv": CheckStatus.OK,
        "nodes.csv": CheckStatus.OK,
        "notes.txt": CheckStatus.UNKNOWN,
    }
    for path in (tmp_path / "jobs.csv", tmp_path / ".downloads" / "trace.tar.gz"):
        damaged = bytearray(path.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        path.write_bytes(damaged)
        (found,) = verify(path)
        assert found.status is CheckStatus.WRONG
        assert found.actual == sha256(path) != found.expected


def test_verify_knows_published_files_wherever_they_are(site: Site, tmp_path: Path) -> None:
    site.publish("jobs.csv", JOBS)
    (tmp_path / "copies").mkdir()
    (tmp_path / "copies" / "jobs.csv").write_bytes(JOBS)
    (found,) = verify(tmp_path)
    assert (found.status, found.source) == (CheckStatus.OK, "published with test")


def test_verify_of_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        verify(tmp_path / "absent")


def test_the_catalogue_is_in_order() -> None:
    for trace in CATALOG:
        assert trace.licence
        assert trace.citation
        assert trace.size_bytes
        names = [file.name for file in trace.files]
        assert len(set(names)) == len(names) > 0
        for file in trace.files:
            check_address(file.url)
            for checksum in (file.sha256, *(s for _, s in file.contents)):
                assert checksum is None or re.fullmatch("[0-9a-f]{64}", checksum)


def test_the_copies_at_hand_have_the_sums_of_the_catalogue(real_data: Path) -> None:
    sums = {f.name: f.sha256 for t in CATALOG for f in t.files if f.sha256 and f.size_bytes}
    checked = 0
    for path in real_data.rglob("*"):
        if expected := sums.get(path.name.removesuffix(".gz")):
            data = path.read_bytes()
            assert sum_of(gzip.decompress(data) if path.suffix == ".gz" else data) == expected, path
            checked += 1
    assert checked >= 20
