"""Policies, scenarios and tasks: what can be chosen, whether a choice holds, and what is under way."""

from __future__ import annotations

import functools
import json
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel

from gputwin.core.errors import UserError
from gputwin.core.version import VERSION
from gputwin.server.answers import PROBLEMS, Json, TaskRecord, record
from gputwin.server.requests import NOT_TAKEN, RunRequest
from gputwin.server.service import Service
from gputwin.server.workspace import MissingError
from gputwin.simulation.policy import KINDS
from gputwin.simulation.scenario import scenario_schema

TaskId = Annotated[str, InPath(pattern="^[0-9a-f]{16}$")]


class Health(BaseModel):
    """The server is there."""

    version: str
    traces: int
    runs: int
    running_tasks: int


class Verdict(BaseModel):
    """Whether a scenario can be run; if not, why."""

    is_valid: bool
    problem: str | None
    scenario: dict[str, Any] | None


def policies() -> list[dict[str, Any]]:
    """Return every registered policy: kind, name, rule, parameters, source."""
    return [
        {"kind": kind, "name": p.name, "rule": p.rule, "parameters": dict(p.parameters), "source": p.source}
        for kind, registry in KINDS.items()
        for p in registry
    ]


def policies_router(service: Service) -> APIRouter:
    """Return the routes on policies, scenarios and tasks."""
    router = APIRouter(prefix="/api", responses=PROBLEMS)
    listed = functools.cache(policies)

    @router.get("/health", tags=["server"], summary="Is it there")
    async def health() -> Health:
        space = service.workspace
        running = sum(task.state == "running" for task in service.tasks.all())
        return Health(version=VERSION, traces=len(space.trace_ids()), runs=len(space.runs()), running_tasks=running)

    @router.get("/policies", tags=["scenarios"], summary="Every policy, its rule and parameters")
    async def list_policies() -> Any:
        return Json(listed())

    @router.get("/scenarios/schema", tags=["scenarios"], summary="JSON schema of a scenario's fields")
    def schema() -> Any:
        found = json.loads(scenario_schema())
        for name in NOT_TAKEN:
            found["properties"].pop(name, None)
        found.pop("required", None)
        return Json(found)

    @router.post("/scenarios/validate", tags=["scenarios"], summary="Can this be run")
    def validate(request: RunRequest) -> Verdict:
        try:
            found = service.scenario(request).to_data()
        except MissingError:
            raise
        except UserError as error:
            return Verdict(is_valid=False, problem=str(error), scenario=None)
        return Verdict(is_valid=True, problem=None, scenario={**found, "trace": request.trace})

    @router.get("/tasks", tags=["tasks"], summary="Work under way and ended, the latest first")
    def list_tasks() -> list[TaskRecord]:
        return [record(task) for task in service.tasks.all()]

    @router.get("/tasks/{task}", tags=["tasks"], summary="How far a task is")
    def get_task(task: TaskId) -> TaskRecord:
        found = service.tasks.get(task)
        if found is None:
            raise MissingError(f"no task '{task}'")
        return record(found)

    @router.post("/tasks/{task}/cancel", tags=["tasks"], summary="Stop a task")
    def cancel_task(task: TaskId) -> TaskRecord:
        found = service.tasks.cancel(task)
        if found is None:
            raise MissingError(f"no task '{task}'")
        return record(found)

    return router
