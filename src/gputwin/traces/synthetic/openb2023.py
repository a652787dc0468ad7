"""A synthetic openb trace: pods of a GPU-sharing Kubernetes cluster of 6,212 GPUs on 1,523 nodes.

Published with Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", USENIX ATC'23. Counts and quantiles are those of its node list and of its default pod list (8,152 pods), which
names no users, groups or GPU models. Pods that share a request come in waves, as roll-outs do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from gputwin.core.rng import stream
from gputwin.core.units import DAY
from gputwin.traces.schema import STATUS, TASKS, Status, conform
from gputwin.traces.synthetic.arrivals import Rhythm, Sittings, Window, arrivals
from gputwin.traces.synthetic.columns import as_rows, known
from gputwin.traces.synthetic.distributions import KNOTS, Floats, Ints, Quantiles, Shares, even, pick, spread
from gputwin.traces.synthetic.fleet import NodeType, node_count, node_table, numbered
from gputwin.traces.synthetic.population import Recurrence
from gputwin.traces.synthetic.recipe import RECIPES, Load, Published, Recipe, Reference

JOBS_PER_SECOND = 8_120 / (34.3 * DAY)  # the pods of the last 35 days; a few older ones have lived for months

# fmt: off
FLEET = (
    NodeType(549, 96, 384, 8, "G2"), NodeType(387, 104, 512, 2, "T4"), NodeType(129, 32, 256),
    NodeType(107, 16, 120, 2, "P100"), NodeType(59, 96, 512), NodeType(39, 128, 768, 8, "G3"), NodeType(30, 96, 384),
    NodeType(28, 32, 128, 4, "V100M16"), NodeType(23, 32, 128), NodeType(22, 64, 512), NodeType(22, 64, 256, 2, "P100"),
    NodeType(21, 96, 768, 8, "V100M32"), NodeType(20, 104, 512), NodeType(19, 8, 32, 1, "V100M16"),
    NodeType(17, 96, 384, 4, "T4"), NodeType(10, 32, 64), NodeType(9, 48, 368, 4, "V100M32"), NodeType(8, 64, 256),
    NodeType(7, 64, 256, 8, "V100M16"), NodeType(4, 64, 128), NodeType(3, 8, 60, 1, "P100"), NodeType(3, 104, 768),
    NodeType(2, 8, 60, 2, "P100"), NodeType(2, 128, 1024, 1, "A10"), NodeType(1, 96, 768), NodeType(1, 104, 192),
    NodeType(1, 82, 336, 8, "V100M16"),
)
# Requests: milli-CPU, MiB, GPUs, milli of each GPU, pods. 64 of 151, which are 97 % of pods.
REQUESTS = (
    (3152, 5600, 1, 810, 1047), (11300, 49152, 1, 1000, 857), (11400, 48128, 1, 1000, 534), (3152, 5600, 1, 1000, 470),
    (11908, 47104, 1, 470, 388), (12500, 57344, 0, 0, 364), (8000, 30517, 1, 470, 360), (32000, 49152, 0, 0, 284),
    (18708, 64512, 1, 1000, 255), (11908, 47104, 1, 650, 237), (9810, 41560, 1, 1000, 195), (8000, 30517, 0, 0, 163),
    (15700, 58368, 1, 1000, 158), (12000, 24576, 1, 1000, 158), (11908, 47104, 1, 1000, 153), (15400, 51200, 0, 0, 120),
    (4000, 22888, 1, 320, 111), (16000, 32768, 1, 1000, 108), (8000, 16384, 1, 1000, 104), (4000, 24576, 1, 1000, 104),
    (12000, 16384, 1, 1000, 99), (16500, 51200, 0, 0, 95), (14200, 58368, 1, 1000, 93), (24200, 93184, 1, 1000, 84),
    (4000, 30517, 1, 230, 84), (4000, 15258, 1, 320, 78), (3152, 5600, 1, 590, 75), (8000, 30517, 1, 320, 72),
    (4152, 10600, 1, 550, 72), (11400, 77824, 1, 1000, 65), (8000, 32768, 1, 1000, 55), (4000, 15258, 1, 160, 53),
    (11900, 77824, 1, 1000, 51), (6000, 6144, 1, 460, 51), (4152, 10600, 1, 370, 45), (12000, 15360, 1, 1000, 44),
    (4000, 30517, 1, 320, 43), (8200, 33792, 1, 1000, 41), (4000, 31250, 1, 1000, 40), (15200, 80896, 1, 1000, 36),
    (16000, 65536, 1, 1000, 33), (4152, 10600, 1, 810, 31), (6000, 12288, 1, 460, 29), (16400, 125952, 1, 1000, 27),
    (4000, 22888, 1, 230, 26), (4000, 15258, 1, 220, 24), (1000, 2048, 1, 320, 22), (6000, 22888, 1, 160, 20),
    (8000, 30517, 1, 220, 19), (88000, 327680, 8, 1000, 18), (64200, 263168, 8, 1000, 18), (8000, 30517, 1, 230, 18),
    (6000, 18432, 1, 460, 18), (4000, 22888, 1, 480, 18), (11300, 37888, 1, 1000, 16), (1000, 6144, 1, 1000, 15),
    (8000, 30517, 1, 650, 12), (4000, 15258, 1, 230, 12), (11400, 57344, 0, 0, 11), (8000, 15625, 0, 0, 11),
    (7000, 30000, 1, 1000, 11), (4000, 22888, 1, 220, 11), (32200, 132096, 4, 1000, 9), (12000, 65536, 2, 1000, 16),
)
_HOURS = (512, 455, 362, 435, 425, 318, 290, 331, 242, 146, 222, 204, 152, 149, 136, 271, 301, 424, 549, 465, 352, 430,
          427, 537)
RUNTIME = Quantiles(
    KNOTS, (1, 23, 32, 50, 73, 146, 175, 210, 356, 616, 999, 1_671, 2_241, 3_203, 7_764, 18_064, 50_043, 114_348,
            940_731, 8_789_972, 12_537_496))
LATENCY_SENSITIVE_RUNTIME = Quantiles(
    KNOTS, (1, 37, 44, 57, 79, 212, 307, 419, 605, 896, 1_339, 2_050, 2_530, 3_456, 6_030, 12_836, 44_884, 374_115,
            3_084_192, 10_144_876, 12_537_496))
BEST_EFFORT_RUNTIME = Quantiles(
    KNOTS, (1, 14, 21, 38, 65, 134, 146, 152, 195, 241, 401, 943, 1_211, 2_212, 10_084, 20_153, 33_297, 55_746, 75_954,
            187_120, 400_000))
WAIT = Quantiles.at_most(
    14_330, (0, .282), (1, .4068), (2, .5409), (3, .6048), (5, .6405), (8, .6549), (31, .6635), (32, .6783), (33, .71),
    (34, .744), (35, .7807), (36, .817), (37, .8363), (40, .8442), (70, .8718), (106, .903), (150, .9253), (241, .9505),
    (490, .9802), (890, .9899), (1_677, .995), (4_338, .9989))
PENDING = Quantiles((0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1),
                    (1, 6, 22, 50, 94, 161, 340, 600, 2_075, 11_717))
# fmt: on
_QOS = ("BE", "LS", "Burstable", "Guaranteed")
_QOS_SHARES = (3_398, 4_647, 100, 7)
_FAILED = (0.55, 0.048, 0.41, 0.0)  # of those that were scheduled, per class
_SUCCEEDED = (0.0, 0.037, 0.4, 0.0)
_PENDING_SHARE = 897 / 8_152
_PHASES = (Status.RUNNING, Status.FAILED, Status.COMPLETED, Status.WAITING)
_SITTINGS = Sittings(fresh=0.25, gap_seconds=20.0, lifetime=0.3)
_WAVES = Recurrence(1.2, 0.02, 60)


def make(jobs: int, seed: int) -> dict[str, pl.DataFrame]:
    """Return `tasks` and `nodes` of `jobs` pods."""
    rng = stream(seed, "openb2023")
    sizes = _WAVES.sizes(rng, jobs)
    weight = sizes.astype(np.float64)
    shares = np.cumsum([r[-1] for r in REQUESTS])
    request = pick(shares / shares[-1], spread(rng.standard_normal(len(sizes)), weight))
    # Best-effort pods, the first class, ask for less.
    cpu = np.array([r[0] for r in REQUESTS])[request]
    class_shares = np.cumsum(_QOS_SHARES)
    qos = pick(class_shares / class_shares[-1], spread(np.log(cpu) + 0.5 * rng.standard_normal(len(sizes)), weight))
    window = Window(0.0, jobs / JOBS_PER_SECOND)
    runtime = _runtimes(rng, np.repeat(qos, sizes))
    gpus = np.array([r[2] * r[3] for r in REQUESTS], dtype=np.float64)[request]
    work = gpus * np.add.reduceat(runtime, np.cumsum(sizes) - sizes)
    submit, order = arrivals(rng, sizes, work, _SITTINGS, Rhythm(tuple(map(float, _HOURS)), gusts=0.4), window)
    wave = np.repeat(np.arange(len(sizes)), sizes)[order]
    asked = pl.DataFrame(
        [r[:-1] for r in REQUESTS], schema=["cpu_milli", "memory_mib", "gpu_count", "gpu_milli"], orient="row"
    )
    frame = asked.select(pl.all().gather(as_rows(request[wave]))).hstack(_lives(rng, submit, qos[wave], runtime[order]))
    named = frame.with_columns(numbered("pod", jobs).alias("job_id"))
    return {
        "tasks": conform(TASKS, named.lazy()).collect(),
        "nodes": node_table(FLEET, numbered("node", node_count(FLEET))),
    }


def _runtimes(rng: np.random.Generator, qos: Ints) -> Floats:
    """Return how long each pod runs once scheduled, in s. One pod in a thousand runs for months: none more, none less."""
    runtime = np.empty(len(qos))
    for rows, known_of in ((qos == 0, BEST_EFFORT_RUNTIME), (qos > 0, LATENCY_SENSITIVE_RUNTIME)):
        runtime[rows] = known_of.quantile(even(rng, int(rows.sum())))
    return runtime


def _lives(rng: np.random.Generator, submit: Ints, qos: Ints, runtime: Floats) -> pl.DataFrame:
    """Return each pod's class, phase and times; one that is pending was given up before it was scheduled."""
    rows = len(submit)
    fate = rng.random(rows)
    failed, succeeded = np.array(_FAILED)[qos], np.array(_SUCCEEDED)[qos]
    phase = np.where(fate < failed, 1, np.where(fate < failed + succeeded, 2, 0))
    phase[rng.random(rows) < _PENDING_SHARE] = 3
    scheduled = phase != 3
    start = submit + WAIT.at(rng.standard_normal(rows))
    given_up = submit + PENDING.at(rng.standard_normal(rows))
    return pl.DataFrame(
        {
            "qos": pl.Series(_QOS).gather(as_rows(qos)),
            "status": pl.Series(_PHASES, dtype=STATUS).gather(as_rows(phase)),
            "submit_time": submit.astype(np.float64),
            "start_time": known(start, scheduled),
            "end_time": np.where(scheduled, start + runtime, given_up),
            "duration_seconds": known(runtime, scheduled),
        }
    )


