"""Raw input files: found, unpacked into a private folder where compressed, sniffed, and checksummed."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gputwin.core.errors import InputError
from gputwin.traces.archive import is_archive, unpack

HEAD_BYTES = 1 << 16
LONGEST_LINE_BYTES = 1 << 20
_MOST_EXPANSION = 1000
_ALWAYS_ALLOWED_BYTES = 1 << 30
_CHUNK = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"
_SKIPPED_SUFFIXES = {".md", ".header", ".txt.license"}


@dataclass(frozen=True)
class Source:
    """One plain (uncompressed) input file; `label` is what to call it in messages."""

    label: str
    name: str
    path: Path
    given: Path

    @cached_property
    def head(self) -> bytes:
        """Return the first bytes of the file."""
        with self.path.open("rb") as f:
            return f.read(HEAD_BYTES)

    @cached_property
    def header(self) -> tuple[str, ...]:
        """Return the fields of the first line, as a CSV header would have them."""
        first = self.head.split(b"\n", 1)[0].decode("utf-8-sig", errors="replace").rstrip("\r")
        return tuple(field.strip().strip('"') for field in first.split(","))

    def check_text(self) -> None:
        """Raise an InputError unless the file looks like text with lines of sane length."""
        if not self.head:
            raise InputError("the file is empty", file=self.label, remedy="give a file with rows")
        if self.head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError("the file is UTF-16", file=self.label, remedy="convert it: iconv -f UTF-16 -t UTF-8")
        if b"\0" in self.head:
            raise InputError(
                "the file is binary, not text", file=self.label, remedy="give the CSV, JSON or text export"
            )
        with self.path.open("rb") as f:
            if b"\n" not in f.read(LONGEST_LINE_BYTES) and self.path.stat().st_size > LONGEST_LINE_BYTES:
                if self.head.lstrip()[:1] in (b"{", b"["):
                    return
                raise InputError(
                    f"the first line is longer than {LONGEST_LINE_BYTES >> 20} MiB",
                    file=self.label,
                    row=1,
                    remedy="this is not a table; check how the file was exported",
                )


@contextmanager
def gather(paths: Sequence[Path]) -> Iterator[list[Source]]:
    """Yield every input file below `paths`, unpacked where needed; the unpacked copies go away afterwards."""
    with tempfile.TemporaryDirectory(prefix="gputwin-") as scratch:
        yield [
            source
            for i, path in enumerate(_files(paths))
            for source in _open(path, Path(scratch) / str(i), explicit=path in paths)
        ]


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def _files(paths: Sequence[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            below = sorted(p for p in path.rglob("*") if p.is_file() and not _hidden(p, path))
            if not below:
                raise InputError("the folder has no files", file=path, remedy="give a folder with trace files")
            found += below
        elif path.is_file():
            found.append(path)
        else:
            raise InputError("no such file or folder", file=path, remedy="check the path")
    return list(dict.fromkeys(found))


def _hidden(path: Path, root: Path) -> bool:
    parts = path.relative_to(root).parts
    return any(p.startswith(".") for p in parts) or path.suffix in _SKIPPED_SUFFIXES


def _open(path: Path, scratch: Path, *, explicit: bool) -> Iterator[Source]:
    try:
        if is_archive(path):
            for member in unpack(path, scratch):
                if not _hidden(member, scratch):
                    yield Source(f"{path}:{member.relative_to(scratch)}", member.name.lower(), member, path)
        elif _is_gzip(path):
            scratch.mkdir(parents=True)
            plain = scratch / path.name.removesuffix(".gz")
            _gunzip(path, plain)
            yield Source(str(path), plain.name.lower(), plain, path)
        else:
            yield Source(str(path), path.name.lower(), path, path)
    except OSError as error:
        raise InputError(error.strerror or str(error), file=path) from error


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as f:
        return f.read(2) == _GZIP_MAGIC


def _gunzip(path: Path, target: Path) -> None:
    """Unpack `path` into `target`, refusing cut files and ones that expand absurdly."""
    most = max(_ALWAYS_ALLOWED_BYTES, path.stat().st_size * _MOST_EXPANSION)
    free = shutil.disk_usage(target.parent).free
    written = 0
    try:
        with gzip.open(path) as packed, target.open("wb") as plain:
            while chunk := packed.read(_CHUNK):
                written += len(chunk)
                if written > min(most, free):
                    raise InputError("the gzip file expands too far", file=path, remedy="check where it comes from")
                plain.write(chunk)
    except EOFError:
        raise InputError("the gzip file is cut short", file=path, remedy="download it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"the gzip file is damaged ({error})", file=path, remedy="download it again") from None
