"""Who may ask for what: every request, also one that opens a WebSocket, passes here first.

Checked in this order: the host asked for (DNS rebinding), the page that asks (cross-site requests), how often and how
much at once, who asks (token or session), and how long the body is. Answers carry headers that keep pages from loading
or sending anything elsewhere.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from gputwin.server.settings import Settings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "gputwin-session"
OPEN_PATHS = ("/login", "/assets/dashboard.css")
UPLOAD_PATH = "/api/traces"
_SAFE = ("GET", "HEAD", "OPTIONS")
_SESSION_SECONDS = 12 * 3600
_MOST_CLIENTS = 10_000
# The dashboard's framework runs scripts that are in the page; nothing may come from, or go to, anywhere else.
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = (
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
)


class TooLongError(Exception):
    """The body is longer than it may be."""


class Guard:
    """An ASGI application that lets requests through to another one, or refuses them."""

    def __init__(self, app: Application, settings: Settings) -> None:
        self.app = app
        self.settings = settings
        limits = settings.limits
        self._reads = Rates(limits.reads_per_second, 2 * limits.reads_per_second)
        self._writes = Rates(limits.writes_per_second, limits.writes_burst)
        self.logins = Rates(limits.logins_per_minute / 60, limits.logins_per_minute)
        self._at_once = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _refuse(scope, send, *refusal)
            return
        if scope["type"] == "websocket":
            await self.app(scope, receive, send)
            return
        if self._at_once >= self.settings.limits.requests_at_once:
            await _refuse(scope, send, 503, "too many requests at once; try again")
            return
        self._at_once += 1
        try:
            await self._pass_on(scope, headers, receive, send)
        finally:
            self._at_once -= 1

    async def _pass_on(self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send) -> None:
        most = self._most_bytes(scope)
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > most:
            await _refuse(scope, send, 413, f"the request is longer than {most:,} bytes")
            return
        begun = False
        read = 0

        async def sent(message: Message) -> None:
            nonlocal begun
            if read > most and not begun:
                # Whatever the application makes of a body that was cut off, the client is told why.
                return
            if message["type"] == "http.response.start":
                begun = True
                own = [(n.encode(), v.encode()) for n, v in HEADERS]
                known = {n for n, _ in own}
                kept = [(n, v) for n, v in message.get("headers", []) if n.lower() not in known]
                if not any(n.lower() == b"cache-control" for n, _ in kept):
                    own.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*kept, *own]}
            await send(message)

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > most:
                raise TooLongError
            return message

        with suppress(TooLongError):
            await self.app(scope, counted, sent)
        if read > most and not begun:
            await _refuse(scope, send, 413, f"the request is longer than {most:,} bytes")

    def _most_bytes(self, scope: Scope) -> int:
        limits = self.settings.limits
        is_upload = scope["method"] == "POST" and scope["path"] == UPLOAD_PATH
        return limits.upload_bytes if is_upload else limits.body_bytes

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return why a request is refused, as status and words; None where it is not."""
        if not self.settings.is_own_host(host_name(headers.get("host", ""))):
            return 421, "this server is not known by that name"
        method = scope.get("method", "GET")
        is_read = method in _SAFE and scope["type"] == "http"
        is_framework = scope["path"].startswith("/_nicegui")
        if not self._is_own_page(scope, headers, is_read):
            return 403, "requests of other sites' pages are refused"
        client = (scope.get("client") or ("", 0))[0]
        if not (self._reads if is_read or is_framework else self._writes).take(
            client, free=scope["type"] == "websocket"
        ):
            return 429, "too many requests; wait a moment"
        if self.settings.token is None or scope["path"] in OPEN_PATHS or self.is_known(headers):
            return None
        return 401, "give the token: as 'Authorization: Bearer …', or at /login"

    def _is_own_page(self, scope: Scope, headers: dict[str, str], is_read: bool) -> bool:
        site = headers.get("sec-fetch-site", "none")
        origin = headers.get("origin")
        if origin is not None and (not is_read or site not in ("same-origin", "none")):
            return urlsplit(origin).netloc == headers.get("host")
        if site in ("same-origin", "none"):
            return True
        # A link from elsewhere to a page is fine; anything else that another site's page asks for is not.
        is_visit = headers.get("sec-fetch-mode") == "navigate" and not scope["path"].startswith("/api")
        return is_read and is_visit

    def is_known(self, headers: dict[str, str]) -> bool:
        """Return whether the request carries the token or a session begun with it."""
        token = self.settings.token
        if token is None:
            return True
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and same(given.strip(), token):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and is_session(cookie.value, self.settings)


def host_name(host: str) -> str:
    """Return the name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def same(given: str, wanted: str) -> bool:
    """Return whether two secrets are alike, in a time that tells nothing of where they differ."""
    return hmac.compare_digest(sha256(given.encode()).digest(), sha256(wanted.encode()).digest())


def new_session(settings: Settings) -> str:
    """Return a signed session that is good for some hours."""
    text = f"{int(time.time()) + _SESSION_SECONDS}.{secrets.token_hex(8)}"
    return f"{text}.{_signature(text, settings)}"


def is_session(value: str, settings: Settings) -> bool:
    """Return whether a session was signed by this server and is still good."""
    text, _, signature = value.rpartition(".")
    if not text or not same(signature, _signature(text, settings)):
        return False
    until = text.partition(".")[0]
    return until.isdigit() and int(until) > time.time()


def _signature(text: str, settings: Settings) -> str:
    key = settings.key + (settings.token or "").encode()
    return hmac.new(key, text.encode(), sha256).hexdigest()


class Rates:
    """How often each client may ask: so many a second, and a burst."""

    def __init__(self, per_second: float, burst: float) -> None:
        self._per_second, self._burst = per_second, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str, *, free: bool = False) -> bool:
        """Return whether the client may ask now, counting it unless `free`."""
        now = time.monotonic()
        left, since = self._left.pop(client, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._per_second)
        allowed = left >= 1 or free
        self._left[client] = (left - 1 if allowed and not free else left, now)
        while len(self._left) > _MOST_CLIENTS:
            self._left.popitem(last=False)
        return allowed


async def _refuse(scope: Scope, send: Send, status: int, why: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": why[:120]})
        return
    headers = [(n.encode(), v.encode()) for n, v in HEADERS]
    accepts = next((v for n, v in scope["headers"] if n.lower() == b"accept"), b"")
    if status == 401 and b"text/html" in accepts and not scope["path"].startswith("/api"):
        await send({"type": "http.response.start", "status": 303, "headers": [*headers, (b"location", b"/login")]})
        await send({"type": "http.response.body", "body": b""})
        return
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status in (429, 503):
        headers.append((b"retry-after", b"1"))
    body = json.dumps({"detail": why}).encode()
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
