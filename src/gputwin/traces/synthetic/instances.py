"""The instances of a synthetic trace: one row per member of each task's gang, on a machine with the task's GPU model.

Placement is a draw, not a schedule: it says where an instance could have run, and does not count what was free there.
Members of a gang start within seconds of one another and mostly end together (tail of `pai_instance_table`: 90 % of
tasks have all starts within 2 s, 80 % all ends).
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.rng import stream
from gputwin.traces.schema import INSTANCES, STATUS, Status, conform
from gputwin.traces.synthetic.columns import as_rows
from gputwin.traces.synthetic.distributions import Floats, Ints
from gputwin.traces.synthetic.identifiers import random_identifiers

_CANCELLED_WITH_GANG = 0.55
_ENDS_EARLY = 0.1
_EARLIEST = 0.1


def make_instances(tasks: pl.DataFrame, nodes: pl.DataFrame, seed: int) -> pl.DataFrame:
    """Return the canonical instance table, in the order of tasks; members of waiting tasks have no machine or times."""
    counts = tasks["instances"].to_numpy()
    task = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    leads = np.zeros(len(task), dtype=np.bool_)
    leads[np.cumsum(counts) - counts] = True
    start, end = _times(tasks, task, leads, seed)
    waiting = (tasks["status"] == Status.WAITING).to_numpy()[task]
    node = pl.Series(_placement(tasks, nodes, task, seed))
    of_task = tasks.select("job_id", "role").select(pl.all().gather(as_rows(task)))
    frame = of_task.with_columns(
        random_identifiers(stream(seed, "instances", "names"), len(task), 60).alias("instance_id"),
        _statuses(tasks, task, leads, seed).alias("status"),
        pl.Series("start_time", start).fill_nan(None),
        pl.Series("end_time", end).fill_nan(None),
        tasks["is_running"].gather(as_rows(task)).alias("is_running"),
        nodes["node_id"].gather(pl.select(pl.when(~pl.Series(waiting)).then(node)).to_series()).alias("node_id"),
    )
    return conform(INSTANCES, frame.lazy()).collect()


def _times(tasks: pl.DataFrame, task: NDArray[np.uint32], leads: NDArray[np.bool_], seed: int) -> tuple[Floats, Floats]:
    """Return start and end in s, NaN where unknown; a gang's first member keeps its task's times."""
    rng = stream(seed, "instances", "times")
    start = tasks["start_time"].to_numpy()[task]
    end = tasks["end_time"].to_numpy()[task]
    late = np.where(leads, 0.0, np.floor(rng.exponential(1.0, size=len(task))))
    early = np.where(~leads & (rng.random(len(task)) < _ENDS_EARLY), _EARLIEST * rng.random(len(task)), 0.0)
    runtime = np.nan_to_num(end - start, nan=np.inf)
    begun = start + np.minimum(late, np.floor(runtime / 4))
    return begun, end - np.floor(early * (end - start))


def _statuses(tasks: pl.DataFrame, task: NDArray[np.uint32], leads: NDArray[np.bool_], seed: int) -> pl.Series:
    """Return each member's status: its task's, but where a gang failed, most others were stopped with it."""
    names = STATUS.categories.to_list()
    code = tasks["status"].to_physical().to_numpy()[task].astype(np.uint32)
    stopped = ~leads & (stream(seed, "instances", "statuses").random(len(task)) < _CANCELLED_WITH_GANG)
    code[stopped & (code == names.index(Status.FAILED))] = names.index(Status.CANCELLED)
    return pl.Series(names, dtype=STATUS).gather(pl.Series(code))


def _placement(tasks: pl.DataFrame, nodes: pl.DataFrame, task: NDArray[np.uint32], seed: int) -> Ints:
    """Return a row of `nodes` per instance: any machine of the task's GPU model, any at all for tasks without GPU."""
    models = nodes["gpu_model"].drop_nulls().unique(maintain_order=True).to_list()
    rows = [np.flatnonzero((nodes["gpu_model"] == model).fill_null(False).to_numpy()) for model in models]
    rows.append(np.arange(nodes.height))
    first = np.cumsum([0, *(len(r) for r in rows)])
    code = tasks["gpu_model"].replace_strict(models, range(len(models)), default=len(models)).to_numpy()[task]
    size = np.diff(first)[code]
    drawn = (stream(seed, "instances", "placement").random(len(task)) * size).astype(np.int64)
    placed: Ints = np.concatenate(rows)[first[:-1][code] + drawn]
    return placed
