"""Scenarios side by side: variations of one scenario × replicates, run as one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from types import MappingProxyType
from typing import Any

from gputwin.simulation.batch import Batch, workers_for
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.simulate import cluster_of_scenario, simulate_scenario, trace_of
from gputwin.studies.comparison.scenario_run import ScenarioRun

Variants = Mapping[str, Mapping[str, Any]]
"""Label → the fields in which a scenario differs from the one it is a variant of."""
STANDARD: Variants = MappingProxyType(
    {
        "FIFO": {"backfill": "strict"},
        "SJF oracle": {"order": "sjf", "backfill": "strict"},
        "greedy": {"backfill": "greedy"},
        "EASY": {"backfill": "easy"},
        "greedy, best fit": {"backfill": "greedy", "placement": "best-fit"},
        "greedy, FGD": {"backfill": "greedy", "placement": "fgd"},
        "greedy, no sharing": {"backfill": "greedy", "sharing": "exclusive"},
    }
)
"""Who goes next, who may overtake, where it goes, and what sharing GPUs is worth."""


def run_scenarios(
    base: Scenario,
    variants: Variants = STANDARD,
    *,
    traces: Sequence[str] = (),
    executor: Executor | None = None,
    workers: int | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> list[ScenarioRun]:
    """Return every variant of the scenario on every trace, the scenario's own where none is given.

    Traces are replicates (seeds), and each is given to all variants. Without an executor, processes of this machine
    are used. Results do not depend on it.
    """
    names: list[str | tuple[str, ...]] = list(traces) or [base.trace]
    # All are checked before any is run.
    scenarios = [
        (label, k, base.with_(trace=name, **fields).check())
        for k, name in enumerate(names)
        for label, fields in variants.items()
    ]
    opened = [trace_of(base.with_(trace=name)) for name in names]
    jobs = sum(trace.tasks.height for trace in opened) * len(variants)
    with Batch(executor, workers_for(jobs) if workers is None else workers) as batch:
        traces_shared = [batch.share(trace) for trace in opened]
        kinds = dict.fromkeys((k, scenario.cluster) for _, k, scenario in scenarios)
        clusters = {
            (k, named): batch.share(cluster_of_scenario(base.with_(cluster=named), opened[k])) for k, named in kinds
        }
        calls = [(scenario, traces_shared[k], clusters[k, scenario.cluster]) for _, k, scenario in scenarios]
        progress(f"simulating {len(variants)} scenarios, {len(calls)} runs")
        results = batch.map(simulate_scenario, calls, lambda done, of: progress(f"simulated {done} of {of} runs"))
    return [ScenarioRun(label, str(k), result) for (label, k, _), result in zip(scenarios, results, strict=True)]
