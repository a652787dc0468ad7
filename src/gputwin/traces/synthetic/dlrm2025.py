"""A synthetic DLRM 2025 trace: instances of 156 recommendation services whose CPU and GPU parts run on separate nodes.

After Yang et al., "GPU-Disaggregated Serving for Deep Learning Recommendation Models at Scale", NSDI'25, and the 23,871
rows of its trace: counts, quantiles and the share of rows cut off at either end of it. Instances come in roll-outs of
one service. The record is 31 days long however many instances there are: services do not stop, so a smaller trace is
one of a smaller fleet. What was there before the record began, and what had not ended when it ended, has gaps. The trace
says nothing of nodes: the fleet here is ours, sized so that about two thirds of it are taken, as steadily as in the trace.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

from gputwin.core.rng import stream
from gputwin.core.units import CORE_MILLI, MIB_PER_GIB, WHOLE_GPU_MILLI
from gputwin.traces.schema import STATUS, TASKS, Status, conform
from gputwin.traces.synthetic.arrivals import Rhythm, Sittings, Window, arrivals
from gputwin.traces.synthetic.columns import as_rows, known
from gputwin.traces.synthetic.distributions import KNOTS, Floats, Ints, Quantiles, Shares, pick, spread
from gputwin.traces.synthetic.fleet import NodeType, node_count, node_table, numbered
from gputwin.traces.synthetic.population import lognormal_shares
from gputwin.traces.synthetic.recipe import RECIPES, Load, Published, Recipe, Reference

SPAN = 2_677_541.0
ROWS = 23_871

FLEET = (
    NodeType(2_600, 192, 1_024, rdma_percent=100, disk_gib=3_000),
    NodeType(620, 128, 1_024, 8, rdma_percent=200, disk_gib=4_000),
)
# fmt: off
# vCPU, GiB, percent of an RNIC, disk GiB, disk limit GiB, instances per node (0: no limit), rows.
CPU_PARTS = (
    (96, 480, 1, 255, 300, 0, 2675), (64, 320, 1, 255, 300, 0, 2613), (64, 320, 100, 255, 300, 2, 1758),
    (48, 200, 25, 680, 800, 2, 1292), (64, 320, 1, 680, 800, 0, 691), (48, 240, 25, 680, 800, 0, 636),
    (48, 240, 1, 255, 300, 0, 598), (48, 240, 1, 255, 300, 4, 491), (96, 480, 1, 240, 300, 0, 445),
    (64, 320, 1, 544, 640, 0, 434), (192, 960, 51, 340, 400, 0, 382), (64, 320, 1, 240, 300, 0, 348),
    (96, 480, 1, 340, 400, 0, 289), (96, 480, 51, 320, 400, 0, 258), (48, 240, 1, 408, 480, 0, 228),
    (64, 320, 1, 340, 400, 0, 177), (96, 480, 51, 340, 400, 0, 176), (48, 240, 1, 340, 400, 2, 160),
    (48, 300, 1, 384, 480, 0, 157), (48, 300, 1, 408, 480, 0, 155), (48, 240, 1, 480, 600, 4, 152),
    (48, 240, 1, 425, 500, 0, 147), (96, 480, 1, 425, 500, 0, 135), (96, 480, 1, 320, 400, 0, 129),
    (64, 320, 1, 512, 640, 0, 121), (64, 320, 1, 425, 500, 0, 117), (64, 320, 1, 408, 480, 0, 101),
)
GPU_PARTS = (
    (8, 40, 25, 85, 100, 2, 1192), (8, 40, 25, 85, 100, 4, 980), (8, 40, 25, 170, 200, 2, 764),
    (12, 120, 25, 680, 800, 8, 552), (8, 40, 25, 80, 100, 4, 471), (8, 40, 25, 100, 100, 4, 379),
    (8, 40, 50, 85, 100, 4, 356), (8, 40, 25, 170, 200, 10, 346), (8, 32, 25, 85, 100, 2, 321),
    (8, 16, 25, 170, 200, 2, 276), (8, 40, 25, 255, 300, 4, 254), (8, 16, 75, 255, 300, 4, 175),
    (8, 40, 25, 160, 200, 2, 128), (8, 40, 25, 200, 200, 2, 124), (12, 120, 25, 640, 800, 8, 109),
    (2, 16, 25, 255, 300, 2, 94), (8, 32, 25, 170, 200, 4, 89), (16, 80, 25, 100, 100, 4, 88),
    (8, 40, 25, 170, 200, 16, 64), (8, 40, 50, 170, 200, 2, 59), (16, 80, 25, 80, 100, 4, 59),
    (8, 40, 25, 85, 100, 0, 43),
)
CPU_RUNTIME = Quantiles(KNOTS, (1, 54, 116, 123, 129, 950, 2_646, 4_455, 6_780, 9_664, 19_984, 48_870, 76_684, 97_919,
                                297_192, 645_798, 1_125_189, 1_406_495, 1_674_694, 2_217_634, 2_462_429))
GPU_RUNTIME = Quantiles(KNOTS, (1, 2, 4, 6, 30, 652, 949, 1_071, 2_684, 3_752, 7_412, 14_948, 28_156, 67_851, 237_952,
                                518_228, 902_511, 1_046_257, 1_442_438, 2_169_212, 2_308_419))
CPU_WAIT = Quantiles.at_most(
    238_116, (0, .7023), (1, .7938), (5, .8011), (12, .812), (20, .8304), (30, .8645), (50, .8982), (60, .9272),
    (100, .943), (150, .9649), (200, .9801), (500, .9894), (1_000, .9938), (2_600, .9985), (10_000, .9994),
    (100_000, .9999))
GPU_WAIT = Quantiles.at_most(
    237_858, (0, .5201), (1, .5799), (8, .5848), (12, .6071), (20, .6416), (30, .7136), (40, .7234), (50, .8006),
    (60, .8736), (100, .8914), (150, .9233), (200, .9371), (370, .95), (1_000, .9646), (2_600, .9798), (5_000, .9843),
    (10_000, .992), (12_000, .9965), (40_000, .9972), (100_000, .9993))
RUNTIME = Quantiles(KNOTS, (0, 6, 9, 111, 127, 816, 1_151, 2_739, 5_523, 8_284, 14_913, 40_350, 67_769, 92_309, 286_724,
                            611_454, 1_046_587, 1_378_585, 1_625_238, 2_218_655, 2_462_429))
WAIT = Quantiles.at_most(
    238_116, (0, .6555), (1, .7388), (8, .7455), (12, .7593), (20, .7819), (30, .8257), (40, .8303), (50, .8731),
    (60, .9134), (100, .9297), (150, .9542), (200, .9691), (500, .9803), (1_000, .9863), (2_600, .9937), (5_000, .9952),
    (10_000, .9975), (12_000, .9987), (40_000, .999), (100_000, .9998))
CPU_MILLI = Shares(((2_000, 103), (8_000, 6_361), (12_000, 737), (16_000, 184), (24_000, 19), (48_000, 4_338),
                    (64_000, 7_211), (72_000, 1), (96_000, 4_423), (192_000, 494)))
_HOURS = (475, 589, 479, 474, 460, 459, 396, 382, 484, 400, 1035, 1287, 727, 1001, 1352, 1106, 755, 1024, 1022, 643,
          528, 555, 431, 527)
# fmt: on
_SERVICES, _SERVICE_SPREAD = 156, 1.61
_GPU_PART_SHARE = 7_386 / ROWS
# By part, CPU first. Of all rows: created before the record began; of those: ended in it. Of the others: ended in it.
_BEFORE = np.array([4_157 / 16_485, 3_123 / 7_386])
_BEFORE_AND_ENDED = np.array([1_757 / 4_157, 846 / 3_123])
_CREATED_AND_ENDED = (9_172 / 12_328, 3_218 / 4_263)
_ROLL_OUTS = Sittings(fresh=0.2, gap_seconds=60.0, lifetime=0.9, lifetime_spread=0.3)
_NO_LIMIT = 0
_OUTLIVES = 10  # lives longer than the record are not known; they last to its end from wherever they begin
_STATUSES = (Status.UNKNOWN, Status.RUNNING, Status.WAITING)


def make(jobs: int, seed: int) -> dict[str, pl.DataFrame]:
    """Return `tasks` and `nodes` of `jobs` instances; the number of nodes is in proportion to them."""
    rng = stream(seed, "dlrm2025")
    share = np.diff(lognormal_shares(_SERVICES, _SERVICE_SPREAD), prepend=0.0)
    sizes = np.diff(np.rint(np.cumsum(share) * jobs), prepend=0.0).astype(np.int64)
    window = Window(0.0, SPAN)
    rhythm = Rhythm(tuple(map(float, _HOURS)), gusts=0.4)
    submit, order = arrivals(rng, sizes, sizes.astype(np.float64), _ROLL_OUTS, rhythm, window)
    service = np.repeat(np.arange(len(sizes)), sizes)[order]
    on_gpu = rng.random(jobs) < _GPU_PART_SHARE
    cpu_part, gpu_part = _parts(rng, CPU_PARTS, share), _parts(rng, GPU_PARTS, share)
    part = np.where(on_gpu, len(CPU_PARTS) + gpu_part[service], cpu_part[service])
    frame = _part_table().select(pl.all().gather(as_rows(part))).hstack(_lives(rng, submit, on_gpu))
    named = frame.with_columns(
        _names("instance_", jobs).alias("job_id"),
        _names("app_", _SERVICES).gather(as_rows(service)).alias("application"),
        pl.lit("LS").alias("qos"),
    )
    tasks = conform(TASKS, named.lazy()).sort("submit_time", "job_id", "role", nulls_last=True, maintain_order=True)
    fleet = tuple(replace(t, nodes=math.ceil(t.nodes * jobs / ROWS)) for t in FLEET)
    return {"tasks": tasks.collect(), "nodes": node_table(fleet, numbered("node", node_count(fleet)))}


def _lives(rng: np.random.Generator, submit: Ints, on_gpu: NDArray[np.bool_]) -> pl.DataFrame:
    """Return when each instance came, began and ended; what came before the record or had not ended in it has gaps."""
    rows = len(submit)
    part = on_gpu.astype(np.int64)
    before = rng.random(rows) < _BEFORE[part]
    z, waited = rng.standard_normal(rows), rng.standard_normal(rows)
    start = submit + np.where(on_gpu, GPU_WAIT.at(waited), CPU_WAIT.at(waited))
    cpu_life, gpu_life = _lifetimes()
    runtime = np.maximum(np.where(on_gpu, gpu_life.at(z), cpu_life.at(z)), 1.0)
    stays = rng.random(rows) >= _BEFORE_AND_ENDED[part]
    alive = np.where(before, stays, start + runtime > SPAN)
    begun = ~before & (start <= SPAN)
    return pl.DataFrame(
        {
            "status": pl.Series(_STATUSES, dtype=STATUS).gather(as_rows(np.where(before | begun, alive * 1, 2))),
            "submit_time": known(submit, ~before),
            "start_time": known(start, begun),
            "end_time": known(np.where(before, submit, start + runtime), ~alive),
            "duration_seconds": known(runtime, ~alive & ~before),
            "is_running": alive & (before | begun),
            "was_running": before,
        }
    )


@cache
def _lifetimes() -> tuple[Quantiles, Quantiles]:
    """Return how long instances created in the record live, of CPU and of GPU parts."""
    cpu, gpu = _CREATED_AND_ENDED
    return _lifetime(CPU_RUNTIME, cpu), _lifetime(GPU_RUNTIME, gpu)


def _lifetime(ended: Quantiles, share: float) -> Quantiles:
    """Return the distribution of lives of which the `share` that ended in the record has the distribution `ended`.

    An instance that lives t s ends in the record if it is created in all but its last t s, so each life seen to end
    stands for 1 / (1 - t / SPAN). The rest outlives the record.
    """
    p = np.array(KNOTS)
    steps = np.linspace(0.0, 1.0, 4_001)
    seen = ended.quantile((steps[1:] + steps[:-1]) / 2)
    stand_for = np.concatenate([[0.0], np.cumsum(np.diff(steps) / (1.0 - seen / SPAN))])
    until = share * np.interp(p, steps, stand_for)
    return Quantiles((*until.tolist(), 1.0), (*ended.values, _OUTLIVES * SPAN))


def _parts(rng: np.random.Generator, parts: tuple[tuple[int, ...], ...], share: Floats) -> Ints:
    """Return the request that each service makes for one of its parts, as a row of `parts`."""
    counts = np.cumsum([part[-1] for part in parts])
    return pick(counts / counts[-1], spread(rng.standard_normal(len(share)), share))


def _part_table() -> pl.DataFrame:
    """Return the request columns of every part, those of CPU parts first."""
    names = ("cpu", "memory", "rdma_percent", "disk", "disk_limit", "per_node", "rows")
    parts = pl.DataFrame([*CPU_PARTS, *GPU_PARTS], schema=dict.fromkeys(names, pl.Int64), orient="row")
    on_gpu = pl.int_range(pl.len()) >= len(CPU_PARTS)
    return parts.select(
        pl.when(on_gpu).then(pl.lit("HN")).otherwise(pl.lit("CN")).alias("role"),
        (pl.col("cpu") * CORE_MILLI).alias("cpu_milli"),
        (pl.col("cpu") * CORE_MILLI).alias("cpu_limit_milli"),
        (pl.col("memory") * MIB_PER_GIB).alias("memory_mib"),
        (pl.col("memory") * MIB_PER_GIB).alias("memory_limit_mib"),
        on_gpu.cast(pl.Int32).alias("gpu_count"),
        (on_gpu.cast(pl.Int32) * WHOLE_GPU_MILLI).alias("gpu_milli"),
        (on_gpu.cast(pl.Int32) * WHOLE_GPU_MILLI).alias("gpu_limit_milli"),
        (pl.col("disk") * MIB_PER_GIB).alias("disk_mib"),
        (pl.col("disk_limit") * MIB_PER_GIB).alias("disk_limit_mib"),
        "rdma_percent",
        pl.col("rdma_percent").alias("rdma_limit_percent"),
        pl.when(pl.col("per_node") != _NO_LIMIT).then("per_node").alias("max_per_node"),
    )


def _names(prefix: str, rows: int) -> pl.Series:
    return pl.select(pl.format(prefix + "{}", pl.int_range(rows))).to_series()


_ROWS = "disaggregated_DLRM_trace"
RECIPE = RECIPES.add(
    Recipe(
        name="dlrm2025",
        title="Alibaba DLRM 2025: recommendation services with CPU and GPU parts on separate nodes",
        span=lambda jobs: SPAN,
        make=make,
        load=Load(0.5, 0.8, f"{_ROWS}: 3,076 to 3,367 GPUs by hour, of 4,960 of ours"),
        references=(
            Reference("task runtime", RUNTIME, f"{_ROWS}, 12,390 complete rows"),
            Reference("wait", WAIT, f"{_ROWS}, 16,591 rows"),
            Reference("CPU per instance", CPU_MILLI, _ROWS),
            Reference("arrival hour", Shares(tuple((float(h), float(n)) for h, n in enumerate(_HOURS))), _ROWS),
        ),
        published=(
            Published("share of GPU tasks", _GPU_PART_SHARE, _ROWS),
            Published("mean wait", 187.9, _ROWS),
            Published("share of waits of zero", 0.655, _ROWS),
            Published("median task runtime", 8_279.0, _ROWS),
            Published("mean task runtime", 102_490.0, _ROWS),
            Published("share of tasks without end", 8_878 / 23_871, _ROWS),
        ),
    )
)
