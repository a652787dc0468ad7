"""Archives from strangers, unpacked without letting them write anywhere else.

Only regular files come out, with mode 0644, below the folder asked for; one bad member refuses the whole
archive and leaves nothing behind. Archives are known by their content, not by their name.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NoReturn, cast

from gputwin.core.atomic import atomic_directory
from gputwin.core.errors import InputError, shorten

MOST_MEMBERS = 10_000
ALWAYS_ALLOWED_BYTES = 1 << 30
MOST_EXPANSION = 1000
_CHUNK = 1 << 20
_LONGEST_NAME_BYTES = 255
# A longer read than this can only be an extended header, which tarfile would take into memory whole.
_LARGEST_READ = 4 << 20
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_DRIVE = re.compile(r"[A-Za-z]:")
_AGAIN = "download it again"
_SUSPECT = "check where the archive comes from"
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    ValueError,
    IndexError,
    OverflowError,
    NotImplementedError,
    RecursionError,
)


def is_archive(path: Path) -> bool:
    """Return whether `path` is a tar (plain or compressed) or zip archive."""
    with path.open("rb") as f:
        if f.read(4) in _ZIP_MAGIC:
            return True
    try:
        with _decompressed(path) as stream:
            tarfile.TarInfo.frombuf(stream.read(tarfile.BLOCKSIZE), "utf-8", "surrogateescape")
    except (*_DAMAGE, gzip.BadGzipFile):
        return False
    except OSError as error:
        if error.errno is None:  # how bz2 reports damage
            return False
        raise
    return True


def unpack(path: Path, into: Path) -> list[Path]:
    """Unpack the archive's regular files below `into` (absent or empty) and return them, sorted."""
    with path.open("rb") as f:
        is_zip = f.read(4) in _ZIP_MAGIC
    # Not synced: as long as the archive is there, its files can be had again.
    with atomic_directory(into, sync=False) as fresh:
        shelf = _Shelf(path, fresh)
        try:
            for name, stream in _zip_members(path, shelf) if is_zip else _tar_members(path, shelf):
                shelf.store(name, stream)
        except _DAMAGE as error:
            raise _damaged(path, error) from None
        except OSError as error:
            if error.errno is None:
                raise _damaged(path, error) from None
            reason = error.strerror or str(error)
            raise InputError(reason, file=path, remedy="free some space, or choose another folder") from None
    return sorted(into / name for name in shelf.names)


def most_bytes(packed: Path, folder: Path) -> int:
    """Return the bytes that the compressed file `packed` may expand to in `folder`."""
    return min(max(ALWAYS_ALLOWED_BYTES, MOST_EXPANSION * packed.stat().st_size), shutil.disk_usage(folder).free)


class _Shelf:
    """Where an archive's members go, and what they have used up so far of what they may."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self.archive = archive
        self.folder = folder
        self.names: set[str] = set()
        self.members = 0
        self.bytes_left = most_bytes(archive, folder)

    def refuse(self, member: str, problem: str, remedy: str = _SUSPECT) -> NoReturn:
        raise InputError(f"member '{shorten(member)}' {problem}", file=self.archive, remedy=remedy)

    def count(self, member: str) -> None:
        """Count one more member of any kind and check its name."""
        self.parts(member)
        self.members += 1
        if self.members > MOST_MEMBERS:
            self.refuse(member, f"is one too many: more than {MOST_MEMBERS:,} members")

    def spend(self, size: int) -> None:
        """Count `size` more unpacked bytes."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise InputError("the archive expands too far", file=self.archive, remedy=_SUSPECT)

    def parts(self, member: str) -> list[str]:
        """Return the names along the member's path, refusing every one that could lead out of the folder."""
        if not member.isprintable():
            self.refuse(member, "has unprintable characters in its name")
        if member.startswith("/"):
            self.refuse(member, "has an absolute path")
        parts = [part for part in member.split("/") if part not in ("", ".")]
        if "\\" in member or any(_DRIVE.match(part) for part in parts):
            self.refuse(member, "has a backslash or a drive letter in its name")
        if ".." in parts:
            self.refuse(member, "climbs out of the folder with '..'")
        if any(len(part.encode()) > _LONGEST_NAME_BYTES for part in parts):
            self.refuse(member, "has an overlong name")
        return parts

    def store(self, member: str, stream: IO[bytes]) -> None:
        """Write one regular file."""
        name = "/".join(self.parts(member))
        if not name:
            self.refuse(member, "has no name")
        target = self.folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as f:
                while chunk := stream.read(_CHUNK):
                    f.write(chunk)
        # "xb" also catches names that only a case-insensitive file system takes for the same.
        except (FileExistsError, NotADirectoryError):
            self.refuse(member, "occurs twice in the archive")
        target.chmod(0o644)
        self.names.add(name)


