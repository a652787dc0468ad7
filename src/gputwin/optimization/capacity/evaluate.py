"""Simulated values of a target on clusters of other sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gputwin.core.percentiles import percentile
from gputwin.optimization.capacity.blocks import Draws, block_of, drawn, draws_of
from gputwin.optimization.capacity.scale import Counts, with_counts
from gputwin.optimization.capacity.target import Floats, Target
from gputwin.simulation.batch import Batch
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.run import Run, run
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.simulate import part_of, workload_of_scenario
from gputwin.simulation.waits import gpu_seconds, job_times
from gputwin.simulation.workload import Workload
from gputwin.traces.dataset import Trace

_GRID = 2048


@dataclass(frozen=True)
class Setting:
    """What stays the same while capacity is varied: jobs, node types, rules, target."""

    workload: Workload
    cluster: Cluster
    scenario: Scenario
    target: Target


def setting_of(trace: Trace, cluster: Cluster, scenario: Scenario, target: Target) -> Setting:
    """Return the setting of the scenario's jobs, taken from the trace, on nodes like the cluster's."""
    workload = workload_of_scenario(scenario, part_of(scenario, trace), cluster)
    return Setting(workload, cluster, scenario, target)


@dataclass(frozen=True)
class Point:
    """One capacity that was simulated."""

    counts: Counts
    nodes: int
    gpus: int
    value: float
    """s; the target's figure."""
    low: float
    high: float
    """s; its 90 % interval, the simulated days drawn with replacement."""
    utilisation: float
    never_run: int


class Evaluator:
    """Simulates capacities, each once."""

    def __init__(self, setting: Setting, batch: Batch, progress: Callable[[str], None] = lambda step: None) -> None:
        self.setting = setting
        self.batch = batch
        self._progress = progress
        self.points: dict[Counts, Point] = {}
        self._shared = batch.share(setting)
        self._drawn: dict[Counts, list[float]] = {}

    def __call__(self, wanted: Sequence[Counts]) -> list[Point]:
        """Return the points of these capacities, those not yet known simulated at the same time."""
        fresh = [c for c in dict.fromkeys(wanted) if c not in self.points]
        on_step = self._step_of("simulated, size")
        found = self.batch.map(
            evaluate, [(self._shared, counts) for counts in fresh], on_step if len(fresh) > 1 else None
        )
        self.points |= dict(zip(fresh, found, strict=True))
        return [self.points[c] for c in wanted]

    def _step_of(self, what: str) -> Callable[[int, int], None]:
        """Return a function that says how many of a batch are done, as the one that is next."""
        return lambda done, of: self._progress(f"{what} {min(done + 1, of)} of {of}")

    def records(self, counts: Counts, draws: Draws) -> list[float]:
        """Return the target's figure on this capacity for each drawn record, simulated whole."""
        if counts not in self._drawn:
            calls = [(self._shared, counts, blocks) for blocks in draws]
            nodes = f"{sum(counts):,} nodes"
            self._drawn[counts] = self.batch.map(
                evaluate_drawn, calls, self._step_of(f"records of drawn days on {nodes}:")
            )
        return self._drawn[counts]


def evaluate(setting: Setting, counts: Counts) -> Point:
    """Return the target's figure on a cluster of these node counts."""
    cluster = with_counts(setting.cluster, counts)
    outcome = _simulated(setting, setting.workload, counts)
    submit, times = _times(setting.target, outcome)
    low, high = interval(setting.target, submit, times)
    first, last = setting.workload.span
    work = gpu_seconds(outcome, first, last)
    return Point(
        counts,
        cluster.node_count,
        cluster.gpu_count,
        setting.target.value(times),
        low,
        high,
        work / max(cluster.gpu_count * (last - first), 1e-9),
        int(np.isnan(job_times(outcome).start).sum()),
    )


def evaluate_drawn(setting: Setting, counts: Counts, blocks: NDArray[np.int64]) -> float:
    """Return the target's figure of the record made of these blocks, on a cluster of these node counts."""
    workload = drawn(setting.workload, blocks)
    _, times = _times(setting.target, _simulated(setting, workload, counts))
    return setting.target.value(times)


def _simulated(setting: Setting, workload: Workload, counts: Counts) -> Run:
    cluster, scenario = with_counts(setting.cluster, counts), setting.scenario.check()
    return run(workload, cluster, scenario.scheduler, seed=scenario.seed, attribute=False, changes=scenario.changes)


def _times(target: Target, outcome: Run) -> tuple[Floats, Floats]:
    """Return submit and wait or completion time of each job, s; who never starts makes a target impossible, not easier.

    What ran when the record began has no completion time, and a wait only where there was no room for it.
    """
    found = job_times(outcome)
    times = found.wait if target.of == "wait" else found.completion
    times = np.where(np.isfinite(times), times, np.inf)
    counted = found.has_wait if target.of == "wait" else ~outcome.workload.was_running
    return found.submit[counted], times[counted]


def interval(target: Target, submit: Floats, times: Floats) -> tuple[float, float]:
    """Return a 90 % interval of the figure, over the simulated days drawn with replacement (Künsch, 1989).

    The draws are the same for every capacity. Of many jobs, quantiles are taken among 2,048 of their times.
    """
    block, draws = block_of(submit), draws_of(submit)
    count = draws.shape[1]
    weights = np.stack([np.bincount(row, minlength=count) for row in draws]).astype(np.float64)
    sizes = weights @ np.bincount(block, minlength=count)
    if target.share is None:
        figures = weights @ np.bincount(block, times, count) / np.maximum(sizes, 1.0)
    else:
        ordered = np.sort(times)
        grid = np.unique(ordered[np.linspace(0, times.size - 1, min(_GRID, times.size)).astype(np.int64)])
        cell = block * grid.size + np.searchsorted(grid, times)
        upto = np.cumsum(np.bincount(cell, minlength=count * grid.size).reshape(count, -1), axis=1)
        figures = _percentiles(grid, weights @ upto, sizes, target.share)
    low, high = (percentile(figures[sizes > 0], share) for share in (0.05, 0.95))
    return low, high


def _percentiles(grid: Floats, upto: Floats, sizes: Floats, share: float) -> Floats:
    """Return each row's percentile, as `percentile` does; `upto`: how many of its `sizes` values each of the grid holds."""
    position = share * np.maximum(sizes - 1, 0.0)
    below = np.floor(position)
    low, high = (grid[np.argmax(upto > rank[:, None], axis=1)] for rank in (below, np.ceil(position)))
    with np.errstate(invalid="ignore"):
        between = low + (high - low) * (position - below)
    found: Floats = np.where(low == high, low, between)
    return found


def describe_points(points: Sequence[Point], target: Target) -> list[dict[str, Any]]:
    """Return the simulated capacities as plain data, smallest first; what never ran has no figure."""
    rows = []
    for p in sorted(points, key=lambda p: (p.gpus, p.nodes)):
        known = np.isfinite(p.value)
        rows.append(
            {
                "nodes": p.nodes,
                "gpus": p.gpus,
                "value_seconds": p.value if known else None,
                "low_seconds": p.low if np.isfinite(p.low) else None,
                "high_seconds": p.high if np.isfinite(p.high) else None,
                "utilisation": p.utilisation,
                "meets": target.met(p.value),
                "jobs_never_run": p.never_run,
            }
        )
    return rows
