"""Raw input files: found, unpacked into a private folder where compressed, sniffed, and checksummed."""

from __future__ import annotations

import csv
import gzip
import hashlib
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gputwin.core.atomic import is_utf8
from gputwin.core.errors import InputError
from gputwin.traces.archive import is_archive, most_bytes, unpack

HEAD_BYTES = 1 << 16
LONGEST_LINE_BYTES = 1 << 20
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
        fields = first.split(",")
        if '"' in first and first.count('"') % 2 == 0:
            with suppress(csv.Error):
                fields = next(csv.reader([first]))
        return tuple(field.strip().strip('"') for field in fields)

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
        if b"\n" not in self.head and self.head.count(b"\r") > 1:
            raise InputError("lines end in CR alone", file=self.label, remedy="convert them: tr '\\r' '\\n'")
        self._check_first_line()
        if row := self._first_binary_row():
            raise InputError("the line holds binary data", file=self.label, row=row, remedy="export the file again")

    def _check_first_line(self) -> None:
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

    def _first_binary_row(self) -> int | None:
        """Return the line of the first NUL byte: no parser objects to it, and no text has one."""
        with self.path.open("rb") as f:
            for chunk in iter(lambda: f.read(_CHUNK), b""):
                if b"\0" in chunk:
                    # Lines are counted only now: in a good file that would cost more than the search.
                    whole_chunks = f.tell() // _CHUNK - (len(chunk) == _CHUNK)
                    f.seek(0)
                    earlier = sum(f.read(_CHUNK).count(b"\n") for _ in range(whole_chunks))
                    return earlier + chunk[: chunk.index(b"\0")].count(b"\n") + 1
        return None


@contextmanager
def gather(paths: Sequence[Path]) -> Iterator[list[Source]]:
    """Yield every input file below `paths`, unpacked where needed; the unpacked copies go away afterwards."""
    with tempfile.TemporaryDirectory(prefix="gputwin-") as scratch:
        found = [source for i, path in enumerate(_files(paths)) for source in _open(path, Path(scratch) / str(i))]
        if not found:
            raise InputError("the archive has no files", file=paths[0], remedy="give one with trace files")
        yield found


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
        elif path.exists():
            raise InputError("neither a file nor a folder", file=path, remedy="save its content in a file first")
        else:
            raise InputError("no such file or folder", file=path, remedy="check the path")
    for path in found:
        # Polars opens files by names in UTF-8 only.
        if not is_utf8(path):
            raise InputError("the file's name is not UTF-8", file=path, remedy="rename it")
    return list(dict.fromkeys(found))


def _hidden(path: Path, root: Path) -> bool:
    parts = path.relative_to(root).parts
    return any(p.startswith(".") for p in parts) or path.suffix in _SKIPPED_SUFFIXES


def _open(path: Path, scratch: Path) -> Iterator[Source]:
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
        raise InputError(error.strerror or str(error), file=path, remedy="check its permissions and the disk") from None


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as f:
        return f.read(2) == _GZIP_MAGIC


def _gunzip(path: Path, target: Path) -> None:
    """Unpack `path` into `target`, refusing cut files and ones that expand absurdly."""
    left = most_bytes(path, target.parent)
    try:
        with gzip.open(path) as packed, target.open("wb") as plain:
            while chunk := packed.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    raise InputError("the gzip file expands too far", file=path, remedy="check where it comes from")
                plain.write(chunk)
    except EOFError:
        raise InputError("the gzip file is cut short", file=path, remedy="download it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"the gzip file is damaged ({error})", file=path, remedy="download it again") from None
