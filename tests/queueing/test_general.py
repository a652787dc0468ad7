"""General service: exact where theory is, and approximations within their documented errors of exact values."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputwin.core.errors import UserError
from gputwin.queueing.distributions import (
    BoundedPareto,
    Constant,
    Distribution,
    ErlangMixture,
    Hyperexponential,
    exponential,
    lognormal,
    scv,
)
from gputwin.queueing.fit.moments import from_three_moments, from_two_moments
from gputwin.queueing.general import allen_cunneen, hayward, kingman_bound, mg1, mg1_wait_exceeds, whitt
from gputwin.queueing.markov import gm1, mm1, mmc
from gputwin.queueing.steady import UnstableError

KINDS: dict[str, Distribution] = {
    "exponential": exponential(2.0),
    "hyperexponential": Hyperexponential((0.8, 0.2), (0.5, 5.0)),
    "erlang": ErlangMixture(4, 0.3, 0.7),
    "constant": Constant(1.5),
    "lognormal": lognormal(2.0, 3.0),
    "pareto": BoundedPareto(1.5, 1.0, 1000.0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_distribution_agrees_with_itself(kind: str) -> None:
    of = KINDS[kind]
    x = of.draw(np.random.default_rng(1), 400_000)
    assert x.mean() == pytest.approx(of.mean, rel=0.02)
    assert (x**2).mean() == pytest.approx(of.second_moment, rel=0.15)
    shares = np.array([0.01, 0.2, 0.5, 0.9, 0.999])
    if kind != "constant":
        np.testing.assert_allclose(of.cdf(of.quantile(shares)), shares, rtol=1e-6)
        np.testing.assert_allclose(np.quantile(x, shares[:4]), of.quantile(shares[:4]), rtol=0.05)
    s = np.array([0.3 + 0j, 1.0 + 2.0j])
    np.testing.assert_allclose(of.transform(s), np.exp(-s[:, None] * x).mean(axis=1), atol=5e-3)
    # The transform's slope at 0 is the mean.
    h = 1e-4 / of.mean
    assert (1 - of.transform(np.array([h + 0j]))[0].real) / h == pytest.approx(of.mean, rel=2e-3)


@given(st.floats(0.01, 1000), st.floats(0, 50))
def test_two_moments_are_met(mean: float, variation: float) -> None:
    of = from_two_moments(mean, variation)
    assert of.mean == pytest.approx(mean)
    assert scv(of) == pytest.approx(variation, abs=0.006)


@given(st.floats(0.05, 0.95), st.floats(0.1, 10), st.floats(1.5, 100))
def test_three_moments_are_met(share: float, short: float, ratio: float) -> None:
    long = short * ratio
    moments = [math.factorial(k) * ((1 - share) * short**k + share * long**k) for k in (1, 2, 3)]
    found = from_three_moments(moments[0], moments[1], moments[2])
    assert found is not None
    np.testing.assert_allclose(found.means, (short, long), rtol=1e-4)
    np.testing.assert_allclose(found.probabilities, (1 - share, share), rtol=1e-3, atol=1e-5)


def test_no_hyperexponential_varies_less_than_an_exponential() -> None:
    assert from_three_moments(1.0, 1.5, 3.0) is None
    assert from_three_moments(1.0, 4.0, 10.0) is None


def test_one_server_waits_with_variation_as_pollaczek_and_khinchine_say() -> None:
    assert mg1(0.5, exponential(1.0)).mean == pytest.approx(mm1(0.5, 1.0).mean)
    assert mg1(0.5, Constant(1.0)).mean == pytest.approx(mm1(0.5, 1.0).mean / 2)
    assert mg1(0.3, lognormal(2.0, 9.0)).mean == pytest.approx(0.3 * 4 * 10 / (2 * 0.4))


def test_the_whole_distribution_of_one_exponential_server() -> None:
    t = np.array([0.0, 0.1, 1.0, 5.0, 20.0, 60.0])
    np.testing.assert_allclose(mg1_wait_exceeds(0.8, exponential(1.0), t), 0.8 * np.exp(-0.2 * t), atol=2e-7)


def test_the_whole_distribution_of_constant_service() -> None:
    """Erlang's own series for M/D/1: P(W ≤ t) = (1 − ρ) Σ e^(−λ(k − t)) (λ(k − t))^k / k!."""
    rate = 0.7
    for t in (0.4, 1.5, 3.3, 8.6):
        with mpmath.workdps(40):
            terms = [
                mpmath.exp(-rate * (k - t)) * (rate * (k - mpmath.mpf(t))) ** k / mpmath.factorial(k)
                for k in range(int(t) + 1)
            ]
            exact = 1 - (1 - mpmath.mpf(rate)) * mpmath.fsum(terms)
        assert mg1_wait_exceeds(rate, Constant(1.0), np.array([t]))[0] == pytest.approx(float(exact), abs=3e-4)


