"""A run as Prometheus metrics, named as Kueue and NVIDIA's DCGM exporter name theirs, so that their boards show the twin.

Kueue's ClusterQueue is a tenant, its flavor a GPU model. The run is replayed: without a `time`, the moment shown moves on
with the clock, `speed` times as fast, and begins again at the end.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.core.version import VERSION
from gputwin.server.answers import PROBLEMS
from gputwin.server.service import Service
from gputwin.server.workspace import ID_PATTERN
from gputwin.simulation.cluster_at import Moment, cluster_at, span_of
from gputwin.simulation.queue_at import WAIT_BUCKETS, QueueMoment, queues_at
from gputwin.simulation.result import SimulationResult

_MOST_DEVICES = 20_000
_RESOURCE = "nvidia.com/gpu"
_EVICTIONS = {"preempted": "Preempted", "failed": "NodeFailures", "drained": "Drained"}
"""Why a running job was stopped, in Kueue's words where it has one; a resize is no eviction."""


def metrics_router(service: Service) -> APIRouter:
    """Return the route /metrics."""
    router = APIRouter(tags=["metrics"], responses=PROBLEMS)
    begun = clock.time()

    @router.get("/metrics", response_class=Response, summary="The latest run, or one by its id, for Prometheus")
    def metrics(
        run: Annotated[str | None, Query(pattern=ID_PATTERN, max_length=64)] = None,
        time: Annotated[float | None, Query(allow_inf_nan=False, description="s of the trace's clock")] = None,
        speed: Annotated[float, Query(gt=0, le=1e6, allow_inf_nan=False)] = 60.0,
    ) -> Response:
        space = service.workspace
        latest = next((r["id"] for r in space.runs()), None) if run is None else run
        lines = list(_server(service))
        if latest is not None:
            result = space.run(latest)
            first, last = span_of(result)
            replayed = first + (clock.time() - begun) * speed % max(last - first, 1.0)
            at = replayed if time is None else time
            lines += [*_kueue(result, queues_at(result, at)), *_dcgm(cluster_at(result, at))]
            lines += _family(
                "gputwin_time_seconds", "gauge", "Moment shown, of the trace's clock.", [({"run": latest}, at)]
            )
        return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def _server(service: Service) -> Iterator[str]:
    yield from _family("gputwin_info", "gauge", "The server.", [({"version": VERSION}, 1)])
    states: dict[str, int] = {}
    for task in service.tasks.all():
        states[task.state.value] = states.get(task.state.value, 0) + 1
    samples = [({"state": state}, count) for state, count in sorted(states.items())]
    yield from _family("gputwin_tasks", "gauge", "Tasks remembered, by state.", samples)


