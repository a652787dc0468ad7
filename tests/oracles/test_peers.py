"""Peer libraries, given the same jobs, start each of them when the engine does."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import ciw
import numpy as np
import pytest
import simpy
from simpy.resources.base import BaseResource
from simpy.resources.container import Container, ContainerGet
from simpy.resources.resource import SortedQueue

from gputwin.core.rng import stream
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.simulate import Scheduler
from tests.oracles.queueing import Arrivals, Floats, Outcome, serve, servers

JOBS = 20_000
SECONDS = 1e-6
"""Peers add up times in another order."""
LAYOUTS = {"1 node": lambda count: servers(1, count), "1 GPU each": lambda count: servers(count, 1)}


def drawn(name: str, load: float, **more: Any) -> Arrivals:
    rng = stream(0, name)
    return Arrivals(np.cumsum(rng.exponential(1 / load, JOBS)), rng.exponential(1.0, JOBS), **more)


def assert_same_starts(ours: Floats, theirs: Floats) -> None:
    assert ours.size >= JOBS
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=SECONDS)


def simpy_starts(jobs: Arrivals, resource: Callable[[simpy.Environment], BaseResource], hold: Callable[..., Any]) -> Floats:
    """Return when each job starts on the resource; `hold(resource, j)` yields until job j has it, then once it is over."""
    environment = simpy.Environment()
    shared = resource(environment)
    starts = np.full(jobs.submit.size, np.nan)

    def job(j: int) -> Generator[Any, Any, None]:
        holding = hold(shared, j)
        yield next(holding)
        starts[j] = environment.now
        yield environment.timeout(jobs.service[j])
        next(holding, None)

    def arrive() -> Generator[Any, Any, None]:
        for j, submit in enumerate(jobs.submit):
            yield environment.timeout(submit - environment.now)
            environment.process(job(j))

    environment.process(arrive())
    environment.run()
    return starts
