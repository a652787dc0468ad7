"""What is known of fetched files: sums the catalogue publishes and sums recorded at the first download."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from gputwin.core.atomic import atomic_file
from gputwin.core.errors import InputError
from gputwin.traces.catalog import CATALOG
from gputwin.traces.sources import sha256

DOWNLOADS = ".downloads"
CHECKSUMS = "checksums.json"


class CheckStatus(StrEnum):
    """How a file compares with what is known of it."""

    OK = "ok"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Verification:
    """One file checked; `expected` is None where no sum is known, `source` says where it is known from."""

    path: Path
    status: CheckStatus
    actual: str
    expected: str | None = None
    source: str = ""


@dataclass
class Checksums:
    """The record of a fetched folder: sums of its downloads, and of the files unpacked from each archive."""

    folder: Path
    files: dict[str, str] = field(default_factory=dict)
    unpacked: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> Checksums:
        """Return the folder's record, empty if it has none yet."""
        path = folder / DOWNLOADS / CHECKSUMS
        if not path.is_file():
            return cls(folder)
        try:
            record = json.loads(path.read_text())
            return cls(folder, dict(record["files"]), {k: dict(v) for k, v in record["unpacked"].items()})
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InputError("not a record of checksums", file=path, remedy="delete it") from None

    def record(self, name: str, checksum: str) -> None:
        """Keep the sum of the download `name`."""
        if self.files.get(name) != checksum:
            self.files[name] = checksum
            self._save()

    def record_unpacked(self, name: str, sums: dict[str, str]) -> None:
        """Keep the sums of the files unpacked from the archive `name`."""
        self.unpacked[name] = sums
        self._save()

    def get(self, name: str) -> str | None:
        """Return the sum recorded for the folder's file `name`, downloaded or unpacked."""
        return self.files.get(name) or next((s[name] for s in self.unpacked.values() if name in s), None)

    def _save(self) -> None:
        with atomic_file(self.folder / DOWNLOADS / CHECKSUMS) as path:
            record = {"files": self.files, "unpacked": self.unpacked}
            path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


def verify(path: Path) -> list[Verification]:
    """Return how each file of the folder `path` (or the one file) compares with its published or recorded sum."""
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file() and not _is_ours(p.relative_to(path)))
        if not files:
            raise InputError("the folder has no files", file=path, remedy="fetch a trace into it first")
    elif path.is_file():
        files = [path]
    else:
        raise InputError("no such file or folder", file=path, remedy="check the path")
    published = dict(_published())
    return [_verify(file, published) for file in files]


def _is_ours(path: Path) -> bool:
    """Return whether the file is no data: a record, an unfinished download, or hidden."""
    hidden = any(part.startswith(".") and part != DOWNLOADS for part in path.parts)
    return hidden or path.name == CHECKSUMS or ".part" in path.suffixes


def _published() -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield each file name of the catalogue with its sum and the trace it is of."""
    for trace in CATALOG:
        for file in trace.files:
            for name, checksum in ((file.name, file.sha256), *file.contents):
                if checksum is not None:
                    yield name, (checksum, trace.name)


def _verify(path: Path, published: dict[str, tuple[str, str]]) -> Verification:
    actual, parts = sha256(path), path.resolve().parts
    names = ("/".join(parts[i:]) for i in range(1, len(parts)))  # the longest first
    known = next((published[name] for name in names if name in published), None)
    if known is not None:
        expected, source = known[0], f"published with {known[1]}"
    elif recorded := _recorded(path.resolve()):
        expected, source = recorded, "recorded at the first download"
    else:
        return Verification(path, CheckStatus.UNKNOWN, actual)
    status = CheckStatus.OK if actual == expected else CheckStatus.WRONG
    return Verification(path, status, actual, expected, source)


def _recorded(path: Path) -> str | None:
    """Return the sum that the fetched folder around `path` has recorded for it."""
    for folder in path.parents:
        if (folder / DOWNLOADS / CHECKSUMS).is_file():
            return Checksums.of(folder).get(path.relative_to(folder).as_posix().removeprefix(f"{DOWNLOADS}/"))
    return None
