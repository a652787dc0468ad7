"""Pods as tasks: a gang per job and role where the pods are alike and were made together, else one task per pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import polars as pl

from gputwin.traces.readers.kubernetes.pods import Pod, Shape
from gputwin.traces.schema import DEFAULT_ROLE, INSTANCES, TASKS, Status

_JOB_KINDS = frozenset({"RayCluster", "JobSet", "PodGroup"})
_TOGETHER_SECONDS = 60.0


class Task(NamedTuple):
    """A gang: its name in the trace, and its pods."""

    job_id: str
    role: str
    pods: tuple[Pod, ...]


def _is_job(pod: Pod) -> bool:
    """Return whether the pod's owner is a job, whose pods work together, and no service with replicas."""
    return pod.owner is not None and (pod.owner.kind.endswith("Job") or pod.owner.kind in _JOB_KINDS)


def tasks_of(pods: Iterable[Pod]) -> Iterator[Task]:
    """Yield the tasks that the pods make up."""
    jobs: dict[tuple[str, str, str], set[str]] = {}
    parts: dict[tuple[str, str, str, str, str], list[Pod]] = {}
    for pod in pods:
        if pod.owner is not None and _is_job(pod):
            job = (pod.namespace, pod.owner.kind.lower(), pod.owner.name)
            jobs.setdefault(job, set()).add(pod.owner.uid)
            parts.setdefault((*job, pod.owner.uid, pod.role), []).append(pod)
        else:
            yield Task(f"{pod.namespace}/{pod.name}", DEFAULT_ROLE, (pod,))
    for (namespace, kind, name, uid, role), members in parts.items():
        # A job that was deleted and made again under its name leaves pods of both.
        mark = f"@{uid}" if len(jobs[namespace, kind, name]) > 1 else ""
        job_id = f"{namespace}/{kind}/{name}{mark}"
        if _are_gang(members):
            yield Task(job_id, role, tuple(members))
        else:
            for pod in members:
                yield Task(job_id, f"{role}/{pod.name}", (pod,))


def _are_gang(pods: list[Pod]) -> bool:
    """Return whether the pods are alike and were made together; later ones are retries or the next in line."""
    times = [pod.submit_time for pod in pods if pod.submit_time is not None]
    if len(pods) == 1 or not times:
        return len(pods) == 1
    return len({pod.shape for pod in pods}) == 1 and max(times) - min(times) <= _TOGETHER_SECONDS


def task_table(tasks: list[Task]) -> pl.DataFrame:
    """Return the tasks in canonical columns."""
    schema = {
        "job_id": pl.String,
        "role": pl.String,
        "application": pl.String,
        "tenant": pl.String,
        "status": pl.String,
        "submit_time": pl.Float64,
        "start_time": pl.Float64,
        "end_time": pl.Float64,
        "is_running": pl.Boolean,
        "attempts": pl.Int64,
        "instances": pl.Int64,
        # Numbers too large for their column must get as far as the rule that counts them.
        **{name: pl.String if TASKS.schema[name] == pl.String else pl.Float64 for name in Shape._fields},
    }
    table = pl.DataFrame([_row(task) for task in tasks], schema=schema, orient="row")
    return table.with_columns((pl.col("end_time") - pl.col("start_time")).alias("duration_seconds"))


def _row(task: Task) -> tuple[object, ...]:
    pods = task.pods
    starts = _all_known([pod.start_time for pod in pods])
    ends = _all_known([pod.end_time for pod in pods])
    submits = [pod.submit_time for pod in pods if pod.submit_time is not None]
    attempts = [pod.attempts for pod in pods if pod.attempts is not None]
    return (
        task.job_id,
        task.role,
        pods[0].application,
        pods[0].namespace,
        _status(pods),
        min(submits, default=None),
        # A gang begins when its last pod has a place, and is over when its last pod is.
        max(starts) if starts else None,
        max(ends) if ends else None,
        bool(starts) and any(pod.is_running for pod in pods),
        max(attempts, default=None),
        len(pods),
        *pods[0].shape,
    )


def _all_known(times: list[float | None]) -> list[float]:
    known = [time for time in times if time is not None]
    return known if len(known) == len(times) else []


def _status(pods: tuple[Pod, ...]) -> Status:
    """Return the state of the pod that decides: one that waits, runs, failed or is unknown, in this order."""
    states = {pod.status for pod in pods}
    order = (Status.WAITING, Status.RUNNING, Status.FAILED, Status.UNKNOWN, Status.COMPLETED)
    return next(status for status in order if status in states)


def instance_table(tasks: list[Task]) -> pl.DataFrame:
    """Return the pods in canonical columns."""
    rows = [
        (
            task.job_id,
            task.role,
            pod.name,
            pod.status,
            pod.submit_time,
            pod.start_time,
            pod.end_time,
            pod.is_running,
            pod.node_id,
        )
        for task in tasks
        for pod in task.pods
    ]
    return pl.DataFrame(rows, schema=dict(INSTANCES.schema) | {"status": pl.String}, orient="row")
