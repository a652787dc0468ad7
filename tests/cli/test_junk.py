"""Whatever is wrong with the input: exit code 2, one line (where, what, what to do), and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path

import pytest

from gputwin.cli.main import main
from gputwin.traces import archive
from tests.cli import junk
from tests.cli.junk import Junk
from tests.cli.process import gputwin
from tests.traces.samples import dlrm2025

LITTLE = 1 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which temporary files are made; archives may expand to a little only."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    monkeypatch.setattr(archive, "ALWAYS_ALLOWED_BYTES", LITTLE)
    monkeypatch.setattr(archive, "MOST_EXPANSION", 100)
    return tmp_path / "scratch"


def content(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


def assert_one_line(code: int, out: str, err: str, says: tuple[str, ...]) -> None:
    assert code == 2, err
    assert out == ""
    assert err.startswith("gputwin: ")
    assert err.count("\n") == 1, err
    assert err.endswith("\n")
    for words in says:
        assert words in err
    # What to do comes after a semicolon, or the message says what the value must be.
    assert re.search(r"; \S+|must (be|have)", err), f"no remedy: {err}"


@pytest.mark.parametrize("mistake", junk.EVERY, ids=lambda m: m.name)
def test_a_mistake_is_one_line_and_leaves_nothing(
    mistake: Junk, folder: Path, scratch: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = mistake.make(folder)
    before = content(folder)
    code = main(arguments)
    # capfd also sees what compiled code writes past Python.
    out, err = capfd.readouterr()
    assert_one_line(code, out, err, mistake.says)
    assert content(folder) == before
    assert list(scratch.iterdir()) == []


FOR_REAL = ("unclosed quote", "quote at the end", "gzip flipped", "tar that climbs", "deep JSON", "wrong field")


@pytest.mark.parametrize("mistake", [m for m in junk.EVERY if m.name in FOR_REAL], ids=lambda m: m.name)
def test_a_real_process_says_the_same_line(mistake: Junk, folder: Path, scratch: Path) -> None:
    arguments = mistake.make(folder)
    before = content(folder)
    done = gputwin(arguments, folder, TMPDIR=str(scratch))
    assert_one_line(done.returncode, done.stdout, done.stderr, mistake.says)
    assert content(folder) == before
    assert list(scratch.iterdir()) == []


def test_an_unreadable_file_is_one_line(folder: Path, scratch: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (path,) = dlrm2025.write(folder)
    path.chmod(0)
    code = main(["ingest", str(path)])
    assert_one_line(code, *capfd.readouterr(), ("Permission denied", path.name))


def test_a_missing_option_is_one_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["split", "synthetic:pai2020?jobs=5"]) == 2
    assert ".;" not in capfd.readouterr().err


def test_a_name_cannot_break_the_line(folder: Path, scratch: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "two\nlines\x1b[31m.csv").write_text("a,b\n1,2\n")
    code = main(["ingest", str(folder / "two\nlines\x1b[31m.csv")])
    out, err = capfd.readouterr()
    assert_one_line(code, out, err, ("two lines", "known formats"))
    assert "\x1b" not in err


@pytest.mark.parametrize(
    "name", ["x" * 5000, "nul\0byte", "/proc/self/mem/x", ""], ids=["long", "NUL", "proc", "empty"]
)
@pytest.mark.parametrize("verb", ["ingest", "describe", "check"])
def test_an_impossible_path_is_one_line(
    verb: str,
    name: str,
    folder: Path,
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    assert_one_line(main([verb, name]), *capfd.readouterr(), ())


@pytest.mark.parametrize("output", ["x" * 5000, "/proc/nowhere/out", "nul\0byte"], ids=["long", "proc", "NUL"])
def test_an_impossible_output_is_one_line(
    output: str, folder: Path, scratch: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (path,) = dlrm2025.write(folder)
    code = main(["ingest", str(path), "-o", output if output.startswith("/") else str(folder / output)])
    assert_one_line(code, *capfd.readouterr(), ())
    assert list(folder.iterdir()) == [path]


def test_a_name_of_no_encoding_is_one_line(folder: Path, scratch: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (path,) = dlrm2025.write(folder)
    code = main(["ingest", str(path), "-o", str(folder / os.fsdecode(b"tr\xe9s"))])
    assert_one_line(code, *capfd.readouterr(), ("not UTF-8",))
    path = path.rename(folder / os.fsdecode(b"caf\xe9.csv"))
    assert_one_line(main(["ingest", str(path)]), *capfd.readouterr(), ("not UTF-8", "rename it"))
    assert list(folder.iterdir()) == [path]


ODD = {
    "NaN": ("cpu_request", "NaN", None),
    "infinite": ("memory_request", "inf", "F11"),
    "absurdly large": ("disk_request", "1e300", "F11"),
    "negative amount": ("cpu_request", "-4", "Q20"),
    "negative time": ("creation_time", "-10", "Q10"),
    "starts before it is asked for": ("creation_time", "25.0", "Q11"),
    "ends before it starts": ("deletion_time", "15.0", "Q12"),
    "used before": ("instance_sn", "instance_1", "Q02"),
    "no name": ("instance_sn", "", "Q01"),
    "larger than its limit": ("cpu_request", "65", "Q24"),
    "a part of a unit": ("rdma_request", "1.5", "F10"),
    "a GPU's half": ("gpu_request", "0.5", "F10"),
}


@pytest.mark.parametrize("kind", ODD)
def test_odd_values_are_counted_findings_and_strict_refuses_them(
    kind: str, folder: Path, scratch: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    column, value, rule = ODD[kind]
    path = folder / "odd.csv"
    path.write_text(junk.HEADER + junk.GOOD + junk.row(**{"instance_sn": "instance_2", column: value}))
    assert main(["ingest", str(path), "-o", str(folder / "out"), "--json"]) == 0
    result = json.loads(capfd.readouterr().out)
    assert result["rows_read"] == 2 == result["rows_kept"] + result["rows_dropped"]
    assert result["tables"]["tasks"] == result["rows_kept"]
    found = {f["rule"]: f["count"] for f in result["findings"]}
    assert found == ({} if rule is None else found | {rule: 1})
    if rule is not None:
        code = main(["ingest", str(path), "-o", str(folder / "strict"), "--strict"])
        assert_one_line(code, *capfd.readouterr(), ("without --strict",))
        assert not (folder / "strict").exists()
