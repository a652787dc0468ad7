"""Public traces brought to this machine: downloaded, checked against their sums, and unpacked.

A fetched folder holds the trace's plain files and nothing else that ingest could take for data: what is unfinished,
the archives the files came from, and `checksums.json` are in its hidden folder `.downloads`. Where the publisher
gives no checksum, the one of the first download is recorded there and holds from then on.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from gputwin.core.errors import InputError, UserError
from gputwin.traces import archive
from gputwin.traces.catalog import CATALOG, PublicTrace, TraceFile
from gputwin.traces.checksums import DOWNLOADS, Checksums, Verification, verify
from gputwin.traces.download import check_address, download
from gputwin.traces.sources import sha256

__all__ = ["FetchResult", "FetchedFile", "Verification", "fetch", "verify"]

_ALWAYS_ALLOWED_BYTES = 64 << 20
_MOST_IF_UNKNOWN_BYTES = 16 << 30
_SIZE_MARGIN = 4
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"

Progress = Callable[[str, int, int | None], None]
"""Called with a file's name, its bytes here so far and, where known, its bytes in all."""


@dataclass(frozen=True)
class FetchedFile:
    """One published file on this machine, and the files unpacked from it."""

    file: TraceFile
    path: Path
    sha256: str
    was_there: bool
    unpacked: tuple[Path, ...] = ()

    def line(self) -> str:
        """Return what was done, in one line of words."""
        done = "already there" if self.was_there else "downloaded"
        if self.file.sha256:
            return f"{self.file.name}: {done}, checksum verified"
        verb = "matches the recorded" if self.was_there else "recorded"
        return f"{self.file.name}: {done}, no published checksum: {verb} {self.sha256}"


@dataclass(frozen=True)
class FetchResult:
    """A public trace on this machine."""

    trace: PublicTrace
    folder: Path
    files: tuple[FetchedFile, ...]


def fetch(
    name: str,
    into: Path,
    *,
    progress: Progress | None = None,
    base_url: str | None = None,
    unpack: bool = True,
    sleep: Callable[[float], None] = time.sleep,
) -> FetchResult:
    """Return the public trace `name`, downloaded into the folder `into` as far as it is not there yet.

    `base_url` is the address of a mirror that has the files under their names.
    """
    trace = CATALOG.get(name)
    if base_url is not None:
        check_address(base_url)
    try:
        (into / DOWNLOADS).mkdir(parents=True, exist_ok=True)
        fetching = _Fetching(trace, into, Checksums.of(into), progress, base_url, sleep)
        return FetchResult(trace, into, tuple(fetching.file(file, unpack) for file in trace.files))
    except OSError as error:
        raise InputError(
            error.strerror or str(error), file=error.filename or into, remedy="choose another folder"
        ) from error


