"""One file over HTTP: resumed where it stopped, tried again when the line breaks, https only, bounded in size."""

from __future__ import annotations

import http.client
import ipaddress
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from gputwin.core.errors import InputError, UserError, shorten

TRIES = 4
TIMEOUT_SECONDS = 30.0
_CHUNK = 1 << 18
_PASSING = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
}
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")

Progress = Callable[[int, int | None], None]
"""Called with the bytes here so far and, where the server says so, the bytes in all."""


def download(
    url: str,
    part: Path,
    *,
    most_bytes: int,
    sum_is_known: bool,
    homepage: str,
    progress: Progress,
    sleep: Callable[[float], None],
) -> None:
    """Complete the file `part` with the bytes at `url`; what is there of it already is not asked for again.

    The file may have changed since: the server's validator, kept next to `part`, says so. Where it gives none, only a
    download whose sum is known is resumed, because a wrong splice would be found out.
    """
    check_address(url)
    opener = _opener(url)
    furthest, failures = _size(part), 0
    while True:
        try:
            if _attempt(opener, url, part, most_bytes, sum_is_known, progress):
                _validator_of(part).unlink(missing_ok=True)
                return
            problem = "the connection broke off"
        except urllib.error.HTTPError as error:
            error.close()
            problem = f"the server answers {error.code} {shorten(error.reason)}"
            if error.code not in _PASSING:
                raise InputError(problem, file=url, remedy=f"the publisher may have moved it: see {homepage}") from None
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as error:
            problem = shorten(getattr(error, "reason", None) or str(error) or type(error).__name__, 100)
        here = _size(part)
        failures = 0 if here > furthest else failures + 1
        furthest = max(here, furthest)
        if failures >= TRIES:
            raise InputError(
                f"{problem}; gave up after {TRIES} tries", file=url, remedy="fetch again to go on from there"
            )
        sleep(0.5 * 2**failures)


def check_address(url: str) -> None:
    """Raise a UserError unless `url` is https, or http on this machine."""
    try:
        parts = urlsplit(url)
        good = bool(parts.hostname) and (parts.scheme == "https" or (parts.scheme == "http" and _is_local(url)))
    except ValueError:
        good = False
    if not good:
        raise UserError(f"refusing to download from '{shorten(url, 200)}'; give an https address")


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follows only to addresses that could have been asked for directly, and never from outside to this machine."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """Return the request to follow, or refuse."""
        try:
            check_address(newurl)
            if _is_local(newurl) and not _is_local(req.full_url):
                raise UserError(f"refusing to follow {req.full_url} to this machine ({shorten(newurl, 200)})")
        except UserError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener(url: str) -> urllib.request.OpenerDirector:
    if _is_local(url):  # no proxy can reach this machine for us
        return urllib.request.build_opener(_SafeRedirects(), urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(_SafeRedirects())


def _attempt(
    opener: urllib.request.OpenerDirector,
    url: str,
    part: Path,
    most_bytes: int,
    sum_is_known: bool,
    progress: Progress,
) -> bool:
    """Return whether `part` is complete after one request."""
    here = _size(part)
    request = urllib.request.Request(url, headers={"User-Agent": "gputwin", "Accept-Encoding": "identity"})
    validator = _validator_of(part).read_text() if _validator_of(part).is_file() else ""
    if here and (validator or sum_is_known):
        request.add_header("Range", f"bytes={here}-")
        if validator:
            request.add_header("If-Range", validator)
    try:
        response = opener.open(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            raise
        error.close()
        _, total = _content_range(error.headers)
        if total != here:
            part.unlink(missing_ok=True)
        return total == here
    with response:
        start, total = _content_range(response.headers)
        if response.status != HTTPStatus.PARTIAL_CONTENT:
            start, total = 0, _content_length(response.headers)
        elif start != here:
            part.unlink(missing_ok=True)
            return False
        _check_room(url, part, start, total, most_bytes)
        with part.open("ab" if start else "wb") as f:
            _keep_validator(part, response.headers)
            try:
                here = start
                while chunk := response.read(_CHUNK):
                    f.write(chunk)
                    here += len(chunk)
                    if total is None:
                        _check_room(url, part, here, here, most_bytes)
                    progress(here, total)
            finally:
                f.flush()
                os.fsync(f.fileno())
    return total is None or here == total


def _check_room(url: str, part: Path, here: int, total: int | None, most_bytes: int) -> None:
    if total is not None and total > most_bytes:
        part.unlink(missing_ok=True)
        raise InputError(
            f"the file is larger than it can be (more than {most_bytes:,} bytes)",
            file=url,
            remedy="check the address",
        )
    if total is not None and total - here > (free := shutil.disk_usage(part.parent).free):
        raise InputError(
            f"{total - here:,} more bytes are to come but only {free:,} are free on the disk",
            file=part.parent,
            remedy="free some space or choose another folder",
        )


def _content_range(headers: Message) -> tuple[int, int | None]:
    """Return where the bytes sent begin and how many the whole file has."""
    match = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
    if not match:
        return 0, None
    return int(match[1] or 0), None if match[2] == "*" else int(match[2])


def _content_length(headers: Message) -> int | None:
    length = headers.get("Content-Length", "")
    return int(length) if length.isdecimal() else None


def _keep_validator(part: Path, headers: Message) -> None:
    """Keep what tells this version of the file from another (RFC 9110, section 13.1.5: a strong one)."""
    tag = headers.get("ETag", "")
    validator = tag if tag.startswith('"') else headers.get("Last-Modified", "")
    if validator:
        _validator_of(part).write_text(validator)
    else:
        _validator_of(part).unlink(missing_ok=True)


def _validator_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.version")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