class _Meter:
    """A forward-only reader of unpacked bytes that charges each of them to the shelf."""

    def __init__(self, stream: IO[bytes], shelf: _Shelf) -> None:
        self._stream = stream
        self._shelf = shelf
        self._position = 0
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _LARGEST_READ:
            raise tarfile.ReadError("a header is absurdly long")
        self.last = self._stream.read(size)
        self._position += len(self.last)
        self._shelf.spend(len(self.last))
        return self.last

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> int:
        while self._position < position and self.read(min(_CHUNK, position - self._position)):
            pass
        return self._position

    def drain(self) -> None:
        """Read to the end, where compressed streams keep their checksum."""
        while self.read(_CHUNK):
            pass


def _tar_members(path: Path, shelf: _Shelf) -> Iterator[tuple[str, IO[bytes]]]:
    with _decompressed(path) as stream:
        meter = _Meter(stream, shelf)
        with tarfile.open(fileobj=cast(IO[bytes], meter), mode="r:") as tar:
            for member in tar:
                shelf.count(member.name)
                if member.isdir():
                    continue
                if not member.isreg() or member.issparse():
                    shelf.refuse(member.name, f"is {_tar_kind(member)}, not a regular file")
                data = tar.extractfile(member)
                assert data is not None
                yield member.name, data
            # tarfile takes any bad header after the first for the end; the true end is a block of zeros.
            if len(meter.last) < tarfile.BLOCKSIZE or meter.last.strip(b"\0"):
                raise tarfile.ReadError("no end of archive")
        meter.drain()


def _tar_kind(member: tarfile.TarInfo) -> str:
    if member.issym():
        return "a symbolic link"
    if member.islnk():
        return "a hard link"
    return "a sparse file" if member.issparse() else "a device or another special file"


def _zip_members(path: Path, shelf: _Shelf) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            name = member.orig_filename  # as written: zipfile cuts its own copy at a NUL
            shelf.count(name)
            if member.is_dir():
                continue
            kind = stat.S_IFMT(member.external_attr >> 16)
            if kind not in (0, stat.S_IFREG):
                what = "a symbolic link" if kind == stat.S_IFLNK else "a device or another special file"
                shelf.refuse(name, f"is {what}, not a regular file")
            if member.flag_bits & 1:
                shelf.refuse(name, "is encrypted", "unpack it yourself and give the files")
            with archive.open(member) as data:
                yield name, cast(IO[bytes], _Meter(data, shelf))


def _decompressed(path: Path) -> IO[bytes]:
    """Return the file's bytes, uncompressed where it is gzip, bzip2 or xz."""
    with path.open("rb") as f:
        magic = f.read(6)
    if magic.startswith(b"\x1f\x8b"):
        return cast(IO[bytes], gzip.open(path))
    if magic.startswith(b"BZh"):
        return cast(IO[bytes], bz2.open(path))
    if magic == b"\xfd7zXZ\0":
        return cast(IO[bytes], lzma.open(path))
    return path.open("rb")


def _damaged(path: Path, error: Exception) -> InputError:
    reason = shorten(error) or type(error).__name__
    return InputError(f"the archive is cut short or damaged ({reason})", file=path, remedy=_AGAIN)
