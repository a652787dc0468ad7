"""Pages at their addresses, inside NiceGUI, and the files they need; nothing is loaded from elsewhere."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
from collections.abc import Awaitable, Callable
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi import Path as InPath
from fastapi.responses import HTMLResponse, Response
from nicegui import Client, ui
from nicegui import app as nicegui_app
from nicegui.element import Element

from gputwin.core.errors import GputwinError
from gputwin.server.answers import plain_json
from gputwin.server.pages import about, home, new, runs, traces
from gputwin.server.pages import blocks as b
from gputwin.server.requests import ForecastRequest, PlanRequest
from gputwin.server.service import Service
from gputwin.server.workspace import MissingError
from gputwin.simulation.job_selection import SORTS, JobQuery

_HEAD = (
    '<link rel="stylesheet" href="/assets/dashboard.css">'
    '<script src="/assets/theme.js"></script><script src="/assets/phone.js"></script>'
)
_TYPES = {".css": "text/css", ".js": "text/javascript", ".json": "application/json"}
_FORGET_SECONDS = 20.0
_PATIENCE_SECONDS = 180.0
"""How long a browser may take to come back for its page; shorter only where very many pages wait."""
_MANY_PAGES = 2_000
_COMPONENT = Path(__file__).parent / "components" / "page.js"


class PageElement(Element, component=_COMPONENT):
    """The one element of a page: its data are given to the component, which shows them as text.

    They go as one text: NiceGUI would watch every entry of a dictionary for changes, and a page never changes.
    """

    def __init__(self, page: dict[str, Any]) -> None:
        super().__init__()
        self._props["data"] = plain_json(page)


Shown = b.Page | Awaitable[b.Page]


def mount(app: FastAPI, service: Service) -> None:
    """Put the pages and their files into the application."""
    _files(app)
    signed = service.settings.token is not None

    async def show(make: Callable[[], Shown]) -> None:
        try:
            found = make()
            page = await found if inspect.isawaitable(found) else found
        except GputwinError as error:
            title = "Not found" if isinstance(error, MissingError) else "That did not work"
            page = b.Page("", title, [b.statement(str(error), "warning")], crumbs=[b.link("Traces and runs", "/")])
        ui.page_title(f"{page.title} · gputwin")
        PageElement(page.to_json(signed))
        # Nothing is ever pushed to a page. Its queue would be looked at ten times a second, for a minute after each visit.
        ui.context.client.outbox.stop()

    def at(path: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return ui.page(path, response_timeout=20.0)

    @at("/")
    async def _() -> None:
        await show(lambda: home.home(service))

    @at("/new")
    async def _(trace: str = "") -> None:
        await show(lambda: new.new_run(service, trace))

    @at("/policies")
    async def _() -> None:
        await show(about.policies_page)

    @at("/rest")
    async def _() -> None:
        await show(lambda: about.rest_page(app.openapi()))

    @at("/tasks/{task}")
    async def _(task: str) -> None:
        await show(lambda: _task(service, task))

    @at("/traces/{trace}")
    async def _(trace: str) -> None:
        await show(lambda: traces.trace(service, trace))

    @at("/traces/{trace}/forecast")
    async def _(request: Request, trace: str) -> None:
        asked = dict(request.query_params)
        await show(lambda: traces.forecast(service, trace, _asked(ForecastRequest, asked)))

    @at("/traces/{trace}/plan")
    async def _(request: Request, trace: str) -> None:
        asked: dict[str, Any] = dict(request.query_params)
        if "minutes" in asked:
            asked["seconds"] = _number(asked.pop("minutes")) * 60
        asked["cluster"] = asked.get("cluster") or None
        await show(lambda: traces.plan(service, trace, _asked(PlanRequest, asked if len(asked) > 1 else {})))

    @at("/traces/{trace}/queueing")
    async def _(trace: str, cluster: str | None = None) -> None:
        await show(lambda: traces.queueing(service, trace, cluster))

    @at("/traces/{trace}/scaling")
    async def _(trace: str, load: str | None = None) -> None:
        await show(lambda: traces.scaling(service, trace, None if load is None else _number(load)))

    @at("/compare")
    async def _(runs_: Annotated[str, Query(alias="runs", max_length=600)] = "") -> None:
        await show(lambda: runs.compare(service, [r for r in runs_.split(",") if r]))

    @at("/runs/{run}")
    async def _(run: str) -> None:
        await show(lambda: runs.run(service, run))

    @at("/runs/{run}/cluster")
    async def _(run: str, at: Annotated[float | None, Query(ge=0, le=1)] = None) -> None:
        await show(lambda: runs.cluster(service, run, at))

    @at("/runs/{run}/nodes/{node}")
    async def _(run: str, node: Annotated[int, InPath(ge=0, le=10**7)]) -> None:
        await show(lambda: runs.node(service, run, node))

    @at("/runs/{run}/jobs")
    async def _(request: Request, run: str) -> None:
        await show(lambda: runs.jobs(service, run, _query(dict(request.query_params))))

    @at("/runs/{run}/jobs/{row}")
    async def _(run: str, row: Annotated[int, InPath(ge=0, le=10**9)]) -> None:
        await show(lambda: runs.job(service, run, row))

    @at("/runs/{run}/jobs/{row}/start")
    async def _(run: str, row: Annotated[int, InPath(ge=0, le=10**9)]) -> None:
        await show(lambda: runs.start(service, run, row))

    ui.add_head_html(_HEAD, shared=True)
    ui.run_with(
        app,
        title="gputwin",
        favicon="▦",
        dark=False,
        language="en-US",
        tailwind=False,
        binding_refresh_interval=None,
        # A page that draws its figures on a busy machine answers late; it would be loaded again if it were given up sooner.
        reconnect_timeout=30.0,
        message_history_length=0,
        show_welcome_message=False,
    )
    nicegui_app.on_exception(lambda error: None)
    nicegui_app.on_startup(_forget_visits)


async def _forget_visits() -> None:
    """Forget pages whose browser never came back for them; programs that only read pages leave thousands."""
    while True:
        await asyncio.sleep(_FORGET_SECONDS / 4)
        patience = _FORGET_SECONDS if len(Client.instances) > _MANY_PAGES else _PATIENCE_SECONDS
        Client.prune_instances(client_age_threshold=patience)


def _task(service: Service, id_: str) -> b.Page:
    found = service.tasks.get(id_)
    if found is None:
        raise MissingError("no such task; a server that was started anew has forgotten it")
    return home.task_page(found)


def _asked(kind: type[Any], values: dict[str, Any]) -> Any:
    """Return what a form asks for; None where nothing was sent, a user error where it is not of the form."""
    from pydantic import ValidationError

    from gputwin.core.errors import InputError

    if not values:
        return None
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(str(first["msg"]), field=".".join(str(part) for part in first["loc"])) from None


def _number(text: str) -> float:
    from gputwin.core.errors import UserError, shorten

    try:
        found = float(text)
    except ValueError:
        found = float("nan")
    if not 0 < found < 1e9:
        raise UserError(f"'{shorten(text)}' is not a number above 0")
    return found


def _query(asked: dict[str, str]) -> JobQuery:
    def whole(name: str) -> int:
        return int(asked[name]) if asked.get(name, "").isdigit() and len(asked[name]) < 10 else 0

    sort = asked.get("sort", "")
    return JobQuery(
        text=asked.get("text", "")[:200],
        tenant=asked.get("tenant", "")[:200],
        outcome=asked.get("outcome", ""),
        cause=asked.get("cause", ""),
        least_wait=_number(asked["least_wait"]) if asked.get("least_wait", "0") not in ("", "0") else 0.0,
        sort=sort if sort in SORTS else "wait_seconds",
        descending=asked.get("order") != "up",
        offset=whole("offset"),
    )


def _files(app: FastAPI) -> None:
    """Serve the pages' scripts and style, Plotly as its wheel brings it, and the themes of figures."""
    folder = resources.files("gputwin.server.pages").joinpath("assets")
    for entry in folder.iterdir():
        kind = _TYPES.get(Path(entry.name).suffix)
        if kind:
            _serve(app, entry.name, kind, functools.partial(entry.read_bytes))
    phone = resources.files("gputwin.report").joinpath("assets", "phone.js")
    _serve(app, "phone.js", "text/javascript", phone.read_bytes)
    _serve(app, "plotly.js", "text/javascript", _plotly, keep=True)
    _serve(app, "themes.json", "application/json", _themes)


def _serve(app: FastAPI, name: str, kind: str, read: Callable[[], bytes], *, keep: bool = False) -> None:
    once = functools.cache(read)
    headers = {"cache-control": "public, max-age=86400" if keep else "no-cache"}

    def answer() -> Response:
        return Response(once(), media_type=kind, headers=headers)

    app.add_api_route(f"/assets/{name}", answer, include_in_schema=False, response_class=HTMLResponse)


def _plotly() -> bytes:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs()).encode()


def _themes() -> bytes:
    from gputwin.report.document import themes

    return json.dumps(themes()).encode()
