"""Loss, gangs, fork-join, closed networks and changing rates against enumeration and closed forms."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputwin.core.errors import UserError
from gputwin.queueing.distributions import Constant, exponential, lognormal
from gputwin.queueing.erlang import erlang_b
from gputwin.queueing.forkjoin import fork_join, slowest_of
from gputwin.queueing.gangs import Gang, gang_wait, saturated_jobs, saturated_throughput, stability_bounds
from gputwin.queueing.loss import kaufman_roberts, multi_resource_loss
from gputwin.queueing.markov import mmc
from gputwin.queueing.network import Station, closed_network, throughput_bounds
from gputwin.queueing.steady import UnstableError
from gputwin.queueing.time_varying import modified_offered_load, offered_load, pointwise_stationary
from tests.oracles.formulas import gang_wait as exact_gang_wait


def enumerated_loss(capacities: list[int], needs: list[tuple[int, ...]], loads: list[float]) -> list[float]:
    """Return the share lost of each class by summing the product form over every state."""
    most = [min(c // b for c, b in zip(capacities, need, strict=True) if b) for need in needs]
    total, full = 0.0, [0.0] * len(needs)
    for counts in product(*(range(m + 1) for m in most)):
        used = [sum(n * need[r] for n, need in zip(counts, needs, strict=True)) for r in range(len(capacities))]
        if any(u > c for u, c in zip(used, capacities, strict=True)):
            continue
        weight = math.prod(a**n / math.factorial(n) for a, n in zip(loads, counts, strict=True))
        total += weight
        for k, need in enumerate(needs):
            if any(u + b > c for u, b, c in zip(used, need, capacities, strict=True)):
                full[k] += weight
    return [f / total for f in full]


def test_several_sizes_against_every_state() -> None:
    exact = enumerated_loss([10], [(1,), (2,), (5,)], [3.0, 1.5, 0.6])
    found = kaufman_roberts(10, {1: 3.0, 2: 1.5, 5: 0.6})
    np.testing.assert_allclose(list(found.values()), exact)


def test_one_size_is_erlang_b_even_with_thousands_of_units() -> None:
    assert kaufman_roberts(5_000, {1: 4_950.0})[1] == pytest.approx(erlang_b(5_000, 4_950.0), rel=1e-9)
    assert kaufman_roberts(40, {4: 7.0})[4] == pytest.approx(erlang_b(10, 7.0))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(3, 8), min_size=2, max_size=2),
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=1, max_size=3),
    st.lists(st.floats(0.1, 4), min_size=3, max_size=3),
)
def test_several_resources_against_every_state(
    capacities: list[int], needs: list[tuple[int, int]], loads: list[float]
) -> None:
    found = multi_resource_loss(capacities, needs, loads[: len(needs)])
    np.testing.assert_allclose(found, enumerated_loss(capacities, needs, loads[: len(needs)]), rtol=1e-9, atol=1e-12)


def test_a_resource_nobody_lacks_does_not_matter() -> None:
    alone = kaufman_roberts(8, {1: 2.0, 4: 0.7})
    found = multi_resource_loss([8, 50], [(1, 2), (4, 3)], [2.0, 0.7])
    np.testing.assert_allclose(found, list(alone.values()), rtol=1e-9)


def test_gangs_of_one_size_are_single_jobs_on_fewer_servers() -> None:
    gangs = [Gang(1.0, 3, 2.0)]
    assert saturated_throughput(12, gangs) == pytest.approx(2.0)
    assert saturated_jobs(12, gangs) == pytest.approx(4.0)
    found, plain = gang_wait(12, 1.5, gangs), mmc(4, 1.5, 0.5)
    assert found.mean == pytest.approx(plain.mean, rel=1e-6)
    assert found.probability == pytest.approx(plain.probability, rel=1e-6)
    assert found.utilisation == pytest.approx(0.75)
    # Two of the fourteen servers can never be used.
    assert stability_bounds(14, gangs).most == pytest.approx(12 / 14)
    assert saturated_throughput(14, gangs) == pytest.approx(2.0)


def test_the_saturated_chain_is_rumyantsev_and_morozovs_formula_for_equal_service() -> None:
    for servers, sizes in ((2, {1: 0.6, 2: 0.4}), (8, {1: 0.5, 2: 0.3, 8: 0.2}), (10, {1: 0.2, 3: 0.5, 7: 0.3})):
        gangs = [Gang(share, size, 1.0) for size, share in sizes.items()]
        assert saturated_throughput(servers, gangs) == pytest.approx(saturated_jobs(servers, gangs))


def test_two_servers_saturate_where_their_exact_chain_says() -> None:
    """Brill and Green's chain of two servers has longer and longer waits towards the computed limit."""
    limit = saturated_throughput(2, [Gang(0.6, 1, 1.0), Gang(0.4, 2, 0.8)])
    near = exact_gang_wait(0.96 * limit, 0.6, 1.0, 1.25, most=700)
    nearer = exact_gang_wait(0.98 * limit, 0.6, 1.0, 1.25, most=1400)
    assert nearer / near == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.8, 0.9])
@pytest.mark.parametrize("load", [0.5, 0.8, 0.95])
def test_the_wait_of_gangs_is_brill_and_greens_on_two_servers(share: float, load: float) -> None:
    gangs = [Gang(share, 1, 1.0), Gang(1 - share, 2, 0.8)]
    rate = load * saturated_throughput(2, gangs)
    exact = exact_gang_wait(rate, share, 1.0, 1.25, most=700)
    assert gang_wait(2, rate, gangs).mean == pytest.approx(exact, rel=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 9), st.floats(0.05, 0.95), st.floats(0.2, 5))
