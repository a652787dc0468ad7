"""Ciw, given the same requests, starts each of them when the simulator does: M/G/c in order of arrival."""

from __future__ import annotations

import ciw
import numpy as np
import pytest

from gputwin.autoscaling.serving.system import Load, Slots
from gputwin.core.rng import stream
from tests.autoscaling.serving.runs import poisson, served

COUNT = 10_000


@pytest.mark.parametrize("servers", [2, 8])
@pytest.mark.parametrize("law", ["lognormal", "uniform", "gamma"])
def test_mgc_as_ciw(servers: int, law: str) -> None:
    draw = stream(1, "ciw", law, servers)
    service = {
        "lognormal": draw.lognormal(-0.5, 1.0, COUNT),
        "uniform": draw.uniform(0.0, 2.0, COUNT),
        "gamma": draw.gamma(0.4, 2.5, COUNT),
    }[law]
    arrival = poisson(0.9 * servers, COUNT, "ciw", law, servers)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([*np.diff(arrival, prepend=0.0), np.inf])],
        service_distributions=[ciw.dists.Sequential([*service, 1.0])],
        number_of_servers=[servers],
    )
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(2 * arrival[-1])
    theirs = sorted(simulation.get_all_records(), key=lambda record: record.arrival_date)
    run = served(Load(arrival, service=service), Slots(), servers)
    np.testing.assert_allclose(run.waits(), [record.waiting_time for record in theirs], atol=1e-6)
