"""Files and folders that appear whole or not at all: written beside their place, then moved into it."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gputwin.core.errors import UserError
from gputwin.core.overwriting import may_overwrite


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a path to write to; it takes the place of `path` on success and goes away on failure."""
    path = _real(path)
    if path.is_dir():
        raise UserError(f"'{path}' is a folder; name a file")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = _sibling(path)
    try:
        yield fresh
        _sync(fresh)
        fresh.replace(path)
        _sync(path.parent)
    finally:
        fresh.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: Path, marker: str | None = None, *, sync: bool = True) -> Iterator[Path]:
    """Yield a fresh folder to fill; it takes the place of `path` on success and goes away on failure.

    What stands at `path` already must be an empty folder or one of ours: one that has the file `marker`.
    """
    path = _real(path)
    _check_replaceable(path, marker)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = _sibling(path)
    try:
        fresh.mkdir()
        yield fresh
        if sync:
            for below in (fresh, *fresh.rglob("*")):
                _sync(below)
        # Filling may have taken hours: look again before anything is moved.
        _check_replaceable(path, marker)
        _put_in_place(fresh, path)
        if sync:
            _sync(path.parent)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def is_utf8(path: Path) -> bool:
    """Return whether the path's name is text in UTF-8; file systems allow any bytes."""
    return not any("\ud800" <= c <= "\udfff" for c in str(path))


def _real(path: Path) -> Path:
    """Return where `path` leads, so that a link stays a link and its target is what gets replaced."""
    if not is_utf8(path) or "\0" in str(path):
        raise UserError(f"'{path}' cannot be written: its name is not UTF-8 text; choose another")
    return Path(os.path.realpath(path))


def _sibling(path: Path) -> Path:
    """Return an unused hidden name in the same folder (so: same file system), with the same suffix."""
    return path.with_name(f".{secrets.token_hex(6)}.{path.name}")


def check_ours(path: Path, *markers: str) -> None:
    """Raise where a folder stands at `path` that is not empty and has none of the files by which ours are known.

    Where the user lets others' work be overwritten, nothing is asked of a folder.
    """
    if path.exists() and not path.is_dir():
        raise UserError(f"'{path}' is a file; name a folder")
    if may_overwrite() or not path.is_dir() or not any(path.iterdir()):
        return
    if not any((path / marker).is_file() for marker in markers):
        lacks = f" and has no {' or '.join(markers)}" if markers else ""
        raise UserError(
            f"refusing to overwrite '{path}': the folder is not empty{lacks}, so it is not one of ours;"
            " name another folder, or give --force"
        )


def _check_replaceable(path: Path, marker: str | None) -> None:
    if path.is_dir() and (path.is_mount() or path == Path.cwd()):
        what = "a mount point" if path.is_mount() else "the current folder"
        raise UserError(f"'{path}' is {what} and cannot be replaced; name a folder inside it")
    check_ours(path, *([marker] if marker else []))


def _put_in_place(fresh: Path, path: Path) -> None:
    """Move `fresh` to `path`; what was there is set aside first, and put back if the move does not happen."""
    if not path.exists():
        fresh.rename(path)
        return
    old = _sibling(path)
    path.rename(old)
    try:
        fresh.rename(path)
    except BaseException:
        old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    """Ask the disk to keep what was written; systems that cannot sync a folder are left alone."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