def test_the_stable_load_lies_between_its_bounds(servers: int, share: float, service: float) -> None:
    gangs = [Gang(share, 1, 1.0), Gang(1 - share, servers, service)]
    region = stability_bounds(servers, gangs)
    load = saturated_throughput(servers, gangs) * (share + (1 - share) * servers * service) / servers
    assert region.surely - 1e-9 <= load <= region.most + 1e-9


def test_gangs_that_cannot_run_or_are_too_many() -> None:
    with pytest.raises(UserError, match="never fits"):
        saturated_jobs(4, [Gang(1.0, 5, 1.0)])
    with pytest.raises(UnstableError, match="at most"):
        gang_wait(4, 10.0, [Gang(0.5, 1, 1.0), Gang(0.5, 4, 1.0)])


def test_fork_and_join() -> None:
    one, two = fork_join(1, 0.5, 1.0), fork_join(2, 0.5, 1.0)
    assert one.estimate == pytest.approx(2.0)
    assert two.estimate == pytest.approx(11.5 / 8 * 2)
    for parts in range(2, 33):
        found = fork_join(parts, 0.7, 1.0)
        assert found.lower <= found.estimate <= found.upper
    assert slowest_of(3, 2.0) == pytest.approx(2 * (1 + 1 / 2 + 1 / 3))
    # Without queueing a job takes as long as its slowest part.
    assert fork_join(8, 1e-9, 1.0).estimate == pytest.approx(slowest_of(8, 1.0), rel=0.01)


def convolution(jobs: int, demands: list[float], thinking: float) -> float:
    """Return the throughput by Buzen's convolution, the think time as one more factor."""
    g = np.array([thinking**n / math.factorial(n) for n in range(jobs + 1)])
    for demand in demands:
        for n in range(1, jobs + 1):
            g[n] += demand * g[n - 1]
    return float(g[jobs - 1] / g[jobs])


@given(st.integers(1, 30), st.lists(st.floats(0.1, 3), min_size=1, max_size=4), st.floats(0, 20))
def test_closed_networks_against_buzens_convolution(jobs: int, demands: list[float], thinking: float) -> None:
    stations = [Station(f"station {i}", d) for i, d in enumerate(demands)] + [Station("users", thinking, None)]
    found = closed_network(jobs, stations)
    assert found.throughput == pytest.approx(convolution(jobs, demands, thinking))
    assert sum(s.jobs for s in found.stations) == pytest.approx(jobs)
    low, high = throughput_bounds(jobs, stations)
    assert low * (1 - 1e-9) <= found.throughput <= high * (1 + 1e-9)


@pytest.mark.parametrize(("machines", "repairers"), [(6, 1), (6, 2), (20, 5)])
def test_several_servers_in_a_network_are_the_machine_repair_model(machines: int, repairers: int) -> None:
    running, repair = 10.0, 2.0
    weight = [1.0]
    for n in range(1, machines + 1):
        weight.append(weight[-1] * (machines - n + 1) / running / (min(n, repairers) / repair))
    share = np.array(weight) / sum(weight)
    exact = float(share @ (machines - np.arange(machines + 1))) / running
    found = closed_network(machines, [Station("repair", repair, repairers), Station("running", running, None)])
    assert found.throughput == pytest.approx(exact)
    assert found.bottleneck == "repair"


def test_a_rate_that_does_not_change() -> None:
    rates = np.full(24, 3.0)
    plain = mmc(5, 3.0, 1.0)
    for found in (pointwise_stationary(rates, 5, 1.0), modified_offered_load(rates, 10.0, exponential(1.0), 5)):
        assert found.mean_wait == pytest.approx(plain.mean, rel=1e-6)
        assert found.share_waiting == pytest.approx(plain.probability, rel=1e-6)
        assert found.overloaded == 0


def test_the_load_of_a_sine_lags_and_is_damped() -> None:
    """Eick, Massey and Whitt, 1993: m(t) = a/μ + b(μ sin γt − γ cos γt)/(μ² + γ²) for exponential service."""
    steps, period, mean = 288, 24.0, 3.0
    gamma, mu, a, b = 2 * math.pi / period, 1 / mean, 10.0, 6.0
    t = (np.arange(steps) + 0.5) * period / steps
    found = offered_load(a + b * np.sin(gamma * t), period / steps, exponential(mean))
    exact = a / mu + b * (mu * np.sin(gamma * t) - gamma * np.cos(gamma * t)) / (mu**2 + gamma**2)
    np.testing.assert_allclose(found, exact, rtol=1e-3)


@pytest.mark.parametrize("service", [Constant(5.0), lognormal(5.0, 4.0), exponential(100.0)])
def test_the_load_has_the_mean_of_the_rate_times_service(service: Constant) -> None:
    rates = np.array([0.0, 1.0, 8.0, 2.0, 0.5, 0.0])
    found = offered_load(rates, 4.0, service)
    assert found.mean() == pytest.approx(rates.mean() * service.mean, rel=1e-4)
    assert found.max() - found.min() <= (rates.max() - rates.min()) * service.mean


def test_moments_without_steady_state_are_counted_not_infinite() -> None:
    found = pointwise_stationary(np.array([1.0, 1.0, 6.0]), 4, 1.0)
    assert found.mean_wait is None
    assert found.overloaded == pytest.approx(6 / 8)
    assert np.isfinite(found.wait_probability).all()
    with pytest.raises(UserError, match="nothing arrives"):
        pointwise_stationary(np.zeros(5), 4, 1.0)
