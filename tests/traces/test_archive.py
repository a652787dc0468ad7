from __future__ import annotations

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gputwin.core.errors import InputError, UserError
from gputwin.traces import archive
from gputwin.traces.archive import is_archive, unpack

ROWS = b"job_id,gpus\n1,8\n2,4\n" * 100
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def member(name: str, kind: bytes = tarfile.REGTYPE, *, size: int = 0, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, target
    return info


def tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as out:
        for info, data in members:
            info.size = len(data)
            out.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in members:
            out.writestr(name, data)
    return buffer.getvalue()


def special(name: str, kind: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, (kind | 0o777) << 16
    return info


@pytest.fixture
def save(tmp_path: Path) -> Callable[[bytes], Path]:
    def _save(data: bytes) -> Path:
        path = tmp_path / "in" / "mystery"
        path.parent.mkdir()
        path.write_bytes(data)
        return path

    return _save


def refusal(path: Path, into: Path) -> str:
    """Return the one line with which the archive is refused, having left nothing behind."""
    with pytest.raises(InputError) as caught:
        unpack(path, into)
    assert {p.name for p in into.parent.iterdir()} == {"in"}
    line = str(caught.value)
    assert "\n" not in line
    assert line.startswith(str(path))
    assert caught.value.remedy
    return line


@pytest.mark.parametrize("compression", COMPRESSORS)
def test_a_tar_is_known_by_its_content_and_unpacked(
    compression: str, save: Callable[[bytes], Path], tmp_path: Path
) -> None:
    data = tar(
        (member("./", tarfile.DIRTYPE), b""),
        (member("./data", tarfile.DIRTYPE), b""),
        (member("./data/jobs.csv"), ROWS),
        (member("nodes.csv"), b"x" * 512),
        (member("empty.csv"), b""),
    )
    path = save(COMPRESSORS[compression](data))
    assert is_archive(path)
    into = tmp_path / "out"
    assert unpack(path, into) == [into / "data" / "jobs.csv", into / "empty.csv", into / "nodes.csv"]
    assert (into / "data" / "jobs.csv").read_bytes() == ROWS
    assert stat.S_IMODE((into / "nodes.csv").stat().st_mode) == 0o644


def test_a_zip_is_known_by_its_content_and_unpacked(save: Callable[[bytes], Path], tmp_path: Path) -> None:
    path = save(zipped(("data/", b""), ("data/Venus/cluster_log.csv", ROWS)))
    assert is_archive(path)
    (unpacked,) = unpack(path, tmp_path / "out")
    assert unpacked == tmp_path / "out" / "data" / "Venus" / "cluster_log.csv"
    assert unpacked.read_bytes() == ROWS


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 1024,
        ROWS,
        gzip.compress(ROWS),
        bz2.compress(ROWS),
        lzma.compress(ROWS),
        gzip.compress(b""),
    ],
    ids=["empty", "zeros", "csv", "csv.gz", "csv.bz2", "csv.xz", "empty.gz"],
)
def test_a_table_is_no_archive_however_compressed(data: bytes, save: Callable[[bytes], Path]) -> None:
    assert not is_archive(save(data))


@pytest.mark.parametrize("junk", [b"\x1f\x8b junk", b"BZh junk", b"\xfd7zXZ\0 junk"])
def test_a_damaged_compressed_file_is_no_archive(junk: bytes, save: Callable[[bytes], Path]) -> None:
    assert not is_archive(save(junk))


EVIL_NAMES = {
    "climbs": "../../etc/cron.d/job",
    "climbs inside": "data/../../job",
    "absolute": "/etc/passwd",
    "backslash": "..\\..\\job",
    "drive": "C:/Windows/job",
    "drive below": "data/C:job",
    "escape sequence": "\x1b[2Jjob",
    "newline": "a\nb",
    "overlong": "a" * 300,
}


@pytest.mark.parametrize("name", EVIL_NAMES.values(), ids=EVIL_NAMES)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_names_that_lead_elsewhere_are_refused(
    name: str, kind: str, save: Callable[[bytes], Path], tmp_path: Path
) -> None:
    good = ("jobs.csv", ROWS)
    if kind == "tar":
        data = gzip.compress(tar((member(good[0]), ROWS), (member(name), b"evil")))
    else:
        data = zipped(good, (name, b"evil"))
    assert "member '" in refusal(save(data), tmp_path / "out")


def test_a_nul_in_a_zip_name_is_refused(save: Callable[[bytes], Path], tmp_path: Path) -> None:
    data = zipped(("jobs.csv_.exe", b"evil")).replace(b"jobs.csv_.exe", b"jobs.csv\0.exe")
    assert "unprintable" in refusal(save(data), tmp_path / "out")


@pytest.mark.parametrize(
    ("info", "word"),
    [
        (member("link", tarfile.SYMTYPE, target="/etc/passwd"), "symbolic link"),
        (member("link", tarfile.LNKTYPE, target="jobs.csv"), "hard link"),
        (member("null", tarfile.CHRTYPE), "special file"),
        (member("disk", tarfile.BLKTYPE), "special file"),
        (member("pipe", tarfile.FIFOTYPE), "special file"),
    ],
    ids=["symlink", "hardlink", "character device", "block device", "pipe"],
)
def test_only_regular_files_leave_a_tar(
    info: tarfile.TarInfo, word: str, save: Callable[[bytes], Path], tmp_path: Path
) -> None:
    line = refusal(save(gzip.compress(tar((member("jobs.csv"), ROWS), (info, b"")))), tmp_path / "out")
    assert f"member '{info.name}'" in line
    assert word in line