def _kueue(result: SimulationResult, moment: QueueMoment) -> Iterator[str]:
    rows = moment.queues.to_dicts()

    def by(column: str) -> list[tuple[dict[str, str], Any]]:
        return [({"cluster_queue": r["tenant"]}, r[column]) for r in rows]

    pending = [
        ({"cluster_queue": r["tenant"], "status": status}, r[column])
        for r in rows
        for status, column in (("active", "pending"), ("inadmissible", "inadmissible"))
    ]
    yield from _family("kueue_pending_workloads", "gauge", "Jobs that wait; inadmissible: can never fit.", pending)
    for name in ("kueue_admitted_active_workloads", "kueue_reserving_active_workloads"):
        yield from _family(name, "gauge", "Jobs that run.", by("active"))
    for name in ("kueue_admitted_workloads_total", "kueue_quota_reserved_workloads_total"):
        yield from _family(name, "counter", "Jobs that have started.", by("admitted"))
    yield from _family("kueue_finished_workloads_total", "counter", "Jobs that have finished.", by("finished"))
    for name in ("kueue_admission_wait_time_seconds", "kueue_quota_reserved_wait_time_seconds"):
        yield from _waits(name, rows)
    evicted = [
        ({"cluster_queue": r["tenant"], "reason": _EVICTIONS[r["reason"]], "underlying_cause": ""}, r["count"])
        for r in moment.evictions.to_dicts()
        if r["reason"] in _EVICTIONS
    ]
    yield from _family("kueue_evicted_workloads_total", "counter", "Running jobs stopped, by reason.", evicted)
    status = [
        ({"cluster_queue": r["tenant"], "status": s}, int(s == "active"))
        for r in rows
        for s in ("active", "pending", "terminating")
    ]
    yield from _family("kueue_cluster_queue_status", "gauge", "Every tenant's queue is active.", status)
    used = [(_queue_labels(r["tenant"], r["gpu_model"]), r["gpus"]) for r in moment.holding.to_dicts() if r["gpus"] > 0]
    for name in ("kueue_cluster_queue_resource_usage", "kueue_cluster_queue_resource_reservation"):
        yield from _family(name, "gauge", "GPUs held.", used)
    fairness = result.scenario.fairness if "scenario" in result.manifest else None
    limits = {} if fairness is None else {n: t.gpus for n, t in fairness.tenants.items() if t.gpus is not None}
    nominal = [(_queue_labels(name, "any"), gpus) for name, gpus in limits.items()]
    yield from _family("kueue_cluster_queue_nominal_quota", "gauge", "GPUs a tenant may hold.", nominal)


def _queue_labels(tenant: str, model: str) -> dict[str, str]:
    return {"cohort": "cluster", "cluster_queue": tenant, "flavor": model, "resource": _RESOURCE}


def _waits(name: str, rows: list[dict[str, Any]]) -> Iterator[str]:
    samples: list[tuple[str, dict[str, str], Any]] = []
    for r in rows:
        queue = {"cluster_queue": r["tenant"]}
        samples += [("_bucket", {**queue, "le": f"{b:g}"}, r[f"wait_le_{b:g}"]) for b in WAIT_BUCKETS]
        samples.append(("_bucket", {**queue, "le": "+Inf"}, r["admitted"]))
        samples += [("_sum", queue, r["wait_sum"]), ("_count", queue, r["admitted"])]
    if samples:
        yield f"# HELP {name} Time from submission to start, of jobs that have started."
        yield f"# TYPE {name} histogram"
        yield from (_line(f"{name}{part}", labels, value) for part, labels, value in samples)


def _dcgm(moment: Moment) -> Iterator[str]:
    """Yield one sample per device; a twin knows what is allocated, so utilisation is the share of the device held."""
    held = {(r["node"], r["device"]): r for r in moment.devices.to_dicts()}
    use: list[tuple[dict[str, str], Any]] = []
    for node in moment.nodes.iter_rows(named=True):
        for device in range(node["gpu_count"]):
            if len(use) >= _MOST_DEVICES:
                break
            found = held.get((node["node"], device))
            labels = {
                "gpu": str(device),
                "UUID": f"GPU-{node['node']}-{device}",
                "device": f"nvidia{device}",
                "modelName": node["gpu_model"] or "unnamed",
                "Hostname": node["node_id"],
                "namespace": found["tenant"] if found else "",
            }
            use.append((labels, 100.0 * found["held_milli"] / WHOLE_GPU_MILLI if found else 0.0))
    yield from _family("DCGM_FI_DEV_GPU_UTIL", "gauge", "Share of the GPU that jobs hold, percent.", use)
    active = [(labels, value / 100.0) for labels, value in use]
    yield from _family("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Share of the GPU that jobs hold.", active)


def _family(name: str, kind: str, text: str, samples: list[tuple[dict[str, str], Any]]) -> Iterator[str]:
    if samples:
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} {kind}"
        yield from (_line(name, labels, value) for labels, value in samples)


def _line(name: str, labels: dict[str, str], value: Any) -> str:
    inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {float(value or 0):.10g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
