"""What can be varied between runs, and running it: scenarios × replicates on any executor."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from gputwin.simulation.cluster import Cluster
from gputwin.simulation.result import SimulationResult
from gputwin.simulation.simulate import simulate
from gputwin.studies.comparison.compare import ScenarioRun
from gputwin.traces.dataset import Trace


@dataclass(frozen=True)
class Scenario:
    """One set of rules under a name."""

    label: str
    order: str = "fifo"
    backfill: str = "strict"
    placement: str = "first-fit"
    share: str = "fraction"
    predict: str = "oracle"
    order_parameters: Mapping[str, float] = field(default_factory=dict)
    placement_parameters: Mapping[str, float] = field(default_factory=dict)

    def run(self, trace: Trace | str, cluster: Cluster | str, seed: int = 0) -> SimulationResult:
        """Return what becomes of the trace's jobs on the cluster."""
        return simulate(
            trace,
            cluster,
            order=self.order,
            backfill=self.backfill,
            placement=self.placement,
            share=self.share,
            predict=self.predict,
            order_parameters=self.order_parameters,
            placement_parameters=self.placement_parameters,
            seed=seed,
        )


STANDARD = (
    Scenario("FIFO"),
    Scenario("SJF oracle", order="sjf"),
    Scenario("greedy", backfill="greedy"),
    Scenario("EASY", backfill="easy"),
    Scenario("greedy, best fit", backfill="greedy", placement="best-fit"),
    Scenario("greedy, FGD", backfill="greedy", placement="fgd"),
    Scenario("greedy, no sharing", backfill="greedy", share="exclusive"),
)
"""Who goes next, who may overtake, where it goes, and what sharing GPUs is worth."""


def run_scenarios(
    traces: Sequence[Trace | str],
    cluster: Cluster | str,
    scenarios: Sequence[Scenario] = STANDARD,
    *,
    executor: Executor | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> list[ScenarioRun]:
    """Return every scenario on every trace; traces are replicates (seeds), and each is given to all scenarios.

    Without an executor, processes of this machine are used. Results do not depend on it.
    """
    work = [(scenario, k) for k in range(len(traces)) for scenario in scenarios]
    progress(f"simulating {scenarios[0].label}")
    # The first one runs here: it compiles the engine, which the others then find in the cache.
    results = [scenarios[0].run(traces[0], cluster)]
    with _lent(executor) if executor is not None else _processes() as pool:
        pending = [pool.submit(scenario.run, traces[k], cluster) for scenario, k in work[1:]]
        for (scenario, k), future in zip(work[1:], pending, strict=True):
            progress(f"simulating {scenario.label}, replicate {k + 1} of {len(traces)}")
            results.append(future.result())
    return [ScenarioRun(scenario.label, str(k), result) for (scenario, k), result in zip(work, results, strict=True)]


def _lent(executor: Executor) -> AbstractContextManager[Executor]:
    """Return the caller's executor as it is: the caller closes it."""
    return nullcontext(executor)


def _processes() -> Executor:
    # Forking would copy the locks of Polars' threads as they happen to be.
    return ProcessPoolExecutor(os.cpu_count() or 1, mp_context=multiprocessing.get_context("spawn"))