@pytest.mark.parametrize(("kind", "word"), [(stat.S_IFLNK, "symbolic link"), (stat.S_IFCHR, "special file")])
def test_only_regular_files_leave_a_zip(kind: int, word: str, save: Callable[[bytes], Path], tmp_path: Path) -> None:
    data = zipped(("jobs.csv", ROWS), (special("odd", kind), b"/etc/passwd"))
    assert f"member 'odd' is a {word}" in refusal(save(data), tmp_path / "out").replace("device or another ", "")


def test_a_link_then_a_file_through_it_is_refused(save: Callable[[bytes], Path], tmp_path: Path) -> None:
    evil = tar((member("out", tarfile.SYMTYPE, target=str(tmp_path)), b""), (member("out/job"), b"evil"))
    assert "symbolic link" in refusal(save(evil), tmp_path / "out")


@pytest.mark.parametrize("names", [("a.csv", "a.csv"), ("a.csv", "./a.csv"), ("a", "a/b"), ("a/b", "a")])
def test_a_name_used_twice_is_refused(names: tuple[str, str], save: Callable[[bytes], Path], tmp_path: Path) -> None:
    data = tar(*((member(name), ROWS) for name in names))
    assert "occurs twice" in refusal(save(data), tmp_path / "out")


@pytest.mark.parametrize("kind", ["tar.gz", "tar.xz", "zip", "tar.gz header"])
def test_a_bomb_is_refused_before_it_fills_the_disk(
    kind: str, save: Callable[[bytes], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "ALWAYS_ALLOWED_BYTES", 1 << 20)
    monkeypatch.setattr(archive, "MOST_EXPANSION", 10)
    zeros = b"\0" * (8 << 20)
    if kind == "zip":
        data = zipped(*((f"{i}.csv", zeros[: 1 << 19]) for i in range(16)))
    elif kind == "tar.gz header":
        # An extended header is read into memory whole: this one says it is 8 MiB long.
        data = gzip.compress(tar((member("././@PaxHeader", tarfile.XHDTYPE), zeros), (member("a.csv"), ROWS)))
    else:
        data = COMPRESSORS[kind.removeprefix("tar.")](tar((member("zeros.csv"), zeros)))
    assert len(data) < 1 << 17
    line = refusal(save(data), tmp_path / "out")
    assert "expands too far" in line or "absurdly long" in line


def test_no_archive_may_use_more_than_the_free_disk(
    save: Callable[[bytes], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 1000})
    monkeypatch.setattr("gputwin.traces.archive.shutil.disk_usage", lambda path: usage)
    assert "expands too far" in refusal(save(tar((member("a.csv"), ROWS))), tmp_path / "out")


def test_too_many_members_are_refused(
    save: Callable[[bytes], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_MEMBERS", 10)
    data = tar(*((member(f"{i}.csv"), b"") for i in range(11)))
    assert "more than 10 members" in refusal(save(data), tmp_path / "out")


@pytest.mark.parametrize("compression", COMPRESSORS)
@pytest.mark.parametrize("keep", [0.3, 0.6, 0.95])
def test_a_cut_tar_is_refused_wherever_it_is_cut(
    compression: str, keep: float, save: Callable[[bytes], Path], tmp_path: Path
) -> None:
    noise = bytes(i * i * 31 % 251 for i in range(40_000))
    data = COMPRESSORS[compression](tar((member("a.csv"), noise), (member("b.csv"), noise)))
    # Plain tars end in zeros up to 10 kB, so cut before those.
    whole = len(data) if compression != "plain" else 80_000
    assert "cut short or damaged" in refusal(save(data[: int(whole * keep)]), tmp_path / "out")


def test_a_tar_cut_between_two_members_is_refused(save: Callable[[bytes], Path], tmp_path: Path) -> None:
    data = tar((member("a.csv"), b"x" * 512), (member("b.csv"), b"y" * 512))
    assert "no end of archive" in refusal(save(data[:1024]), tmp_path / "out")


def test_a_damaged_header_does_not_pass_for_the_end(save: Callable[[bytes], Path], tmp_path: Path) -> None:
    data = bytearray(tar((member("a.csv"), b"x" * 512), (member("b.csv"), b"y" * 512)))
    data[1024] ^= 0xFF
    assert "cut short or damaged" in refusal(save(bytes(data)), tmp_path / "out")


@pytest.mark.parametrize("keep", [0.5, 0.99])
def test_a_cut_zip_is_refused(keep: float, save: Callable[[bytes], Path], tmp_path: Path) -> None:
    data = zipped(("a.csv", ROWS), ("b.csv", ROWS))
    path = save(data[: int(len(data) * keep)])
    assert is_archive(path)
    assert "cut short or damaged" in refusal(path, tmp_path / "out")


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_a_flipped_byte_is_found(kind: str, save: Callable[[bytes], Path], tmp_path: Path) -> None:
    noise = bytes(i * i * 31 % 251 for i in range(40_000))
    packed = gzip.compress(tar((member("a.csv"), noise))) if kind == "tar.gz" else zipped(("a.csv", noise))
    damaged = bytearray(packed)
    damaged[len(damaged) // 2] ^= 0x10
    assert "cut short or damaged" in refusal(save(bytes(damaged)), tmp_path / "out")


def test_an_encrypted_zip_says_so(save: Callable[[bytes], Path], tmp_path: Path) -> None:
    data = bytearray(zipped(("secret.csv", ROWS)))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    assert "'secret.csv' is encrypted" in refusal(save(bytes(data)), tmp_path / "out")


def test_nothing_is_unpacked_over_what_is_there(save: Callable[[bytes], Path], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="refusing to overwrite"):
        unpack(save(tar((member("a.csv"), ROWS))), tmp_path / "out")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["mine.txt"]
