"""Runs: start, list, look into jobs, nodes and tenants, explain, compare, download."""

from __future__ import annotations

import io
from typing import Annotated, Any, Literal

import polars as pl
from fastapi import APIRouter, Query, Response
from fastapi import Path as InPath
from pydantic import BaseModel

from gputwin.api.running import tenants as tenants_of
from gputwin.report.html import as_csv
from gputwin.server.answers import PROBLEMS, UNDER_WAY, Json, TaskRecord, Wait, answer_of, record, settled
from gputwin.server.downloads import Zip, zipped
from gputwin.server.requests import RunRequest
from gputwin.server.service import Service
from gputwin.server.views import cluster_view, node_view
from gputwin.server.workspace import ID_PATTERN
from gputwin.simulation.job_selection import JobQuery

RunId = Annotated[str, InPath(pattern=ID_PATTERN, max_length=64)]
Table = Literal["jobs", "segments", "series", "placements", "nodes", "groups"]
Sort = Literal[
    "submit_time", "wait_seconds", "jct_seconds", "bounded_slowdown", "gpus", "duration_seconds", "job_id", "tenant"
]
_DEFAULT_WAIT = 20.0


class Started(BaseModel):
    """A run by its id, and the task that makes it; none where the same run was there already."""

    run: str
    task: TaskRecord | None


def runs_router(service: Service) -> APIRouter:
    """Return the routes below /api/runs, and /api/compare."""
    router = APIRouter(prefix="/api", tags=["runs"], responses=PROBLEMS)
    space = service.workspace

    @router.get("/runs", summary="All runs, the latest first")
    async def list_runs(trace: Annotated[str | None, Query(max_length=64)] = None) -> Any:
        return Json([r for r in space.runs() if trace is None or r["trace"] == trace])

    @router.post("/runs", status_code=202, summary="Start a run; the same scenario never runs twice")
    def start_run(request: RunRequest) -> Started:
        id_, task = service.simulate(request)
        return Started(run=id_, task=None if task is None else record(task))

    @router.get("/runs/{run}", summary="Summary and manifest of a run")
    def get_run(run: RunId) -> Any:
        result = space.run(run)
        return Json({**space.run_record(run), "summary": result.summary, "manifest": _shareable(result.manifest)})

    @router.delete("/runs/{run}", status_code=204, summary="Remove a run")
    def delete_run(run: RunId) -> None:
        space.remove_run(run)

    @router.get("/runs/{run}/document", responses=UNDER_WAY, summary="A run in sentences, tables and figures")
    async def document(run: RunId, wait: Wait = 0.0) -> Any:
        return answer_of(await settled(lambda: service.run_document(run), wait))

    @router.get("/runs/{run}/jobs", summary="Jobs of a run, filtered and sorted, a page at a time")
    def list_jobs(
        run: RunId,
        text: Annotated[str, Query(max_length=200)] = "",
        tenant: Annotated[str, Query(max_length=200)] = "",
        outcome: Annotated[str, Query(max_length=40)] = "",
        cause: Annotated[str, Query(max_length=40)] = "",
        least_wait: Annotated[float, Query(ge=0, allow_inf_nan=False)] = 0.0,
        sort: Sort = "wait_seconds",
        descending: bool = True,
        offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    ) -> Any:
        query = JobQuery(text, tenant, outcome, cause, least_wait, sort, descending, offset, limit)
        total, jobs = space.jobs(run, query)
        return Json({"total": total, "offset": offset, "jobs": jobs.to_dicts()})

    @router.get("/runs/{run}/explain", responses=UNDER_WAY, summary="Why a job waited")
    async def explain(
        run: RunId, job: Annotated[str, Query(min_length=1, max_length=500)], wait: Wait = _DEFAULT_WAIT
    ) -> Any:
        return answer_of(await settled(lambda: service.explain_document(run, job), wait))

    @router.get("/runs/{run}/start", responses=UNDER_WAY, summary="When a job was expected to start at its submission")
    async def start(
        run: RunId, job: Annotated[str, Query(min_length=1, max_length=500)], wait: Wait = _DEFAULT_WAIT
    ) -> Any:
        return answer_of(await settled(lambda: service.start_document(run, job), wait))

    @router.get("/runs/{run}/series", summary="The cluster over time: queue, allocation, fragmentation")
    def series(run: RunId) -> Any:
        return Json(space.run(run).series.to_dict(as_series=False))

    @router.get("/runs/{run}/tenants", summary="Who waits, and who holds what others wait for")
    def tenants(run: RunId) -> Any:
        return Json(tenants_of(space.run(run)).to_json())

    @router.get("/runs/{run}/cluster", summary="Every node and device at one moment")
    def cluster(
        run: RunId,
        share: Annotated[float, Query(ge=0, le=1, description="The moment, as a share of the run's span.")] = 0.5,
        time: Annotated[
            float | None, Query(allow_inf_nan=False, description="The moment, s of the trace's clock.")
        ] = None,
    ) -> Any:
        return Json(cluster_view(space.run(run), share, time))

    @router.get("/runs/{run}/nodes/{node}", summary="A node and the jobs that ran on it")
    def node(run: RunId, node: Annotated[int, InPath(ge=0, le=10**7)]) -> Any:
        return Json(node_view(space.run(run), node))

    @router.get("/runs/{run}/download", response_class=Zip, summary="The whole run as a zip archive")
    def download(run: RunId) -> Any:
        return zipped(space.run_path(run))

    @router.get("/runs/{run}/tables/{table}", summary="One table of a run as Parquet or CSV", response_class=Response)
    def table(run: RunId, table: Table, format: Literal["parquet", "csv"] = "parquet") -> Any:
        frame: pl.DataFrame = getattr(space.run(run), table)
        name = f'attachment; filename="{run}-{table}.{format}"'
        if format == "csv":
            nested = [pl.col(c).list.join("|") for c, kind in frame.schema.items() if kind == pl.List(pl.String)]
            text = as_csv(frame.with_columns(nested))
            return Response(text, media_type="text/csv; charset=utf-8", headers={"content-disposition": name})
        out = io.BytesIO()
        frame.write_parquet(out)
        kind = "application/vnd.apache.parquet"
        return Response(out.getvalue(), media_type=kind, headers={"content-disposition": name})

    @router.get(
        "/compare", responses=UNDER_WAY, summary="Runs of the same jobs side by side; the first is the baseline"
    )
    async def compare(
        runs: Annotated[str, Query(max_length=600, description="Ids, with commas")], wait: Wait = 0.0
    ) -> Any:
        ids = [r for r in runs.split(",") if r]
        return answer_of(await settled(lambda: service.compare_document(ids), wait))

    return router


def _shareable(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest that gives the trace's name, not where it is on this machine."""
    scenario = dict(manifest.get("scenario", {}))
    if isinstance(scenario.get("trace"), str):
        scenario["trace"] = scenario["trace"].rpartition("/")[2]
    return {**manifest, "scenario": scenario}
