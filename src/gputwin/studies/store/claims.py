"""Claims on keys, so that two processes do not run the same thing: a lock of the file system, gone when its holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def claimed(path: Path, *, wait: bool = True) -> Iterator[bool]:
    """Yield whether the lock on the file `path` is ours until the end of the context; `wait` until it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = _lock(path, wait)
    if handle is None:
        yield False
        return
    try:
        yield True
    finally:
        # The file goes before the lock does: who waits for it finds another file, or none, and looks again.
        path.unlink(missing_ok=True)
        os.close(handle)


def _lock(path: Path, wait: bool) -> int | None:
    """Return the open, locked file; None where another has it and we do not wait."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _is_at(handle, path):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _is_at(handle: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    ours = os.fstat(handle)
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
