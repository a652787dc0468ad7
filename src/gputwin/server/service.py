"""What the REST API and the pages both ask of the server: start work, fetch what was made, look into runs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from gputwin.core.errors import UserError, shorten
from gputwin.server import work
from gputwin.server.requests import (
    ForecastRequest,
    Generated,
    PlanRequest,
    RunRequest,
    cluster_name,
    forecast_settings,
    scenario_for,
)
from gputwin.server.settings import Settings
from gputwin.server.tasks import Task, Tasks, Work
from gputwin.server.workspace import Workspace, document_key
from gputwin.simulation.scenario import Scenario

ENDINGS = (".csv", ".tsv", ".txt", ".log", ".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".swf", ".parquet")
PACKED = (".gz", ".xz", ".bz2", ".zip", ".tar", ".tgz")
_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Service:
    """One server's settings, folder and work."""

    settings: Settings

    @cached_property
    def workspace(self) -> Workspace:
        """Return the folder of traces and runs."""
        return Workspace.at(self.settings.workspace)

    @cached_property
    def tasks(self) -> Tasks:
        """Return the work under way."""
        return Tasks(self.settings.limits)

    # Traces

    def upload(self, folder: Path, files: list[Path], **options: Any) -> Task:
        """Return the task that reads uploaded files, which are in `folder`; the folder goes away afterwards."""
        settings = {"files": [str(f) for f in files], "traces": str(self.workspace.root / "traces"), **options}
        title = f"Reading {', '.join(f.name for f in files[:3])}"
        done = Work(
            "upload",
            shorten(title, 120),
            work.read_upload,
            settings,
            self.settings.limits.memory_bytes // 2,
            self.settings.limits.written_bytes,
            self.settings.limits.upload_seconds,
            "/traces/{id}",
            lambda: shutil.rmtree(folder, ignore_errors=True),
        )
        return self.tasks.start(f"upload-{folder.name}", done)

    def generate(self, request: Generated) -> Task:
        """Return the task that generates a trace."""
        if request.jobs > self.settings.limits.jobs:
            raise UserError(f"at most {self.settings.limits.jobs:,} jobs can be generated here")
        settings = {"traces": str(self.workspace.root / "traces"), **request.model_dump()}
        title = f"Generating {request.jobs:,} jobs like {request.name}"
        return self._start(
            f"generate-{sorted(settings.items())}", "generate", title, work.make_trace, settings, "/traces/{id}"
        )

    # Runs

    def scenario(self, request: RunRequest) -> Scenario:
        """Return the scenario a client asks for, checked."""
        path = self.workspace.trace_path(request.trace)
        record = self.workspace.trace_record(request.trace)
        return scenario_for(request, str(path), record["fingerprint"], self.settings.limits)

    def simulate(self, request: RunRequest) -> tuple[str, Task | None]:
        """Return the id of the run, and the task that makes it; None where the same run is there already."""
        scenario = self.scenario(request)
        id_ = self.workspace.store.key(scenario, self.workspace.trace(request.trace))
        if self.workspace.store.get(id_) is not None:
            return id_, None
        settings = {"scenario": scenario.to_data(), "key": id_, "store": str(self.workspace.root)}
        title = f"Simulating {request.trace}"
        return id_, self._start(f"run-{id_}", "run", title, work.simulate_run, settings, "/runs/{id}")

    # Documents

    def trace_document(self, id_: str) -> Task | dict[str, Any]:
        """Return all that a trace shows, or the task that finds out."""
        path = str(self.workspace.trace_path(id_))
        return self._document("trace", f"Analyzing {id_}", f"/traces/{id_}", {"trace": path}, self._fingerprint(id_))

    def run_document(self, id_: str) -> Task | dict[str, Any]:
        """Return what a run comes to, or the task that finds out."""
        path, trace = str(self.workspace.run_path(id_)), self.workspace.trace_of_run(id_)
        settings = {"run": path, "trace": str(self.workspace.trace_path(trace)) if trace else None}
        return self._document("run", "Reading the run", f"/runs/{id_}", settings)

    def explain_document(self, id_: str, job: str) -> Task | dict[str, Any]:
        """Return why one job of a run waited, or the task that finds out."""
        path, trace = str(self.workspace.run_path(id_)), self.workspace.trace_of_run(id_)
        settings = {"run": path, "trace": str(self.workspace.trace_path(trace)) if trace else None, "job": job}
        return self._document("explain", "Explaining a wait", "", settings)

    def start_document(self, id_: str, job: str) -> Task | dict[str, Any]:
        """Return when a job was expected to start, or the task that finds out."""
        path, trace = str(self.workspace.run_path(id_)), self.workspace.trace_of_run(id_)
        if trace is None:
            raise UserError("the trace of this run is not there any more, and its start cannot be predicted without")
        settings = {"run": path, "trace": str(self.workspace.trace_path(trace)), "job": job}
        return self._document("start", "Predicting a start", "", settings)

    def compare_document(self, ids: list[str]) -> Task | dict[str, Any]:
        """Return runs side by side, or the task that compares them."""
        if not 2 <= len(ids) <= 8 or len(set(ids)) < len(ids):
            raise UserError("a comparison needs two to eight different runs")
        paths = [str(self.workspace.run_path(id_)) for id_ in ids]
        trace = self.workspace.trace_of_run(ids[0])
        settings = {"runs": paths, "trace": str(self.workspace.trace_path(trace)) if trace else None}
        return self._document("compare", "Comparing runs", f"/compare?runs={','.join(ids)}", settings)

    def check_document(self, id_: str, cluster: str | None) -> Task | dict[str, Any]:
        """Return whether a trace fits a cluster, or the task that finds out."""
        path = str(self.workspace.trace_path(id_))
        settings = {"trace": path, "cluster": cluster_name(cluster, self.settings.limits)}
        return self._document("check", "Checking the load", f"/traces/{id_}", settings, self._fingerprint(id_))

    def queueing_document(self, id_: str, cluster: str | None) -> Task | dict[str, Any]:
        """Return theory, simulation and trace together, or the task that compares them."""
        path = str(self.workspace.trace_path(id_))
        settings = {"trace": path, "cluster": cluster_name(cluster, self.settings.limits)}
        return self._document("queueing", "Asking queueing theory", f"/traces/{id_}", settings, self._fingerprint(id_))

    def forecast_document(self, id_: str, request: ForecastRequest) -> Task | dict[str, Any]:
        """Return a forecast, or the task that makes it."""
        settings = {"trace": str(self.workspace.trace_path(id_)), **forecast_settings(request)}
        return self._document(
            "forecast", "Forecasting demand", f"/traces/{id_}/forecast", settings, self._fingerprint(id_)
        )

    def plan_document(self, id_: str, request: PlanRequest) -> Task | dict[str, Any]:
        """Return a capacity plan, or the task that makes it."""
        cluster = cluster_name(request.cluster, self.settings.limits)
        rules = {"order": request.order, "backfill": request.backfill, "placement": request.placement}
        settings = {
            "trace": str(self.workspace.trace_path(id_)),
            "cluster": cluster,
            "target": f"{request.measure}={request.seconds:g}",
            "growth": request.growth,
            "confidence": request.confidence,
            "rules": rules,
        }
        self.scenario(RunRequest(trace=id_, cluster=cluster, rules=rules))
        return self._document("plan", "Planning capacity", f"/traces/{id_}/plan", settings, self._fingerprint(id_))

    def autoscale_document(self, id_: str, load: float) -> Task | dict[str, Any]:
        """Return scaling rules side by side, or the task that compares them."""
        settings = {"trace": str(self.workspace.trace_path(id_)), "load": load}
        return self._document(
            "autoscale", "Comparing scaling rules", f"/traces/{id_}/scaling", settings, self._fingerprint(id_)
        )

    def _fingerprint(self, id_: str) -> str:
        return str(self.workspace.trace_record(id_)["fingerprint"])

    def _document(
        self, kind: str, title: str, page: str, settings: dict[str, Any], of: str = ""
    ) -> Task | dict[str, Any]:
        key = document_key(kind, of=of, **settings)
        found = self.workspace.document(key)
        if found is not None:
            return found
        failed = self.tasks.failed(key)
        if failed is not None:
            return failed
        path = str(self.workspace.document_path(key))
        return self._start(key, kind, title, work.write_document, {"kind": kind, "path": path, **settings}, page)

    def _start(
        self,
        key: str,
        kind: str,
        title: str,
        function: Callable[..., dict[str, Any]],
        settings: dict[str, Any],
        then: str,
    ) -> Task:
        limits = self.settings.limits
        made = Work(
            kind,
            shorten(title, 120),
            function,
            settings,
            limits.memory_bytes,
            limits.written_bytes,
            limits.work_seconds,
            then,
        )
        return self.tasks.start(key, made)


def file_name(name: str | None) -> str:
    """Return the name of an uploaded file without anything that could lead elsewhere; a user error for other kinds."""
    last = re.split(r"[\\/]", name or "")[-1]
    safe = _NAME.sub("_", last).lstrip(".")[-100:]
    plain = safe.lower()
    for ending in PACKED:
        if plain.endswith(ending) and plain != ending:
            return safe
    if not plain.endswith(ENDINGS):
        known = ", ".join((*ENDINGS, *PACKED))
        raise UserError(f"'{shorten(last)}' is of a kind that is not read here; give a file that ends in {known}")
    return safe
