"""What sharing GPUs is worth: how many a trace needs for the same waits, by how they are shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gputwin.core.percentiles import percentile
from gputwin.core.units import format_duration, percent
from gputwin.optimization.capacity.scale import Counts, mix_of, with_counts
from gputwin.optimization.capacity.target import Target, parse_target
from gputwin.simulation.batch import Batch
from gputwin.simulation.cluster import Cluster, cluster_for
from gputwin.simulation.run import run
from gputwin.simulation.scenario import Scenario, scenario_of
from gputwin.simulation.simulate import workload_of_scenario
from gputwin.simulation.waits import job_times
from gputwin.simulation.workload import Workload
from gputwin.traces.dataset import Trace
from gputwin.traces.locate import open_trace

WAYS: dict[str, dict[str, Any]] = {
    "exclusive": {"sharing": "exclusive"},
    "fractions, no interference": {"sharing": "fraction"},
    "fractions, interference": {"sharing": "fraction", "interference": "built-in"},
    "fractions, interference, compatible": {
        "sharing": "fraction",
        "interference": "built-in",
        "placement": "compatible",
    },
    "time slices, up to 4": {"sharing": "time-slice:most=4"},
}
"""Ways of sharing that are compared; the first is what others are compared with."""
_RESOLUTION = 0.01
_MOST_STEPS = 24


@dataclass(frozen=True)
class Needed:
    """The smallest cluster tried on which a way of sharing meets the target, and what jobs live through there."""

    way: str
    nodes: int
    gpus: int
    against: float
    """GPUs as a multiple of those of the first way."""
    p95_wait_seconds: float
    mean_wait_seconds: float
    mean_completion_seconds: float
    slowed: float
    """Time lost to neighbours, as a share of the service."""


@dataclass(frozen=True)
class Comparison:
    """All ways on one trace."""

    trace: str
    jobs: int
    target: str
    ways: tuple[Needed, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        return {**asdict(self), "conclusion": self.conclusion()}

    def conclusion(self) -> str:
        """Return what the table says, in words."""
        first = self.ways[0]
        said = []
        for way in self.ways[1:]:
            change = 1 - way.against
            less = f"{percent(abs(change))} {'fewer' if change >= 0 else 'more'} GPUs"
            slower = way.mean_completion_seconds / max(first.mean_completion_seconds, 1e-9) - 1
            speed = (
                "at the same completion time"
                if abs(slower) < 0.005
                else f"{percent(abs(slower))} {'later' if slower > 0 else 'sooner'}"
            )
            said.append(f"{way.way}: {less}, jobs end {speed} on average")
        return f"For {self.target}, against GPUs that are not shared ({first.gpus:,}): " + "; ".join(said) + "."


def compare_sharing(
    trace: str,
    cluster: str = "pai2020",
    target: str = "p95_wait=10m",
    ways: Mapping[str, Mapping[str, Any]] = WAYS,
    *,
    seed: int = 0,
    interference: str = "",
    batch: Batch | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Comparison:
    """Return the GPUs needed for the target under each way of sharing, on nodes mixed as in the cluster.

    `interference` is a table of pairs to use instead of the built-in one.
    """
    opened, base = open_trace(trace), cluster_for(open_trace(trace), cluster)
    wanted = parse_target(target)
    scenarios = {
        name: scenario_of(
            {
                "trace": trace,
                "seed": seed,
                **fields,
                **({"interference": interference} if interference and "interference" in fields else {}),
            }
        ).check()
        for name, fields in ways.items()
    }
    calls = [(opened, base, scenario, wanted) for scenario in scenarios.values()]
    if batch is None:
        found = []
        for name, call in zip(scenarios, calls, strict=True):
            progress(f"GPUs needed: {name}")
            found.append(needed(*call))
    else:
        shared = [(batch.share(opened), base, scenario, wanted) for scenario in scenarios.values()]
        found = batch.map(needed, shared, lambda done, of: progress(f"ways of sharing: {done} of {of}"))
    first = found[0][1]
    table = tuple(
        Needed(name, sum(counts), gpus, gpus / first, *figures)
        for name, (counts, gpus, figures) in zip(scenarios, found, strict=True)
    )
    return Comparison(trace, int(opened.tasks["job_id"].n_unique()), str(wanted), table)


def needed(
    trace: Trace, cluster: Cluster, scenario: Scenario, target: Target
) -> tuple[Counts, int, tuple[float, float, float, float]]:
    """Return the least node counts that meet the target, by bisection to 1 %, their GPUs, and the figures there.

    Figures: p95 and mean wait, mean completion time (s), and time lost to neighbours as a share of the service.
    """
    workload = workload_of_scenario(scenario, trace, cluster)
    least = len(cluster.groups)
    low, high = least, max(cluster.node_count, least)
    known: dict[int, tuple[bool, tuple[float, float, float, float]]] = {}

    def look(nodes: int) -> bool:
        if nodes not in known:
            known[nodes] = _simulated(workload, with_counts(cluster, mix_of(cluster, nodes)), scenario, target)
        return known[nodes][0]

    while not look(high) and high < 64 * cluster.node_count:
        low, high = high, 2 * high
    for _ in range(_MOST_STEPS):
        if high - low <= max(int(high * _RESOLUTION), 1):
            break
        middle = (low + high) // 2
        low, high = (low, middle) if look(middle) else (middle, high)
    counts = mix_of(cluster, high)
    return counts, with_counts(cluster, counts).gpu_count, known[high][1]


def _simulated(
    workload: Workload, cluster: Cluster, scenario: Scenario, target: Target
) -> tuple[bool, tuple[float, float, float, float]]:
    outcome = run(workload, cluster, scenario.scheduler, seed=scenario.seed, changes=scenario.changes)
    times, jobs = job_times(outcome), outcome.world.queue.jobs
    asked = times.wait[times.has_wait] if target.of == "wait" else times.completion[~workload.was_running]
    # Who never starts waits for ever.
    asked, waits = np.nan_to_num(asked, nan=np.inf), times.wait[np.isfinite(times.wait)]
    ended = np.isfinite(times.completion)
    lost = 0.0
    if outcome.world.settings["changes"][0]:
        slow = outcome.world.lives.factors["slow_neighbours"][ended].sum()
        lost = float(slow / max(jobs["duration"][ended].sum(), 1e-9))
    figures = percentile(waits, 0.95), float(waits.mean()), float(times.completion[ended].mean()), lost
    return target.met(target.value(asked)), figures


def words(needed: Needed) -> list[str]:
    """Return a row of the table."""
    return [
        needed.way,
        f"{needed.gpus:,}",
        f"{needed.against:.2f}",
        format_duration(needed.p95_wait_seconds),
        format_duration(needed.mean_wait_seconds),
        format_duration(needed.mean_completion_seconds),
        percent(needed.slowed, 1),
    ]
