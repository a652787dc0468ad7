"""Kubernetes pods: their life and request, and the gangs they form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.traces.document import Item
from gputwin.traces.quality import QualityLog
from gputwin.traces.readers.kubernetes.labels import models_allowed
from gputwin.traces.readers.kubernetes.resources import (
    cpu_milli,
    gpus,
    mib,
    others,
    pod_limits,
    pod_requests,
)
from gputwin.traces.schema import DEFAULT_ROLE, Status

_STATUS = {
    "Pending": Status.WAITING,
    "Running": Status.RUNNING,
    "Succeeded": Status.COMPLETED,
    "Failed": Status.FAILED,
    "Unknown": Status.UNKNOWN,
}
_ROLES = (
    "training.kubeflow.org/replica-type",
    "training.kubeflow.org/job-role",
    "mpi-job-role",
    "volcano.sh/task-spec",
    "ray.io/node-type",
    "jobset.sigs.k8s.io/replicatedjob-name",
)


@dataclass(frozen=True)
class Owner:
    """The controller that made a pod."""

    kind: str
    name: str
    uid: str


class Shape(NamedTuple):
    """What one pod asks for; pods of a gang are alike in it."""

    priority: int | None
    qos: str | None
    cpu_milli: int | None
    memory_mib: int | None
    gpu_count: int
    gpu_milli: int | None
    gpu_memory_mib: int | None
    disk_mib: int | None
    cpu_limit_milli: int | None
    memory_limit_mib: int | None
    gpu_limit_milli: int | None
    disk_limit_mib: int | None
    gpu_models_allowed: str | None


@dataclass(frozen=True)
class Pod:
    """One pod: who it belongs to, what it asks for, and its life in Unix seconds."""

    namespace: str
    name: str
    uid: str
    owner: Owner | None
    role: str
    application: str | None
    shape: Shape
    status: Status
    submit_time: float | None
    start_time: float | None
    end_time: float | None
    attempts: int | None
    node_id: str | None

    @property
    def is_running(self) -> bool:
        """Whether it holds its resources: placed, and not over."""
        return self.start_time is not None and self.status in (Status.WAITING, Status.RUNNING)


def pod_of(item: Item, sharers: Mapping[str, int], quality: QualityLog) -> Pod:
    """Return the pod an item describes; `sharers` are the pods that share a GPU on each node that shares them."""
    metadata, spec, status = item.child("metadata"), item.child("spec"), item.child("status")
    labels = metadata.child("labels").text_fields()
    namespace = metadata.text("namespace") or "default"
    owner = _owner(metadata)
    node_id = spec.text("nodeName") or None
    phase = status.text("phase") or "Unknown"
    quality.find("F08", "tasks", phase not in _STATUS, detail="phase")
    start = _scheduled_time(status)
    is_over = phase in ("Succeeded", "Failed")
    return Pod(
        namespace,
        metadata.name("name"),
        metadata.text("uid") or "",
        owner,
        next((labels[name] for name in _ROLES if labels.get(name)), DEFAULT_ROLE),
        _application(owner, labels),
        _shape(spec, status, sharers.get(node_id or "", 1), quality),
        _STATUS.get(phase, Status.UNKNOWN),
        _time(metadata, "creationTimestamp"),
        start,
        _finish_time(status) if is_over else None,
        None if start is None else 1 + _restarts(status),
        node_id,
    )


def _owner(metadata: Item) -> Owner | None:
    owners = list(metadata.children("ownerReferences"))
    owners.sort(key=lambda owner: not owner.flag("controller"))
    if not owners:
        return None
    return Owner(owners[0].name("kind"), owners[0].name("name"), owners[0].text("uid") or "")


def _application(owner: Owner | None, labels: Mapping[str, str]) -> str | None:
    """Return the program's name: its label, or the owner's name without a ReplicaSet's hash."""
    if name := labels.get("app.kubernetes.io/name"):
        return name
    if owner is None:
        return None
    return owner.name.removesuffix("-" + labels.get("pod-template-hash", "-"))


def _shape(spec: Item, status: Item, sharers: int, quality: QualityLog) -> Shape:
    requests, limits = pod_requests(spec, quality), pod_limits(spec, quality)
    asked, most = gpus(requests), gpus(limits)
    unknown = others(requests)
    quality.find("F21", "tasks", bool(unknown), detail=", ".join(sorted(unknown))[:200])
    priority = spec.number("priority")
    milli = asked.milli
    if sharers > 1 and milli == WHOLE_GPU_MILLI:
        milli //= sharers
    return Shape(
        priority=None if priority is None else int(priority),
        qos=status.text("qosClass"),
        cpu_milli=cpu_milli(requests),
        memory_mib=mib(requests, "memory"),
        gpu_count=asked.count,
        gpu_milli=milli,
        gpu_memory_mib=asked.memory_mib,
        disk_mib=mib(requests, "ephemeral-storage"),
        cpu_limit_milli=cpu_milli(limits),
        memory_limit_mib=mib(limits, "memory"),
        gpu_limit_milli=most.count * (most.milli or 0) or None,
        disk_limit_mib=mib(limits, "ephemeral-storage"),
        gpu_models_allowed=models_allowed(spec),
    )


def _time(item: Item, key: str) -> float | None:
    """Return a time in Unix seconds."""
    text = item.text(key)
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise item.wrong(key, f"'{text[:40]}' is not a time") from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _scheduled_time(status: Item) -> float | None:
    """Return when the pod was bound to its node, or else when the node took it up."""
    for condition in status.children("conditions"):
        if condition.text("type") == "PodScheduled" and condition.text("status") == "True":
            return _time(condition, "lastTransitionTime")
    return _time(status, "startTime")


def _finish_time(status: Item) -> float | None:
    """Return when the last container ended; unknown when one of them does not say."""
    ends = []
    for container in status.children("containerStatuses"):
        ends.append(_time(container.child("state").child("terminated"), "finishedAt"))
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def _restarts(status: Item) -> int:
    return int(max((c.number("restartCount") or 0 for c in status.children("containerStatuses")), default=0))
