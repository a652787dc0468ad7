"""Signing in with the token: a plain form, and a session in a cookie that scripts cannot read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from gputwin.server.security import COOKIE, Rates, new_session, same
from gputwin.server.service import Service

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign in · gputwin</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/assets/dashboard.css"></head>
<body class="login"><main><h1>gputwin</h1><p>This server asks for its token.</p>{problem}
<form method="post" action="/login"><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button class="primary" type="submit">Sign in</button></form></main></body></html>"""
_WRONG = '<p role="alert" class="statement warning">That is not the token.</p>'
_OFTEN = '<p role="alert" class="statement warning">Too many tries; wait a minute.</p>'


def login_router(service: Service) -> APIRouter:
    """Return the routes /login and /logout."""
    router = APIRouter(include_in_schema=False)
    settings = service.settings
    tries = Rates(settings.limits.logins_per_minute / 60, settings.limits.logins_per_minute)

    @router.get("/login")
    def form() -> Response:
        return HTMLResponse(_PAGE.format(problem="")) if settings.token else RedirectResponse("/", 303)

    @router.post("/login")
    def sign_in(request: Request, token: Annotated[str, Form(max_length=500)] = "") -> Response:
        client = request.client.host if request.client else ""
        if not tries.take(client):
            return HTMLResponse(_PAGE.format(problem=_OFTEN), 429)
        if settings.token is None or not same(token, settings.token):
            return HTMLResponse(_PAGE.format(problem=_WRONG), 401)
        answer = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, new_session(settings), httponly=True, samesite="strict", secure=secure, path="/")
        return answer

    @router.post("/logout")
    def sign_out() -> Response:
        answer = RedirectResponse("/login", 303)
        answer.delete_cookie(COOKIE, path="/")
        return answer

    return router
