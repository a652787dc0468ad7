"""Erlang's formulas against high precision, published tables, and what must hold of them everywhere."""

from __future__ import annotations

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gputwin.core.errors import UserError
from gputwin.queueing.erlang import erlang_b, erlang_c, servers_for_loss, servers_for_wait
from gputwin.queueing.markov import mmc
from gputwin.queueing.steady import UnstableError

LOADS = st.floats(0.01, 500)


def erlang_b_precisely(servers: float, load: float) -> mpmath.mpf:
    """Return the loss by Fortet's integral, which is an incomplete gamma function, in 60 digits."""
    with mpmath.workdps(60):
        c, a = mpmath.mpf(servers), mpmath.mpf(load)
        return a**c * mpmath.exp(-a) / mpmath.gammainc(c + 1, a, mpmath.inf)


def erlang_c_precisely(servers: float, load: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        lost = erlang_b_precisely(servers, load)
        return lost / (1 - mpmath.mpf(load) / servers * (1 - lost))


@pytest.mark.parametrize("load", [8_000.0, 9_000.0, 9_800.0, 9_900.0, 9_990.0, 9_999.9])
def test_ten_thousand_servers_to_twelve_digits(load: float) -> None:
    assert erlang_c(10_000, load) == pytest.approx(float(erlang_c_precisely(10_000, load)), rel=1e-12, abs=1e-300)
    assert erlang_b(10_000, load) == pytest.approx(float(erlang_b_precisely(10_000, load)), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(("servers", "load"), [(50_000, 49_900.0), (100_000, 99_700.0), (3, 2.9), (1, 0.5)])
def test_few_and_many_servers(servers: int, load: float) -> None:
    assert erlang_c(servers, load) == pytest.approx(float(erlang_c_precisely(servers, load)), rel=1e-11)


@pytest.mark.parametrize(("servers", "load"), [(0.5, 0.3), (2.25, 1.0), (7.9, 6.0), (812.3, 800.0), (33.3, 80.0)])
def test_between_whole_numbers_of_servers(servers: float, load: float) -> None:
    assert erlang_b(servers, load) == pytest.approx(float(erlang_b_precisely(servers, load)), rel=1e-10)


@pytest.mark.parametrize(
    ("servers", "lost", "load"),
    [(1, 0.01, 0.0101), (5, 0.01, 1.361), (10, 0.01, 4.461), (20, 0.01, 12.03), (50, 0.01, 37.90), (100, 0.01, 84.06)],
)
def test_the_published_tables_of_offered_traffic(servers: int, lost: float, load: float) -> None:
    """Traffic in erlangs that n circuits carry at 1 % loss, as the tables of telephone engineers print it."""
    assert erlang_b(servers, load) == pytest.approx(lost, rel=2e-3)
    assert servers_for_loss(load * 0.999, lost) == servers


@given(st.floats(0.2, 300), LOADS)
def test_loss_is_a_share_that_falls_with_servers_and_grows_with_load(servers: float, load: float) -> None:
    lost = erlang_b(servers, load)
    assert 0 <= lost <= 1
    assert erlang_b(servers + 0.5, load) <= lost * (1 + 1e-9)
    assert erlang_b(servers, load * 1.1) >= lost * (1 - 1e-9)


@given(st.integers(1, 400), st.floats(0.01, 0.999))
def test_waiting_is_likelier_than_loss_and_certain_at_the_limit(servers: int, load: float) -> None:
    waits = erlang_c(servers, load * servers)
    assert erlang_b(servers, load * servers) <= waits <= 1
    assert erlang_c(servers, servers * (1 - 1e-9)) == pytest.approx(1, abs=1e-4 * servers)


def test_the_limits() -> None:
    assert erlang_b(0, 3.0) == 1.0
    assert erlang_b(5, 0.0) == 0.0
    assert erlang_b(10_000, 1.0) == 0.0
    assert erlang_b(10, 1e9) == pytest.approx(1, abs=1e-7)


def test_the_square_root_rule_of_halfin_and_whitt() -> None:
    """At load c − β√c the share that waits tends to [1 + βΦ(β)/φ(β)]⁻¹ (Halfin and Whitt, 1981)."""
    beta, servers = 1.0, 100_000
    limit = 1 / (1 + beta * mpmath.ncdf(beta) / mpmath.npdf(beta))
    assert erlang_c(servers, servers - beta * servers**0.5) == pytest.approx(float(limit), rel=5e-3)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.5, 200), st.floats(0, 5), st.floats(0.5, 0.99))
def test_servers_for_a_wait_are_the_least(load: float, seconds: float, share: float) -> None:
    servers = servers_for_wait(load, 1.0, seconds, share)
    assert mmc(servers, load, 1.0).quantile(share) <= seconds + 1e-9
    if servers - 1 > load:
        assert mmc(servers - 1, load, 1.0).quantile(share) > seconds - 1e-9


@pytest.mark.parametrize("load", [4.0, 4.5, 1e9])
def test_no_steady_state_is_said_in_words(load: float) -> None:
    with pytest.raises(UnstableError, match="grows without end"):
        erlang_c(4, load)


def test_impossible_questions_are_mistakes() -> None:
    with pytest.raises(UserError):
        erlang_b(-1, 2.0)
    with pytest.raises(UserError):
        erlang_b(2, float("nan"))
    with pytest.raises(UserError, match="shorter than 0"):
        servers_for_wait(3.0, 1.0, -1.0)