def test_the_whole_distribution_has_the_mean() -> None:
    service, rate = Hyperexponential((0.9, 0.1), (0.4, 6.4)), 0.6
    t = np.linspace(0, 400, 8001)
    area = float(np.trapezoid(mg1_wait_exceeds(rate, service, t), t))
    assert area == pytest.approx(mg1(rate, service).mean, rel=1e-3)


def crommelin(servers: int, rate: float) -> float:
    """Return the exact mean wait of M/D/c, service 1 s: who is present now is gone or served first a second later."""
    most = servers * 40
    arrive = np.array([math.exp(k * math.log(rate) - rate - math.lgamma(k + 1)) for k in range(most + 1)])
    move = np.zeros((most + 1, most + 1))
    for n in range(most + 1):
        left = max(n - servers, 0)
        move[n, left:] = arrive[: most + 1 - left]
    move /= move.sum(axis=1, keepdims=True)
    balance = np.vstack([move.T - np.eye(most + 1), np.ones(most + 1)])
    share = np.linalg.lstsq(balance, np.append(np.zeros(most + 1), 1.0), rcond=None)[0]
    return float(share @ np.maximum(np.arange(most + 1) - servers, 0)) / rate


@pytest.mark.parametrize("servers", [1, 2, 5, 12])
@pytest.mark.parametrize("load", [0.5, 0.7, 0.9])
def test_whitts_refinement_of_constant_service_is_within_his_error(servers: int, load: float) -> None:
    exact = crommelin(servers, servers * load)
    refined = whitt(servers, servers * load, Constant(1.0)).mean
    plain = allen_cunneen(servers, servers * load, Constant(1.0)).mean
    assert refined == pytest.approx(exact, rel=0.1 if load < 0.7 else 0.03)
    if servers > 1 and load < 0.9:
        assert abs(refined - exact) < abs(plain - exact)
    if load >= 0.7:
        assert plain == pytest.approx(exact, rel=0.15)


@pytest.mark.parametrize("variation", [0.0, 0.1, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("load", [0.5, 0.8, 0.95])
def test_arrivals_of_less_variation_against_the_exact_root(variation: float, load: float) -> None:
    between = from_two_moments(1 / load, variation)
    exact = gm1(lambda s: float(between.transform(np.array([complex(s)]))[0].real), load, 1.0).mean
    assert whitt(1, load, exponential(1.0), variation).mean == pytest.approx(exact, rel=0.25 if load < 0.8 else 0.13)
    assert kingman_bound(load, variation, exponential(1.0)) >= exact


@given(st.integers(1, 50), st.floats(0.3, 0.95))
def test_approximations_are_exact_for_memoryless_queues(servers: int, load: float) -> None:
    exact = mmc(servers, servers * load, 1.0)
    for approximation in (allen_cunneen, whitt):
        found = approximation(servers, servers * load, exponential(1.0))
        assert found.mean == pytest.approx(exact.mean)
        assert found.probability == pytest.approx(exact.probability)


@settings(max_examples=60)
@given(st.integers(1, 40), st.floats(0.2, 0.95), st.floats(0, 9), st.floats(0, 9))
def test_more_variation_waits_longer(servers: int, load: float, arrivals: float, service: float) -> None:
    rate = servers * load
    here = whitt(servers, rate, lognormal(1.0, service + 1e-6), arrivals)
    assert 0 <= here.probability <= 1
    assert here.mean >= 0
    more = allen_cunneen(servers, rate, lognormal(1.0, service + 1.0), arrivals)
    assert more.mean > allen_cunneen(servers, rate, lognormal(1.0, service + 1e-6), arrivals).mean


def test_peaked_traffic_waits_as_smaller_servers_would() -> None:
    plain = mmc(40, 30.0, 1.0)
    assert hayward(40, 30.0, 1.0, 1.0).mean == pytest.approx(plain.mean)
    assert hayward(40, 30.0, 1.0, 4.0).mean == pytest.approx(mmc(10, 7.5, 1.0).mean)
    assert hayward(40, 30.0, 1.0, 2.7).mean > plain.mean


def test_gangs_of_one_size_are_peaked_exactly() -> None:
    """Gangs of three on 12 servers are single jobs on 4; the variance of servers busy is three times the mean."""
    assert hayward(12, 9.0, 2.0, 3.0).mean == pytest.approx(mmc(4, 1.5, 0.5).mean)


def test_overload_and_nonsense_are_words() -> None:
    with pytest.raises(UnstableError, match="grows without end"):
        mg1(1.1, Constant(1.0))
    with pytest.raises(UnstableError):
        hayward(10, 10.0, 1.0, 2.0)
    with pytest.raises(UserError, match="squared variation"):
        whitt(2, 1.0, exponential(1.0), -1.0)
