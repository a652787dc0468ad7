"""Jobs given as plain arrays, without a trace, as queueing models and benchmarks have them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from gputwin.core.units import WHOLE_GPU_MILLI
from gputwin.simulation.engine.state.records import GROUP, JOB, REQUEST, SHAPE
from gputwin.simulation.workload import Workload


class Kinds(NamedTuple):
    """Kinds of jobs, one value a kind: `instances` that take `gpus` devices, `gpu_milli` of each, CPU and memory each."""

    gpus: ArrayLike
    gpu_milli: ArrayLike = WHOLE_GPU_MILLI
    instances: ArrayLike = 1
    cpu_milli: ArrayLike = 0
    memory_mib: ArrayLike = 0


def workload_of_kinds(
    submit: NDArray[np.float64],
    duration: NDArray[np.float64],
    kinds: Kinds,
    kind: NDArray[np.int64],
    priority: ArrayLike = 0.0,
) -> Workload:
    """Return jobs in order of submission (s), each of one kind, as the engine's arrays; they may run anywhere."""
    count = np.asarray(kinds.gpus).size
    gpus, gpu_milli, instances, cpu, memory = (np.broadcast_to(np.asarray(k, np.int64), count) for k in kinds)
    records = np.zeros(submit.size, JOB)
    records["submit"] = submit
    records["duration"] = records["predicted"] = duration
    records["deadline"] = np.inf
    records["priority"] = priority
    records["gpu_milli"] = (gpus * gpu_milli * instances)[kind]
    records["shape"] = kind
    records["first_slot"] = np.cumsum(instances[kind]) - instances[kind]
    shapes, groups, requests = (np.zeros(count, dtype) for dtype in (SHAPE, GROUP, REQUEST))
    shapes["first_group"] = groups["request"] = np.arange(count)
    shapes["groups"] = 1
    shapes["instances"] = groups["size"] = instances
    requests["gpu_count"], requests["gpu_milli"] = gpus, gpu_milli
    requests["cpu"], requests["memory"] = cpu, memory
    requests["max_per_node"] = requests["application"] = -1
    anywhere = np.ones((count, 1), np.bool_)
    return Workload(records, shapes, groups, requests, anywhere, pl.Series(dtype=pl.String), ("everyone",), ("",), {})
