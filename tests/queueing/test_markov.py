"""Memoryless queues against generators solved as matrices, and their limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputwin.core.errors import UserError
from gputwin.queueing.erlang import erlang_b
from gputwin.queueing.markov import erlang_a, gm1, mm1, mmc, mmck
from gputwin.queueing.steady import UnstableError, Waiting


def birth_and_death(births: list[float], deaths: list[float]) -> np.ndarray:
    """Return the shares of time of each state, from the generator matrix."""
    size = len(births) + 1
    q = np.zeros((size, size))
    for n, (up, down) in enumerate(zip(births, deaths, strict=True)):
        q[n, n + 1], q[n + 1, n] = up, down
    q -= np.diag(q.sum(axis=1))
    balance = np.vstack([q.T, np.ones(size)])
    return np.linalg.lstsq(balance, np.append(np.zeros(size), 1.0), rcond=None)[0]


def test_one_server_by_hand() -> None:
    found = mm1(0.8, 1.0)
    assert found.probability == pytest.approx(0.8)
    assert found.mean == pytest.approx(4.0)
    assert found.queue_length == pytest.approx(3.2)
    assert found.exceeds(5.0) == pytest.approx(0.8 * math.exp(-1))
    assert found.quantile(0.95) == pytest.approx(5 * math.log(16))
    assert found.quantile(0.1) == 0.0


def test_two_servers_by_hand() -> None:
    """M/M/2: C = 2ρ²/(1 + ρ)."""
    found = mmc(2, 1.5, 1.0)
    assert found.probability == pytest.approx(2 * 0.75**2 / 1.75)
    assert found.mean == pytest.approx(found.probability / 0.5)


@given(st.integers(1, 60), st.floats(0.05, 0.97), st.floats(0.01, 100))
def test_waits_grow_with_load_and_fall_with_servers(servers: int, load: float, service_rate: float) -> None:
    rate = load * servers * service_rate
    here = mmc(servers, rate, service_rate)
    assert mmc(servers, rate * 1.02, service_rate).mean >= here.mean
    assert mmc(servers + 1, rate, service_rate).mean <= here.mean
    # Two half-size pools wait longer than one (Smith and Whitt, 1981).
    assert mmc(2 * servers, 2 * rate, service_rate).mean <= here.mean * (1 + 1e-12)
    assert here.exceeds(here.quantile(0.95)) <= 0.05 + 1e-12


@pytest.mark.parametrize(("servers", "room", "rate"), [(1, 1, 0.5), (3, 10, 2.0), (3, 10, 5.0), (2, 2, 9.0)])
def test_room_for_so_many(servers: int, room: int, rate: float) -> None:
    share = birth_and_death([rate] * room, [float(min(n, servers)) for n in range(1, room + 1)])
    found = mmck(servers, room, rate, 1.0)
    waiting = sum(p * max(n - servers, 0) for n, p in enumerate(share))
    assert found.lost == pytest.approx(share[-1])
    assert found.queue_length == pytest.approx(waiting, abs=1e-12)
    assert found.mean_wait == pytest.approx(waiting / (rate * (1 - share[-1])), abs=1e-12)
    assert found.utilisation == pytest.approx(sum(p * min(n, servers) for n, p in enumerate(share)) / servers)


def test_room_from_none_to_plenty() -> None:
    assert mmck(10, 10, 8.0, 1.0).lost == pytest.approx(erlang_b(10, 8.0))
    assert mmck(4, 2000, 3.2, 1.0).mean_wait == pytest.approx(mmc(4, 3.2, 1.0).mean)
    assert mmck(4, 2000, 3.2, 1.0).wait_probability == pytest.approx(mmc(4, 3.2, 1.0).probability)
    assert mmck(10_000, 11_000, 10_500.0, 1.0).lost == pytest.approx(1 - 10 / 10.5, rel=1e-3)


@pytest.mark.parametrize(
    ("servers", "rate", "patience"), [(3, 2.0, 0.5), (3, 6.0, 0.5), (10, 9.5, 0.05), (1, 0.2, 4.0)]
)
def test_impatience_against_its_generator(servers: int, rate: float, patience: float) -> None:
    most = 400
    deaths = [min(n, servers) + patience * max(n - servers, 0) for n in range(1, most + 1)]
    share = birth_and_death([rate] * most, deaths)
    waiting = sum(p * max(n - servers, 0) for n, p in enumerate(share))
    found = erlang_a(servers, rate, 1.0, patience)
    assert found.queue_length == pytest.approx(waiting, rel=1e-7)
    assert found.wait_probability == pytest.approx(share[servers:].sum(), rel=1e-7)
    assert found.abandoned == pytest.approx(patience * waiting / rate, rel=1e-7)
    # Who is not gone was served.
    assert found.utilisation * servers == pytest.approx(rate * (1 - found.abandoned), rel=1e-7)


def test_the_ends_of_patience() -> None:
    endless = erlang_a(5, 4.0, 1.0, 1e-7)
    assert endless.mean_wait == pytest.approx(mmc(5, 4.0, 1.0).mean, rel=1e-4)
    assert erlang_a(5, 4.0, 1.0, 1e7).abandoned == pytest.approx(erlang_b(5, 4.0), rel=1e-5)
    # As impatient as served: the number present is Poisson.
    poisson = 1 - sum(math.exp(-4.0) * 4.0**n / math.factorial(n) for n in range(5))
    assert erlang_a(5, 4.0, 1.0, 1.0).wait_probability == pytest.approx(poisson)
    # Twice too much work: half of it leaves.
    assert erlang_a(1_000, 2_000.0, 1.0, 0.01).abandoned == pytest.approx(0.5, rel=1e-3)


def test_arrivals_of_any_law_at_one_exponential_server() -> None:
    assert gm1(lambda s: 0.7 / (0.7 + s), 0.7, 1.0).mean == pytest.approx(mm1(0.7, 1.0).mean)
    even = gm1(lambda s: math.exp(-s / 0.75), 0.75, 1.0)
    # The root of σ = e^(−(1 − σ)/0.75), by iteration.
    root = 0.5
    for _ in range(500):
        root = math.exp(-(1 - root) / 0.75)
    assert even.probability == pytest.approx(root)
    assert even.mean == pytest.approx(root / (1 - root))
    near = gm1(lambda s: math.exp(-s / 0.9999), 0.9999, 1.0)
    assert near.mean == pytest.approx(0.5 / 1e-4, rel=0.01)


@settings(max_examples=30)
@given(st.floats(0.1, 0.95))
def test_even_arrivals_wait_less_than_random_ones(rate: float) -> None:
    assert gm1(lambda s: math.exp(-s / rate), rate, 1.0).mean < mm1(rate, 1.0).mean


def test_mistakes_and_overload_are_words() -> None:
    with pytest.raises(UnstableError, match=r"1\.2 times"):
        mmc(10, 12.0, 1.0)
    with pytest.raises(UnstableError):
        gm1(lambda s: 1 / (1 + s), 1.0, 1.0)
    with pytest.raises(UserError, match="arrival rate must be a positive number"):
        mmc(3, 0.0, 1.0)
    with pytest.raises(UserError, match="room for 2"):
        mmck(3, 2, 1.0, 1.0)
    with pytest.raises(UserError, match="quantile"):
        Waiting(1, 1.0, 0.5, 0.5, 1.0).quantile(1.0)
