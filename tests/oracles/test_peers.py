"""Peer libraries, given the same jobs, start each of them when the engine does."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import ciw
import numpy as np
import pytest
import simpy
from simpy.resources.container import ContainerGet

from gputwin.core.rng import stream
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.rules import Scheduler
from tests.oracles.queueing import Arrivals, Floats, serve, servers

JOBS = 20_000
SECONDS = 1e-6
"""Peers add times up in another order."""
BY_PRIORITY = Scheduler("priority", "strict", order_parameters={"aging": 0.0})

Events = Generator[simpy.Event, Any, None]
Through = Callable[[int, Events], Events]
Room = Callable[[simpy.Environment], Through]
"""Made for one environment, says how a job, given its work, gets in and out."""


def arrivals(name: str, rate: float, **more: Any) -> Arrivals:
    rng = stream(0, name)
    return Arrivals(np.cumsum(rng.exponential(1 / rate, JOBS)), rng.exponential(1.0, JOBS), **more)


def assert_same_starts(ours: Floats, theirs: Floats) -> None:
    assert ours.size >= JOBS
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=SECONDS)


def simpy_starts(jobs: Arrivals, room: Room) -> Floats:
    """Return when SimPy starts each job."""
    environment = simpy.Environment()
    through = room(environment)
    starts = np.full(jobs.submit.size, np.nan)

    def work(j: int) -> Events:
        starts[j] = environment.now
        yield environment.timeout(jobs.service[j])

    def arrive() -> Events:
        for j, submit in enumerate(jobs.submit):
            yield environment.timeout(submit - environment.now)
            environment.process(through(j, work(j)))

    environment.process(arrive())
    environment.run()
    return starts


def in_line(count: int) -> Room:
    """Jobs go first come first served to one of `count` servers."""

    def room(environment: simpy.Environment) -> Through:
        resource = simpy.Resource(environment, count)

        def through(j: int, work: Events) -> Events:
            with resource.request() as turn:
                yield turn
                yield from work

        return through

    return room


def lowest_first(count: int, key: Any) -> Room:
    """Whoever has the lowest key goes next to one of `count` servers; nobody is interrupted."""

    def room(environment: simpy.Environment) -> Through:
        resource = simpy.PriorityResource(environment, count)

        def through(j: int, work: Events) -> Events:
            with resource.request(priority=key[j]) as turn:
                yield turn
                yield from work

        return through

    return room


class OvertakingContainer(simpy.Container):
    """Goes on to the next in line when one asks for more than there is."""

    def _do_get(self, event: ContainerGet) -> bool:
        super()._do_get(event)
        return True


def taking_several(container: type[simpy.Container], units: int, size: Any) -> Room:
    """Job j takes size[j] of the units."""

    def room(environment: simpy.Environment) -> Through:
        pool = container(environment, units, units)

        def through(j: int, work: Events) -> Events:
            yield pool.get(int(size[j]))
            yield from work
            yield pool.put(int(size[j]))

        return through

    return room


@pytest.mark.parametrize(
    ("count", "cluster"),
    [(1, servers(1)), (3, servers(3)), (3, servers(1, 3))],
    ids=["1", "3 nodes", "3 GPUs of a node"],
)
def test_first_come_first_served_as_simpy(count: int, cluster: Cluster) -> None:
    jobs = arrivals("simpy fifo", 0.8 * count)
    assert_same_starts(serve(jobs, cluster).start, simpy_starts(jobs, in_line(count)))


@pytest.mark.parametrize("count", [1, 3])
def test_shortest_first_as_simpy(count: int) -> None:
    jobs = arrivals("simpy sjf", 0.9 * count)
    done = serve(jobs, servers(count), Scheduler("sjf", "strict"))
    assert_same_starts(done.start, simpy_starts(jobs, lowest_first(count, jobs.service)))


@pytest.mark.parametrize("count", [1, 3])
def test_priority_as_simpy(count: int) -> None:
    priority = stream(0, "three classes").integers(0, 3, JOBS)
    jobs = arrivals("simpy priority", 0.9 * count, priority=priority)
    assert_same_starts(
        serve(jobs, servers(count), BY_PRIORITY).start, simpy_starts(jobs, lowest_first(count, -priority))
    )


@pytest.mark.parametrize(("backfill", "container"), [("strict", simpy.Container), ("greedy", OvertakingContainer)])
@pytest.mark.parametrize("layout", ["GPUs of a node", "gangs over nodes"])
def test_jobs_of_several_gpus_as_simpy(backfill: str, container: type[simpy.Container], layout: str) -> None:
    size = stream(0, "sizes").choice([1, 2, 4, 8], JOBS, p=[0.6, 0.2, 0.1, 0.1])
    ask, cluster = ({"gpus": size}, servers(1, 8)) if layout == "GPUs of a node" else ({"instances": size}, servers(8))
    jobs = arrivals("simpy sizes", 2.0, **ask)
    done = serve(jobs, cluster, Scheduler(backfill=backfill))
    assert_same_starts(done.start, simpy_starts(jobs, taking_several(container, 8, size)))


def ciw_records(jobs: Arrivals, count: int, **more: Any) -> list[Any]:
    """Return Ciw's record of each job in order of arrival; jobs of priority 1 go before those of 0."""
    classes = {"urgent": 1, "other": 0}
    members = {name: np.broadcast_to(jobs.priority, jobs.submit.size) == level for name, level in classes.items()}
    network = ciw.create_network(
        arrival_distributions={
            name: [ciw.dists.Sequential([*np.diff(jobs.submit[chosen], prepend=0.0), np.inf])]
            for name, chosen in members.items()
        },
        service_distributions={
            name: [ciw.dists.Sequential([*jobs.service[chosen], 1.0])] for name, chosen in members.items()
        },
        priority_classes={"urgent": 0, "other": 1},
        number_of_servers=[count],
        **more,
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(2 * jobs.submit[-1])
    return sorted(simulation.get_all_records(), key=lambda record: record.arrival_date)


@pytest.mark.parametrize("count", [1, 3])
def test_first_come_first_served_as_ciw(count: int) -> None:
    jobs = arrivals("ciw fifo", 0.8 * count)
    theirs = ciw_records(jobs, count)
    assert_same_starts(serve(jobs, servers(count)).start, np.array([record.service_start_date for record in theirs]))


def test_priority_as_ciw() -> None:
    jobs = arrivals("ciw priority", 2.5, priority=stream(0, "two classes").integers(0, 2, JOBS))
    theirs = ciw_records(jobs, 3)
    done = serve(jobs, servers(3), BY_PRIORITY)
    assert_same_starts(done.start, np.array([record.service_start_date for record in theirs]))


def test_the_same_jobs_are_lost_as_in_ciw() -> None:
    """Ciw draws a service time only for jobs let in, so ours are those it recorded."""
    records = ciw_records(arrivals("ciw loss", 2.5), 3, queue_capacities=[0])
    lost = np.array([record.record_type == "rejection" for record in records])
    jobs = Arrivals(
        np.array([record.arrival_date for record in records]),
        np.array([1.0 if record.record_type == "rejection" else record.service_time for record in records]),
    )
    done = serve(jobs, servers(3), Scheduler(backfill="loss"))
    assert lost.size == JOBS
    assert 0.2 < lost.mean() < 0.4
    np.testing.assert_array_equal(done.lost, lost)
    np.testing.assert_array_equal(done.wait[~lost], 0.0)
