"""A synthetic Microsoft Philly trace: deep-learning training on 2,490 whole GPUs, shared by virtual clusters.

After Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads", USENIX ATC'19. Counts
and quantiles are those of the 82,247 jobs by virtual cluster (Sep–Dec 2017); waits and outcomes are those of the
released trace in the five-cluster table of Hu et al., NSDI'24 (Acme). The machine list has 552 machines with 2 or 8
GPUs and does not give their CPUs or memory.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from gputwin.core.rng import stream
from gputwin.core.units import DAY, WHOLE_GPU_MILLI
from gputwin.traces.reader import Clock
from gputwin.traces.schema import STATUS, TASKS, Status, conform
from gputwin.traces.synthetic.arrivals import Rhythm, Sittings, Window, arrivals
from gputwin.traces.synthetic.columns import as_rows
from gputwin.traces.synthetic.distributions import (
    KNOTS,
    Floats,
    Ints,
    Quantiles,
    Shares,
    normal_quantile,
    pick,
    spread,
    spread_within,
)
from gputwin.traces.synthetic.fleet import NodeType, gpu_total, node_count, node_table, numbered
from gputwin.traces.synthetic.offered import runtimes_for_work
from gputwin.traces.synthetic.population import Recurrence, lognormal_shares
from gputwin.traces.synthetic.recipe import RECIPES, Load, Published, Recipe, Reference, utc_offset

ZONE = "EST"
JOBS_PER_SECOND = 82_247 / (109 * DAY)
_START = 4 * DAY + 5 * 3600  # a Monday, 00:00 in the zone
_GPUS_PER_NODE = 8
LOAD = 0.15  # work that arrives per GPU and second: what the 82,247 jobs show, on the machines of the list

FLEET = (NodeType(321, None, None, 2, gpu_memory_gib=12), NodeType(231, None, None, 8, gpu_memory_gib=24))

# fmt: off
RUNTIME = Quantiles(KNOTS, (1, 17, 25, 48, 61, 75, 115, 209, 599, 1_144, 1_821, 2_549, 2_932, 4_244, 11_265, 43_646,
                            147_809, 254_758, 430_369, 1_186_277, 4_628_226))
# Median and mean are Acme's (189 s, 3,761 s): log-normal in the body, a little heavier in the tail.
WAIT = Quantiles((0, 0.1, 0.5, 0.9, 0.99, 0.999, 1), (0, 8, 189, 4_800, 64_000, 430_000, 1_200_000))
GPUS = Shares(((1, 76_627), (2, 1_818), (4, 1_870), (8, 1_643), (16, 206), (32, 74), (64, 6), (128, 3)))
# Where the logarithm of run times lies by GPUs, on the normal scale of all jobs: centre and spread.
_DURATION_BY_GPUS = {1: (0.0, 1.0), 2: (-0.5, 2.0), 4: (1.2, 1.4), 8: (1.4, 1.4), 16: (1.6, 1.2), 32: (1.2, 0.8),
                     64: (0.2, 0.8), 128: (0.2, 0.8)}
TENANTS = (41_226, 16_091, 9_953, 7_423, 1_934, 1_511, 1_435, 1_137, 723, 422, 374)
_HOURS = (4367, 3374, 3835, 3780, 2400, 3950, 5732, 7159, 3802, 3447, 3510, 2979, 2567, 2415, 2185, 2224, 3021, 2289,
          2744, 2496, 3483, 3142, 3885, 3461)
_WEEKDAYS = (10_136, 12_528, 13_370, 15_114, 16_954, 7_157, 6_988)
# fmt: on
_USERS_PER_TENANT, _USER_SPREAD = 29, 1.6  # ATC'19 speaks of hundreds of users; how many per cluster is ours
_STATUSES = (Status.COMPLETED, Status.CANCELLED, Status.FAILED)
_STATUS_SHARES = (0.604, 0.09, 0.306)
_RETRIES = 0.8
_SITTINGS = Sittings(fresh=0.3, gap_seconds=120.0, lifetime=0.1)
_GROUPS = Recurrence(1.2, 0.01, 200)
_ALIKE = 0.9


def make(jobs: int, seed: int) -> dict[str, pl.DataFrame]:
    """Return `tasks` and `nodes` of `jobs` jobs."""
    rng = stream(seed, "philly")
    sizes = _GROUPS.sizes(rng, jobs)
    weight = sizes.astype(np.float64)
    gpus = GPUS.at(spread(rng.standard_normal(len(sizes)), weight)).astype(np.int64)
    duration = _durations(rng, gpus, weight)
    tenant, user = _who(spread(0.4 * duration + rng.standard_normal(len(sizes)), weight))
    window = Window(_START, jobs / JOBS_PER_SECOND, utc_offset(ZONE))
    rhythm = Rhythm(tuple(map(float, _HOURS)), tuple(map(float, _WEEKDAYS)), gusts=0.5)
    rank = _ALIKE * np.repeat(duration, sizes) + np.sqrt(1 - _ALIKE**2) * rng.standard_normal(jobs)
    each = np.repeat(gpus, sizes).astype(np.float64)
    runtime = runtimes_for_work(RUNTIME, rank, each, LOAD * gpu_total(FLEET) * window.span)
    work = np.add.reduceat(each * runtime, np.cumsum(sizes) - sizes)
    submit, order = arrivals(rng, sizes, work, _SITTINGS, rhythm, window)
    group, runtime = np.repeat(np.arange(len(sizes)), sizes)[order], runtime[order]
    start = submit + WAIT.at(rng.standard_normal(jobs))
    status = pick(np.cumsum(_STATUS_SHARES), rng.random(jobs))
    retries = np.where(status == 2, rng.poisson(_RETRIES, size=jobs), 0)
    gang = np.maximum(gpus // _GPUS_PER_NODE, 1)
    of_group = pl.DataFrame(
        {
            "tenant": pl.Series([f"vc-{i:02d}" for i in range(len(TENANTS))]).gather(as_rows(tenant)),
            "user": numbered("user", len(TENANTS) * _USERS_PER_TENANT).gather(as_rows(user)),
            "instances": gang,
            "gpu_count": gpus // gang,
        }
    )
    frame = of_group.select(pl.all().gather(as_rows(group))).with_columns(
        numbered("job", jobs).alias("job_id"),
        pl.Series(_STATUSES, dtype=STATUS).gather(as_rows(status)).alias("status"),
        pl.Series("submit_time", submit, dtype=pl.Float64),
        pl.Series("start_time", start),
        pl.Series("end_time", start + runtime),
        pl.Series("duration_seconds", runtime),
        pl.Series("attempts", 1 + retries),
        pl.lit(WHOLE_GPU_MILLI).alias("gpu_milli"),
    )
    return {
        "tasks": conform(TASKS, frame.lazy()).collect(),
        "nodes": node_table(FLEET, numbered("machine", node_count(FLEET))),
    }


def _durations(rng: np.random.Generator, gpus: Ints, weight: Floats) -> Floats:
    """Return how long the jobs of each group run, on the normal scale: jobs on 4 to 16 GPUs about ten times as long."""
    shift, spread_by = np.array([_DURATION_BY_GPUS[int(g)] for g in gpus]).reshape(-1, 2).T
    noise = normal_quantile(spread_within(rng.standard_normal(len(gpus)), weight, gpus))
    return normal_quantile(spread(shift + spread_by * noise, weight))


def _who(place: Floats) -> tuple[Ints, Ints]:
    """Return virtual cluster and user of each group; users belong to one virtual cluster."""
    cumulative = np.cumsum(TENANTS) / np.sum(TENANTS)
    tenant = pick(cumulative, place)
    low = np.concatenate([[0.0], cumulative])[tenant]
    within = (place - low) / (cumulative[tenant] - low)
    return tenant, tenant * _USERS_PER_TENANT + pick(lognormal_shares(_USERS_PER_TENANT, _USER_SPREAD), within)


_JOBS = "82,247 Philly jobs by virtual cluster"
_ACME = "Acme, NSDI'24, five-cluster table"
RECIPE = RECIPES.add(
    Recipe(
        name="philly",
        title="Microsoft Philly 2017: training on whole GPUs, in virtual clusters",
        span=lambda jobs: jobs / JOBS_PER_SECOND,
        make=make,
        load=Load(0.05, 0.28, f"{_JOBS}: 0.005 to 0.285 by week", LOAD),
        clock=Clock.WEEKDAY,
        zone=ZONE,
        references=(
            Reference("task runtime", RUNTIME, _JOBS),
            Reference("wait", WAIT, f"{_ACME} (median, mean), log-normal between"),
            Reference("GPU per task", Shares(tuple((WHOLE_GPU_MILLI * g, n) for g, n in GPUS.shares_by_value)), _JOBS),
            Reference("arrival hour", Shares(tuple((float(h), float(n)) for h, n in enumerate(_HOURS))), _JOBS),
            Reference("arrival weekday", Shares(tuple((float(d), float(n)) for d, n in enumerate(_WEEKDAYS))), _JOBS),
        ),
        published=(
            Published("median task runtime", 1_144.0, _JOBS),
            Published("mean task runtime", 13_135.9, _JOBS),
            Published("median wait", 189.0, _ACME),
            Published("mean wait", 3_760.6, _ACME),
            Published("mean GPU per task", 1_304.0, _JOBS),
            Published("share of tasks that failed", 0.305, _ACME),
        ),
    )
)
