"""The same jobs with other shapes: told apart by a field or a GPU model, or with smaller sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gputwin.simulation.engine.state.lives import plain_forms
from gputwin.simulation.engine.state.records import GROUP, SHAPE
from gputwin.simulation.workload import Workload


def with_shapes_apart(workload: Workload, name: str) -> Workload:
    """Return the same jobs, those of one shape that differ in the field `name` counted as of several shapes."""
    shapes, jobs = workload.shapes, workload.jobs.copy()
    _, value = np.unique(jobs[name], return_inverse=True)
    codes, number = np.unique(jobs["shape"].astype(np.int64) * (value.max() + 1) + value, return_inverse=True)
    source = codes // (value.max() + 1)
    groups = [np.arange(s["first_group"], s["first_group"] + s["groups"]) for s in shapes[source]]
    apart = shapes[source].copy()
    apart["first_group"] = np.cumsum(apart["groups"]) - apart["groups"]
    jobs["shape"] = number
    return replace(workload, jobs=jobs, shapes=apart, groups=workload.groups[np.concatenate(groups)])


def with_sizes(workload: Workload, least_share: float, exponent: float) -> Workload:
    """Return the same jobs with smaller sizes of each shape of one group: half, a quarter, … of its instances.

    On a share x of its instances a job does x to the power of `exponent` of its work a second.
    """
    base = workload.shapes.copy()
    base["smaller"] = base["larger"] = -1
    shapes, groups, speeds = list(base), list(workload.groups), [1.0] * len(base)
    for s in range(len(shapes)):
        larger, full = s, int(shapes[s]["instances"])
        while shapes[s]["groups"] == 1 and full > 1:
            half = int(shapes[larger]["instances"]) // 2
            if half < max(least_share * full, 1):
                break
            smaller, group = shapes[s].copy(), groups[shapes[s]["first_group"]].copy()
            group["size"] = smaller["instances"] = half
            smaller["first_group"], smaller["larger"], smaller["smaller"] = len(groups), larger, -1
            shapes[larger]["smaller"] = len(shapes)
            larger = len(shapes)
            groups.append(group)
            shapes.append(smaller)
            speeds.append((half / full) ** exponent)
    forms = plain_forms(len(shapes))
    forms["speed"] = speeds
    return replace(workload, shapes=np.array(shapes, SHAPE), groups=np.array(groups, GROUP), forms=forms)


def with_models_apart(workload: Workload) -> Workload:
    """Return the same jobs with, of each shape with GPUs, one shape for each GPU model it may run on.

    Row k of the shapes of model m is `len(shapes) · (1 + m) + k`: like row k, on that model alone.
    """
    shapes, groups, requests, allowed = [workload.shapes], [workload.groups], [workload.requests], [workload.allowed]
    with_gpus = workload.requests["gpu_count"] > 0
    for m in range(len(workload.models)):
        only = np.zeros_like(workload.allowed)
        only[:, m] = workload.allowed[:, m]
        alike, members = workload.shapes.copy(), workload.groups.copy()
        alike["first_group"] += len(workload.groups) * (1 + m)
        members["request"] += len(workload.requests) * (1 + m)
        shapes.append(alike)
        groups.append(members)
        requests.append(workload.requests)
        allowed.append(np.where(with_gpus[:, None], only, workload.allowed))
    return replace(
        workload,
        shapes=np.concatenate(shapes),
        groups=np.concatenate(groups),
        requests=np.concatenate(requests),
        allowed=np.concatenate(allowed),
        constraints=workload.constraints * (1 + len(workload.models)),
    )
