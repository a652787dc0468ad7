"""How the REST API answers: plain JSON without infinities, errors in one line, and 202 while work is under way."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from gputwin.core.errors import GputwinError, UserError, shorten
from gputwin.server.tasks import BusyError, State, Task
from gputwin.server.wording import in_page
from gputwin.server.workspace import MissingError

_TICK = 0.05
Wait = Annotated[float, Query(ge=0, le=60, description="How long to wait for the result, s, before the answer is 202.")]


class Problem(BaseModel):
    """What is wrong, in one line."""

    detail: str | list[dict[str, Any]]


class TaskRecord(BaseModel):
    """Work under way, or what became of it; `page` shows the result."""

    id: str
    kind: str
    title: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    step: str
    done: Annotated[float | None, Field(description="Share that is done, where it is known.")]
    error: str | None
    seconds: float
    page: str


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "A mistake in what was asked"},
    401: {"model": Problem, "description": "The token is missing"},
    403: {"model": Problem, "description": "Asked by another site's page"},
    404: {"model": Problem, "description": "Not there"},
    413: {"model": Problem, "description": "Too long"},
    421: {"model": Problem, "description": "Asked for another host"},
    422: {"model": Problem, "description": "Not of the form described"},
    429: {"model": Problem, "description": "Too many requests, or too much is waiting"},
    503: {"model": Problem, "description": "Too many requests at once"},
}
UNDER_WAY: dict[int | str, dict[str, Any]] = {202: {"model": TaskRecord, "description": "Under way: ask again"}}


def finite(value: Any) -> Any:
    """Return plain data in which what is no finite number is None, as JSON wants it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def plain_json(content: Any) -> str:
    """Return data as JSON that browsers read: without NaN and infinities, and in ASCII."""
    try:
        return json.dumps(content, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(finite(content), separators=(",", ":"))


class Json(JSONResponse):
    """JSON without NaN and infinities, which browsers do not read."""

    def render(self, content: Any) -> bytes:
        """Return the content as bytes."""
        return plain_json(content).encode()


def record(task: Task) -> TaskRecord:
    """Return a task as the API gives it."""
    return TaskRecord(**task.to_json())


Found = Task | dict[str, Any]


async def settled(make: Callable[[], Found], seconds: float = 0.0) -> Found:
    """Return the document that `make` gives, waiting at most so long for the task that makes it; else the task."""
    found = make()
    until = time.monotonic() + seconds
    while isinstance(found, Task):
        if found.state == State.DONE:
            return make()
        if found.state not in (State.WAITING, State.RUNNING) or time.monotonic() > until:
            return found
        await asyncio.sleep(_TICK)
    return found


def answer_of(found: Found) -> Any:
    """Return a document as it is, a task under way as 202, a failed one as a mistake."""
    if isinstance(found, dict):
        return Json(found)
    if found.state == State.FAILED:
        raise UserError(found.error or "it failed")
    return Json(found.to_json(), status_code=202)


def answer_errors(app: FastAPI) -> None:
    """Make the application report errors in one line, without paths or tracebacks."""

    async def tell(_: Request, error: Exception) -> JSONResponse:
        status = 404 if isinstance(error, MissingError) else 429 if isinstance(error, BusyError) else 400
        return Json({"detail": in_page(str(error))}, status_code=status)

    async def fault(request: Request, error: Exception) -> JSONResponse:
        # The path alone: a query may carry what is nobody's business.
        line = shorten(f"{type(error).__name__}: {error}", 300)
        sys.stderr.write(f"gputwin: internal error at {request.method} {shorten(request.url.path, 200)}: {line}\n")
        return Json({"detail": f"internal error: {type(error).__name__}"}, status_code=500)

    app.add_exception_handler(GputwinError, tell)
    app.add_exception_handler(500, fault)
