"""What instances used and how their machines stood meanwhile, made in pieces so that memory stays small.

Use lies well below the request (NSDI'22 §3.3: medians of 1.4 of 6 vCPU, 0.042 of 0.5 GPU, 3.5 of 29 GiB), and exceeds
it in the shares that the publisher's notebook prints (15.5 % CPU, 2 % GPU, 4.1 % memory). Members of a gang use alike.
Network figures follow the joined sample. Measurements are multiples of 1/64 in the publisher's unit, so that changes
of unit (percent to milli, GiB to MiB) lose nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.rng import stream
from gputwin.core.units import CORE_MILLI, MIB_PER_GIB
from gputwin.traces.schema import USAGE, conform
from gputwin.traces.synthetic.columns import as_rows
from gputwin.traces.synthetic.distributions import Floats, normal_quantile

CHUNK_ROWS = 1 << 19
_GRID = 64.0
_MILLI_PER_PERCENT = 10.0
_IN_TASK = 0.8  # how alike members of a gang are: correlation with their task, on the normal scale
_IDLE_GPU = 0.15


@dataclass(frozen=True)
class _Ratio:
    """Use over request is log-normal: its median, and the spread of its logarithm."""

    median: float
    spread: float

    def at(self, z: Floats) -> Floats:
        return self.median * np.exp(self.spread * z)


_CPU_OF_REQUEST = _Ratio(0.245, 1.39)
_GPU_OF_REQUEST = _Ratio(0.105, 1.12)
_MEMORY_OF_REQUEST = _Ratio(0.175, 1.0)
_PEAK_MEMORY = _Ratio(1.35, 0.25)
_GPU_MEMORY_GIB = _Ratio(0.5, 1.0)
_READ_BYTES = _Ratio(3.6e7, 2.1)
_WRITTEN_BYTES = _Ratio(2.4e6, 1.4)
_READS = _Ratio(4_200.0, 1.2)
_WRITES = _Ratio(1_540.0, 1.5)
_MOST_GPU_MEMORY_GIB = 16.0


def usage_chunks(tables: Mapping[str, pl.DataFrame], seed: int) -> Iterator[pl.DataFrame]:
    """Yield the canonical usage table: a row per placed instance of scope 'instance', then one of scope 'node'."""
    tasks, nodes, instances = tables["tasks"], tables["nodes"], tables["instances"]
    counts = tasks["instances"].to_numpy()
    task = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    placed = np.flatnonzero(instances["node_id"].is_not_null().to_numpy()).astype(np.uint32)
    machines = pl.Enum(nodes["node_id"])
    for make in (_sensors, _machines):
        for i, begin in enumerate(range(0, len(placed), CHUNK_ROWS)):
            rows = placed[begin : begin + CHUNK_ROWS]
            chunk = instances.select(pl.all().gather(as_rows(rows)))
            node = chunk["node_id"].cast(machines).to_physical()
            of_task = tasks.select("cpu_milli", "memory_mib", "gpu_count", "gpu_milli").select(
                pl.all().gather(as_rows(task[rows]))
            )
            of_node = nodes.select(pl.all().gather(node))
            yield make(chunk, of_task, of_node, task[rows], node.to_numpy(), seed, i)


def _sensors(
    chunk: pl.DataFrame,
    request: pl.DataFrame,
    machine: pl.DataFrame,
    task: NDArray[np.uint32],
    node: NDArray[np.uint32],
    seed: int,
    number: int,
) -> pl.DataFrame:
    """Return what each instance used, on average over its life."""
    rng = stream(seed, "usage", "sensors", number)
    rows = chunk.height

    def drawn(name: str, ratio: _Ratio) -> Floats:
        of_task = _per_key(seed, name, task)
        return ratio.at(_IN_TASK * of_task + np.sqrt(1.0 - _IN_TASK**2) * rng.standard_normal(rows))

    gpus = machine["gpu_count"].to_numpy()
    on_gpu = (request["gpu_count"] > 0).to_numpy()
    idle = ~on_gpu | (rng.random(rows) < _IDLE_GPU)
    gpu_percent = (request["gpu_count"] * request["gpu_milli"]).to_numpy() / _MILLI_PER_PERCENT
    cpu = drawn("cpu", _CPU_OF_REQUEST) * request["cpu_milli"].to_numpy() / _MILLI_PER_PERCENT
    memory = drawn("memory", _MEMORY_OF_REQUEST) * request["memory_mib"].to_numpy() / MIB_PER_GIB
    capacity = machine["memory_mib"].to_numpy() / MIB_PER_GIB
    gpu_memory = np.where(on_gpu, np.minimum(drawn("gpu memory", _GPU_MEMORY_GIB), _MOST_GPU_MEMORY_GIB), 0.0)
    device = np.where(on_gpu, (rng.random(rows) * gpus).astype(np.int64), 8)
    names = pl.Series([*(f"/dev/nvidia{i}" for i in range(8)), None], dtype=pl.String)
    peak = np.maximum(rng.standard_normal(rows), -1.0)
    frame = chunk.select("job_id", "role", "instance_id", "node_id").with_columns(
        pl.lit("instance").alias("scope"),
        names.gather(as_rows(device)).alias("device"),
        _column("cpu_milli", np.minimum(cpu, machine["cpu_milli"].to_numpy() / _MILLI_PER_PERCENT), _MILLI_PER_PERCENT),
        _column(
            "gpu_milli",
            np.where(idle, 0.0, np.minimum(drawn("gpu", _GPU_OF_REQUEST) * gpu_percent, 100.0 * gpus)),
            _MILLI_PER_PERCENT,
        ),
        _column("memory_mib", np.minimum(memory, capacity), MIB_PER_GIB),
        _column("memory_max_mib", np.minimum(memory * np.maximum(_PEAK_MEMORY.at(peak), 1.0), capacity), MIB_PER_GIB),
        _column("gpu_memory_mib", gpu_memory, MIB_PER_GIB),
        _column("gpu_memory_max_mib", np.minimum(1.4 * gpu_memory, _MOST_GPU_MEMORY_GIB), MIB_PER_GIB),
        _column("network_receive_bytes", drawn("read", _READ_BYTES)),
        _column("network_send_bytes", drawn("write", _WRITTEN_BYTES)),
        _column("network_receive_count", drawn("reads", _READS)),
        _column("network_send_count", drawn("writes", _WRITES)),
    )
    return conform(USAGE, frame.lazy()).collect()


def _machines(
    chunk: pl.DataFrame,
    request: pl.DataFrame,
    machine: pl.DataFrame,
    task: NDArray[np.uint32],
    node: NDArray[np.uint32],
    seed: int,
    number: int,
) -> pl.DataFrame:
    """Return how each instance's machine stood while it ran; machines with more GPUs are busier (NSDI'22 §4.1)."""
    rng = stream(seed, "usage", "machines", number)
    rows = chunk.height
    gpus = machine["gpu_count"].to_numpy()
    busy = 0.7 * _per_key(seed, "machine", node) + 0.7 * rng.standard_normal(rows) + 0.4 * (gpus > 2)
    user = _on_grid(np.minimum(14.0 * np.exp(0.6 * busy), 85.0))
    kernel = _on_grid(np.minimum(3.0 * np.exp(0.5 * busy + 0.3 * rng.standard_normal(rows)), 12.0))
    waiting = _on_grid(np.minimum(0.03 * np.exp(1.2 * rng.standard_normal(rows)), 3.0))
    total = user + kernel + waiting
    frame = chunk.select("instance_id", "node_id", "start_time", "end_time").with_columns(
        pl.lit("node").alias("scope"),
        pl.Series("cpu_user_percent", user),
        pl.Series("cpu_kernel_percent", kernel),
        pl.Series("cpu_iowait_percent", waiting),
        pl.Series("cpu_percent", total),
        _column("load_1min", total / 100.0 * machine["cpu_milli"].to_numpy() / CORE_MILLI),
        _column("gpu_percent", np.where(gpus > 0, np.minimum(20.0 * np.exp(0.8 * busy), 100.0), 0.0)),
        _column("network_receive_bytes", 6e7 * np.exp(0.9 * busy + 0.8 * rng.standard_normal(rows))),
        _column("workers", 1.0 + np.maximum(gpus, 1) * np.exp(0.3 * busy)),
    )
    return conform(USAGE, frame.lazy()).collect()


def _per_key(seed: int, name: str, key: NDArray[np.uint32]) -> Floats:
    """Return one standard normal number per key, the same in every chunk."""
    low, high = int(key.min()), int(key.max())
    rng = stream(seed, "usage", name)
    bits = rng.bit_generator
    assert isinstance(bits, np.random.PCG64)
    bits.advance(low)  # one step per uniform number: the chunk's keys find theirs without drawing those before
    return normal_quantile(rng.random(high - low + 1))[key - low]


def _on_grid(values: Floats) -> Floats:
    return np.rint(values * _GRID) / _GRID


def _column(name: str, values: Floats, per_unit: float = 1.0) -> pl.Series:
    """Return a column of values rounded to the grid, then brought to the canonical unit."""
    return pl.Series(name, _on_grid(values) * per_unit)
