"""Traces: list, upload, generate, describe, quality, analysis, and what can be asked of one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Query, UploadFile
from fastapi import Path as InPath

from gputwin.api.reading import describe
from gputwin.core.errors import UserError
from gputwin.server.answers import PROBLEMS, UNDER_WAY, Found, Json, TaskRecord, Wait, answer_of, record, settled
from gputwin.server.downloads import Zip, zipped
from gputwin.server.requests import ForecastRequest, Generated, PlanRequest
from gputwin.server.service import Service, file_name
from gputwin.server.workspace import ID_PATTERN, slug

TraceId = Annotated[str, InPath(pattern=ID_PATTERN, max_length=64)]
ClusterName = Annotated[
    str | None, Query(max_length=64, description="pai2020, openb2023 or homogeneous:NODESxGPUS; the trace's own nodes.")
]
_CHUNK = 1 << 20


def traces_router(service: Service) -> APIRouter:
    """Return the routes below /api/traces."""
    router = APIRouter(prefix="/api/traces", tags=["traces"], responses=PROBLEMS)
    space = service.workspace

    @router.get("", summary="All traces, the latest first")
    async def list_traces() -> list[dict[str, Any]]:
        return [space.trace_record(id_) for id_ in space.trace_ids()]

    @router.post("", status_code=202, summary="Read files as a trace")
    async def upload(
        files: Annotated[list[UploadFile], File(min_length=1)],
        name: Annotated[str, Form(max_length=100)] = "",
        format: Annotated[str, Form(max_length=40)] = "",
        map: Annotated[
            str, Form(max_length=2000, description="Columns of a table of your own: job_id=id,submit=at,…")
        ] = "",
        guess: Annotated[bool, Form(description="Propose what columns mean, and use it unless it is unclear.")] = False,
        zone: Annotated[str, Form(max_length=60)] = "",
        lenient: Annotated[bool, Form(description="Cells that do not parse become unknown, and are counted.")] = False,
    ) -> TaskRecord:
        limits = service.settings.limits
        if len(files) > limits.upload_files:
            raise UserError(f"give at most {limits.upload_files} files, or one archive of them")
        names = [file_name(f.filename) for f in files]
        if len(set(names)) < len(names):
            raise UserError("two files have the same name; rename one")
        folder = space.scratch()
        try:
            for file, called in zip(files, names, strict=True):
                await _store(file, folder / called, limits.upload_bytes)
            kept = {
                "name": name or slug(names[0].partition(".")[0]),
                "format": format or None,
                "map": map or None,
                "guess": guess,
                "zone": zone,
                "lenient": lenient,
            }
            return record(service.upload(folder, [folder / n for n in names], **kept))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    @router.post("/generate", status_code=202, summary="Generate a trace like a published one")
    def generate(request: Generated) -> TaskRecord:
        return record(service.generate(request))

    @router.get("/{trace}", summary="What is in a trace")
    def get_trace(trace: TraceId) -> Any:
        found = describe(space.trace(trace))
        return Json({**space.trace_record(trace), "description": found.to_json()})

    @router.delete("/{trace}", status_code=204, summary="Remove a trace; its runs stay")
    def delete_trace(trace: TraceId) -> None:
        shutil.rmtree(space.trace_path(trace))

    @router.get("/{trace}/quality", summary="What cleaning found")
    def quality(trace: TraceId) -> Any:
        meta = space.trace(trace).meta.to_json()
        kept = ("findings", "rows_read", "rows_kept", "rows_dropped", "inputs")
        return Json({key: meta[key] for key in kept})

    @router.get("/{trace}/analysis", responses=UNDER_WAY, summary="All that a trace shows: sentences, tables, figures")
    async def analysis(trace: TraceId, wait: Wait = 0.0) -> Any:
        return await _document(lambda: service.trace_document(trace), wait)

    @router.get("/{trace}/check", responses=UNDER_WAY, summary="Does it fit a cluster, and which jobs never can")
    async def check(trace: TraceId, cluster: ClusterName = None, wait: Wait = 0.0) -> Any:
        return await _document(lambda: service.check_document(trace, cluster), wait)

    @router.get("/{trace}/queueing", responses=UNDER_WAY, summary="Theory compared with simulation and trace")
    async def queueing(trace: TraceId, cluster: ClusterName = None, wait: Wait = 0.0) -> Any:
        return await _document(lambda: service.queueing_document(trace, cluster), wait)

    @router.post("/{trace}/forecast", responses=UNDER_WAY, summary="The demand to come")
    async def forecast(trace: TraceId, request: ForecastRequest, wait: Wait = 0.0) -> Any:
        return await _document(lambda: service.forecast_document(trace, request), wait)

    @router.post("/{trace}/plan", responses=UNDER_WAY, summary="The least capacity that meets a target")
    async def plan(trace: TraceId, request: PlanRequest, wait: Wait = 0.0) -> Any:
        return await _document(lambda: service.plan_document(trace, request), wait)

    @router.get("/{trace}/scaling", responses=UNDER_WAY, summary="Scaling rules on a trace of requests")
    async def scaling(
        trace: TraceId, load: Annotated[float, Query(gt=0, le=1000, allow_inf_nan=False)] = 1.0, wait: Wait = 0.0
    ) -> Any:
        return await _document(lambda: service.autoscale_document(trace, load), wait)

    @router.get("/{trace}/download", response_class=Zip, summary="The trace's tables, as Parquet in a zip archive")
    def download(trace: TraceId) -> Any:
        return zipped(space.trace_path(trace))

    return router


async def _document(make: Callable[[], Found], wait: float) -> Any:
    return answer_of(await settled(make, wait))


async def _store(file: UploadFile, path: Path, most: int) -> None:
    """Write an uploaded file to its place, a piece at a time."""
    written = 0
    with path.open("xb") as target:
        while chunk := await file.read(_CHUNK):
            written += len(chunk)
            if written > most:
                raise UserError(f"'{path.name}' is longer than {most:,} bytes")
            target.write(chunk)
