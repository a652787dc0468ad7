"""Folders of the workspace as archives, sent while they are packed."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from fastapi.responses import Response, StreamingResponse

_CHUNK = 1 << 20


class Zip(Response):
    """A zip archive."""

    media_type = "application/zip"


class _Pipe:
    """A file that gives away what was written to it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._at = 0

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        self._at += len(data)
        return len(data)

    def tell(self) -> int:
        return self._at

    def flush(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing is open."""

    def taken(self) -> bytes:
        found = b"".join(self._parts)
        self._parts.clear()
        return found


def zipped(folder: Path) -> StreamingResponse:
    """Return the files of a folder as a zip archive called like it; Parquet is packed already and goes as it is."""
    headers = {"content-disposition": f'attachment; filename="{folder.name}.zip"'}
    return StreamingResponse(_packed(folder), media_type="application/zip", headers=headers)


def _packed(folder: Path) -> Iterator[bytes]:
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(p for p in folder.iterdir() if p.is_file()):
            entry = zipfile.ZipInfo(f"{folder.name}/{path.name}")
            entry.file_size = path.stat().st_size
            with path.open("rb") as source, archive.open(entry, "w", force_zip64=True) as target:
                while chunk := source.read(_CHUNK):
                    target.write(chunk)
                    yield pipe.taken()
            yield pipe.taken()
    yield pipe.taken()