def _shares(amount: Callable[[tuple[int, ...]], float], *, on_gpu: bool = False) -> Shares:
    """Return how an amount of the requests is distributed over pods."""
    pods: dict[float, float] = {}
    for request in REQUESTS:
        if request[2] or not on_gpu:
            pods[amount(request)] = pods.get(amount(request), 0.0) + request[-1]
    return Shares(tuple(sorted(pods.items())))


_PODS = "openb_pod_list_default"
RECIPE = RECIPES.add(
    Recipe(
        name="openb2023",
        title="Alibaba openb 2023: pods of a GPU-sharing Kubernetes cluster",
        span=lambda jobs: jobs / JOBS_PER_SECOND,
        make=make,
        load=Load(0.0, 0.02, f"{_PODS}: 0.0002 to 0.007 by week"),
        references=(
            Reference("task runtime", RUNTIME, _PODS),
            Reference("wait", WAIT, _PODS),
            Reference("GPU per instance", _shares(lambda r: r[2] * r[3], on_gpu=True), _PODS),
            Reference("CPU per instance", _shares(lambda r: r[0]), _PODS),
            Reference("memory per instance", _shares(lambda r: r[1]), _PODS),
            Reference("arrival hour", Shares(tuple((float(h), float(n)) for h, n in enumerate(_HOURS))), _PODS),
        ),
        published=(
            Published("median task runtime", 616.0, _PODS),
            Published("mean task runtime", 28_949.5, _PODS),
            Published("median wait", 2.0, _PODS),
            Published("mean wait", 61.3, _PODS),
            Published("share of GPU tasks", 7_064 / 8_152, _PODS),
            Published("share of GPU tasks that share a GPU", 3_078 / 7_064, _PODS),
            Published("share of tasks that failed", 1_870 / 8_152, _PODS),
        ),
    )
)
