from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gputwin.core.atomic import atomic_directory, atomic_file
from gputwin.core.errors import UserError

MARKER = "trace.json"


def names(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def write_file(target: Path, interruption: type[BaseException]) -> None:
    with atomic_file(target) as fresh:
        fresh.write_text("new")
        raise interruption


def write_directory(target: Path, meanwhile: Callable[[], None] = lambda: None) -> None:
    with atomic_directory(target, MARKER) as fresh:
        (fresh / MARKER).write_text("new")
        meanwhile()


def ours(folder: Path) -> Path:
    folder.mkdir()
    (folder / MARKER).write_text("old")
    return folder


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "new" / "result.csv"
    with atomic_file(target) as fresh:
        fresh.write_text("half")
        assert not target.exists()
        assert fresh.suffix == ".csv"
    assert target.read_text() == "half"
    assert names(target.parent) == {"result.csv"}


@pytest.mark.parametrize("interruption", [ValueError, KeyboardInterrupt])
def test_a_failed_write_leaves_the_old_file_alone(tmp_path: Path, interruption: type[BaseException]) -> None:
    target = tmp_path / "result.csv"
    target.write_text("old")
    with pytest.raises(interruption):
        write_file(target, interruption)
    assert target.read_text() == "old"
    assert names(tmp_path) == {"result.csv"}


def test_a_file_never_replaces_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder"), atomic_file(tmp_path):
        pass


def test_a_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    with atomic_file(link) as fresh:
        fresh.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


@pytest.mark.parametrize("before", ["absent", "empty", "ours"])
def test_a_directory_takes_the_place_of_nothing_an_empty_one_or_one_of_ours(tmp_path: Path, before: str) -> None:
    target = tmp_path / "trace"
    if before == "empty":
        target.mkdir()
    elif before == "ours":
        (ours(target) / "stale.parquet").write_text("stale")
    with atomic_directory(target, MARKER) as fresh:
        (fresh / MARKER).write_text("new")
        (fresh / "deep").mkdir()
    assert names(target) == {MARKER, "deep"}
    assert (target / MARKER).read_text() == "new"
    assert names(tmp_path) == {"trace"}


def test_a_folder_that_is_not_ours_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("years of work")
    worked: list[bool] = []
    with pytest.raises(UserError, match=r"refusing to overwrite '.*thesis'.*no trace\.json"):
        write_directory(tmp_path / "thesis", lambda: worked.append(True))
    assert not worked
    assert names(tmp_path / "thesis") == {"chapter1.tex"}


def test_a_folder_that_stopped_being_ours_meanwhile_is_refused_too(tmp_path: Path) -> None:
    target = tmp_path / "trace"

    def somebody_writes_there() -> None:
        target.mkdir()
        (target / "somebody-elses.txt").write_text("hands off")

    with pytest.raises(UserError, match="refusing"):
        write_directory(target, somebody_writes_there)
    assert names(target) == {"somebody-elses.txt"}
    assert names(tmp_path) == {"trace"}


@pytest.mark.parametrize("interruption", [ValueError, KeyboardInterrupt])
def test_a_failed_directory_leaves_the_old_one_and_nothing_else(
    tmp_path: Path, interruption: type[BaseException]
) -> None:
    target = ours(tmp_path / "trace")

    def fail() -> None:
        raise interruption

    with pytest.raises(interruption):
        write_directory(target, fail)
    assert (target / MARKER).read_text() == "old"
    assert names(tmp_path) == {"trace"}


def test_the_old_directory_comes_back_when_the_new_one_cannot_be_moved_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = ours(tmp_path / "trace")
    rename = Path.rename

    def refuse_the_new_one(self: Path, to: Path) -> Path:
        if to == target and (self / MARKER).read_text() == "new":
            raise KeyboardInterrupt
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", refuse_the_new_one)
    with pytest.raises(KeyboardInterrupt):
        write_directory(target)
    assert (target / MARKER).read_text() == "old"
    assert names(tmp_path) == {"trace"}


def test_leftovers_of_a_killed_run_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / ".0123456789ab.trace").mkdir()
    write_directory(tmp_path / "trace")
    assert names(tmp_path) == {"trace", ".0123456789ab.trace"}


def test_a_directory_never_replaces_a_file(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text("a file")
    with pytest.raises(UserError, match="is a file"), atomic_directory(tmp_path / "trace", MARKER):
        pass


def test_the_current_folder_cannot_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="current folder"), atomic_directory(Path(), MARKER):
        pass
