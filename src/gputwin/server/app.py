"""The application: REST API, sign-in and pages behind one guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from gputwin.core.version import VERSION
from gputwin.server.answers import answer_errors
from gputwin.server.login import login_router
from gputwin.server.ready import Ready
from gputwin.server.rest.metrics import metrics_router
from gputwin.server.rest.policies import policies_router
from gputwin.server.rest.runs import runs_router
from gputwin.server.rest.traces import traces_router
from gputwin.server.security import Guard
from gputwin.server.service import Service
from gputwin.server.settings import Settings


def api(service: Service) -> FastAPI:
    """Return the REST API of a service, not yet guarded; its description is at /api/openapi.json."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.tasks.close()

    app = FastAPI(
        title="gputwin",
        version=VERSION,
        description="A digital twin of a GPU cluster: traces, runs, why jobs waited, and what if.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    answer_errors(app)
    for router in (traces_router, runs_router, policies_router, metrics_router, login_router):
        app.include_router(router(service))
    return app


def guarded(settings: Settings, *, pages: bool = True) -> Guard:
    """Return the whole application: API and pages, behind the guard; tests of the API alone leave the pages out."""
    service = Service(settings.check())
    app = api(service)
    if pages:
        from gputwin.server.pages.mount import mount

        mount(app, service)
    return Guard(Ready(app, service.workspace.root / "runs"), settings)
