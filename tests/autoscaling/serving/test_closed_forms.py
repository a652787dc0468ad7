"""Fixed replicas are queues with known answers: the simulator's intervals hold them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gputwin.autoscaling.serving.system import Load, Slots
from gputwin.core.rng import stream
from gputwin.queueing.distributions import Constant, Lognormal
from gputwin.queueing.general import mg1
from tests.autoscaling.serving.runs import interval, poisson, rows, served

COUNT = 400_000
WARM_UP = 20_000


def erlang_cases(model: str) -> list[dict[str, str]]:
    from tests.conftest import REFERENCE

    path = REFERENCE / "oracles" / "serving" / "erlang_c_a_values.csv"
    return [r for r in rows(path) if r["model"] == model] if path.is_file() else []


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize(
    "case", erlang_cases("M/M/c"), ids=lambda c: f"{c['servers']} at {c['offered_load_per_server']}"
)
def test_mmc(case: dict[str, str]) -> None:
    servers, load = int(case["servers"]), float(case["offered_load_per_server"])
    service = stream(1, "service", servers).exponential(1.0, COUNT)
    run = served(Load(poisson(servers * load, COUNT, servers), service=service), Slots(), servers)
    waits = run.waits()[WARM_UP:]
    assert interval(waits).holds(float(case["mean_wait_in_service_times"]))
    assert interval((waits > 0).astype(float)).holds(float(case["prob_wait"]))


@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize(
    "case", erlang_cases("M/M/c+M"), ids=lambda c: f"{c['servers']} at {c['offered_load_per_server']}"
)
def test_erlang_a(case: dict[str, str]) -> None:
    """Requests leave after an exponential patience; waits count those who left, until they did."""
    servers, load, leaving = (float(case[k]) for k in ("servers", "offered_load_per_server", "abandon_rate_over_mu"))
    service = stream(1, "service", int(servers)).exponential(1.0, COUNT)
    patience = stream(1, "patience", int(servers)).exponential(1 / leaving, COUNT)
    arrival = poisson(servers * load, COUNT, int(servers))
    run = served(Load(arrival, service=service, patience=patience), Slots(), int(servers))
    left = run.refused()
    waits = np.where(left, run.world.requests.finish - arrival, run.waits())[WARM_UP:]
    assert interval(left[WARM_UP:].astype(float)).holds(float(case["prob_abandon"]))
    assert interval(waits).holds(float(case["mean_wait_in_service_times"]))
    assert interval((waits > 0).astype(float)).holds(float(case["prob_wait"]))


@pytest.mark.parametrize("spread", [0.5, 1.0, 1.5])
def test_mg1(spread: float) -> None:
    """Pollaczek and Khinchine, with lognormal service."""
    mean = float(np.exp(spread**2 / 2))
    service = stream(1, "lognormal", int(10 * spread)).lognormal(0.0, spread, COUNT)
    expected = mg1(0.6 / mean, Lognormal(0.0, spread)).mean
    run = served(Load(poisson(0.6 / mean, COUNT, int(10 * spread)), service=service), Slots(), 1)
    found = interval(run.waits()[WARM_UP:])
    assert found.holds(expected)
    assert found.half < 0.2 * expected


@pytest.mark.parametrize(("servers", "load"), [(1, 0.8), (4, 0.8), (10, 0.9)])
def test_mdc(servers: int, load: float) -> None:
    """Crommelin (1932): the number in the system one service time apart; here solved on its transition matrix."""
    run = served(Load(poisson(servers * load, COUNT, "mdc", servers), service=np.ones(COUNT)), Slots(), servers)
    found = interval(run.waits()[WARM_UP:])
    expected = mdc_mean_wait(servers, servers * load)
    assert found.holds(expected)
    if servers == 1:
        assert expected == pytest.approx(mg1(load, Constant(1.0)).mean, rel=1e-6)


def mdc_mean_wait(servers: int, rate: float, states: int = 400) -> float:
    """Return the mean wait of M/D/c with service time 1: who is in service now has left one service time later."""
    from scipy.stats import poisson as poisson_law

    arrivals = poisson_law.pmf(np.arange(states), rate)
    matrix = np.zeros((states, states))
    for n in range(states):
        left = max(n - servers, 0)
        matrix[n, left:] = arrivals[: states - left]
        matrix[n, -1] += 1 - matrix[n].sum()
    law = np.full(states, 1 / states)
    system = np.vstack([matrix.T - np.eye(states), np.ones(states)])
    law = np.linalg.lstsq(system, np.append(np.zeros(states), 1.0), rcond=None)[0]
    waiting = np.maximum(np.arange(states) - servers, 0)
    return float(law @ waiting) / rate


def test_the_oracles_are_there(reference: Path) -> None:
    """Were the file missing, the cases above would be none."""
    assert len(erlang_cases("M/M/c")) == 8
    assert len(erlang_cases("M/M/c+M")) == 7