@dataclass(frozen=True)
class _Fetching:
    """One fetch: where to, from where, and what is known so far."""

    trace: PublicTrace
    folder: Path
    sums: Checksums
    progress: Progress | None
    base_url: str | None
    sleep: Callable[[float], None]

    def file(self, file: TraceFile, unpack: bool) -> FetchedFile:
        """Return `file`, downloaded if need be, and unpacked if it is an archive and that is wanted."""
        plain, kept = self.folder / file.name, self.folder / DOWNLOADS / file.name
        path, checksum = self._finished(file, (kept, plain)) or (None, "")
        was_there = path is not None
        if path is None:
            if plain.exists() and self.sums.get(file.name) is None:
                raise _in_the_way(plain)
            checksum = self._download(file, kept)
            path = kept
        is_packed = archive.is_archive(path)
        if is_packed and unpack:
            path = _move(path, kept)
            return FetchedFile(file, path, checksum, was_there, self._unpack(file, path))
        # An archive stays hidden where its files are already in the folder: ingest should see them once.
        if not is_packed or file.name not in self.sums.unpacked:
            path = _move(path, plain)
        return FetchedFile(file, path, checksum, was_there)

    def _finished(self, file: TraceFile, paths: Sequence[Path]) -> tuple[Path, str] | None:
        """Return which of `paths` is the whole file, and its sum."""
        expected = self._expected(file)
        for path in paths:
            if expected and path.is_file() and sha256(path) == expected:
                self.sums.record(file.name, expected)
                return path, expected
        return None

    def _expected(self, file: TraceFile) -> str | None:
        return file.sha256 or self.sums.files.get(file.name)

    def _download(self, file: TraceFile, target: Path) -> str:
        """Bring `file` to `target`, whose name it gets only when its sum is right; return the sum."""
        url = file.url if self.base_url is None else f"{self.base_url.rstrip('/')}/{quote(file.name)}"
        part = target.with_name(f"{target.name}.part")
        part.parent.mkdir(parents=True, exist_ok=True)
        most = _MOST_IF_UNKNOWN_BYTES
        if file.size_bytes is not None:
            most = max(_ALWAYS_ALLOWED_BYTES, _SIZE_MARGIN * file.size_bytes)

        def report(here: int, total: int | None) -> None:
            if self.progress:
                self.progress(file.name, here, total)

        download(
            url,
            part,
            most_bytes=most,
            sum_is_known=self._expected(file) is not None,
            homepage=self.trace.homepage,
            progress=report,
            sleep=self.sleep,
        )
        checksum = self._checked(file, part, url)
        part.replace(target)
        self.sums.record(file.name, checksum)
        return checksum

    def _checked(self, file: TraceFile, part: Path, url: str) -> str:
        """Return the sum of what was downloaded; the wrong bytes are removed and reported."""
        with part.open("rb") as f:
            is_pointer = f.read(len(_LFS_POINTER)) == _LFS_POINTER
        actual = sha256(part)
        expected = self._expected(file) or actual
        if actual == expected and not is_pointer:
            return actual
        part.unlink()
        if is_pointer:
            raise InputError("a Git LFS pointer came instead of the file", file=url, remedy="use another mirror")
        known = "published" if file.sha256 else "recorded at the first download"
        raise InputError(
            f"wrong checksum: expected {expected} ({known}), got {actual}",
            file=url,
            remedy="fetch again; if it stays so, the publisher changed the file: fetch into another folder",
        )

    def _unpack(self, file: TraceFile, path: Path) -> tuple[Path, ...]:
        """Put the archive's files into the folder, each whole or not at all; return where they are."""
        known = self.sums.unpacked.get(file.name, {})
        there = [self.folder / name for name in known]
        if known and all(p.is_file() and sha256(p) == s for p, s in zip(there, known.values(), strict=True)):
            return tuple(there)
        staging = path.with_name(f"{path.name}.unpacked")
        shutil.rmtree(staging, ignore_errors=True)
        try:
            members = {p.relative_to(staging).as_posix(): p for p in archive.unpack(path, staging)}
            sums = {name: sha256(member) for name, member in members.items()}
            self._check_members(file, path, sums)
            # Recorded before they are moved: after an interruption they are known to be ours.
            self.sums.record_unpacked(file.name, sums)
            return tuple(_move(member, self.folder / name) for name, member in members.items())
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def _check_members(self, file: TraceFile, path: Path, sums: dict[str, str]) -> None:
        published = dict(file.contents)
        for name, actual in sums.items():
            expected = published.get(name, actual)
            if actual != expected:
                raise InputError(
                    f"member '{name}': wrong checksum: expected {expected}, got {actual}",
                    file=path,
                    remedy="delete the archive and fetch again",
                )
            if name.split("/")[0] == DOWNLOADS:
                raise InputError(
                    f"member '{name}' would overwrite our own records",
                    file=path,
                    remedy="do not use the archive",
                )
            if (self.folder / name).exists() and self.sums.get(name) is None:
                raise _in_the_way(self.folder / name)


def _in_the_way(path: Path) -> UserError:
    return UserError(f"'{path}' is in the way and not of this trace as published; move it, or choose another folder")


def _move(path: Path, to: Path) -> Path:
    if path != to:
        to.parent.mkdir(parents=True, exist_ok=True)
        path.replace(to)
    return to
