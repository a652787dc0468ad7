"""What the papers prove of their rules, on random small cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from gputwin.simulation.fairness import decayed, drf, lottery, quota, themis, wfq
from gputwin.simulation.fairness.drf import fill, fill_by_tasks

CLOSE = 1e-7


@st.composite
def divisions(draw: st.DrawFn, weighted: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n, m = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    number = st.integers(0, 6)
    demands = np.array([[draw(number) for _ in range(m)] for _ in range(n)], dtype=float)
    for row in demands:
        if not row.any():
            row[draw(st.integers(0, m - 1))] = 1.0
    capacity = np.array([draw(st.integers(5, 40)) for _ in range(m)], dtype=float)
    weights = np.array([[draw(st.integers(1, 4)) if weighted else 1] * m for _ in range(n)], dtype=float)
    return demands, capacity, weights


def runnable(holding: np.ndarray, demand: np.ndarray) -> float:
    """Return the tasks a tenant with this demand can run with a holding."""
    need = demand > 0
    return float((holding[need] / demand[need]).min())


@settings(max_examples=100, deadline=None)
@given(divisions(weighted=True))
def test_drf_gives_each_at_least_its_weighted_part(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    demands, capacity, weights = case
    tasks = fill(demands, capacity, weights)
    for t, demand in enumerate(demands):
        part = weights[t, 0] / weights[:, 0].sum()
        assert tasks[t] >= runnable(capacity * part, demand) * (1 - CLOSE)


@settings(max_examples=100, deadline=None)
@given(divisions())
def test_drf_nobody_envies_and_nothing_useful_is_left(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    demands, capacity, weights = case
    tasks = fill(demands, capacity, weights)
    used = tasks @ demands
    assert (used <= capacity * (1 + CLOSE)).all()
    for t, demand in enumerate(demands):
        for other in range(len(demands)):
            assert runnable(demands[other] * tasks[other], demand) <= tasks[t] * (1 + CLOSE) + CLOSE
        # Pareto efficiency: everyone needs something that is used up.
        assert ((demand > 0) & (used >= capacity * (1 - CLOSE))).any()


@settings(max_examples=150, deadline=None)
@given(divisions(), st.data())
def test_drf_a_false_demand_never_helps(case: tuple[np.ndarray, np.ndarray, np.ndarray], data: st.DataObject) -> None:
    demands, capacity, weights = case
    liar = data.draw(st.integers(0, len(demands) - 1))
    honest = fill(demands, capacity, weights)[liar]
    false = demands.copy()
    false[liar] = data.draw(st.lists(st.integers(0, 12), min_size=capacity.size, max_size=capacity.size).filter(any))
    holding = fill(false, capacity, weights)[liar] * false[liar]
    assert runnable(holding, demands[liar]) <= honest * (1 + CLOSE) + CLOSE


@settings(max_examples=60, deadline=None)
@given(divisions(weighted=True))
def test_drf_by_whole_tasks_is_fair_up_to_one_task(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    demands, capacity, weights = case
    order, _ = fill_by_tasks(demands, capacity, weights)
    held = np.zeros(demands.shape)
    for t in order:
        mine = drf.dominant_share(held, capacity, weights, t)
        fits = ((held.sum(axis=0) + demands) <= capacity * (1 + CLOSE)).all(axis=1)
        assert all(mine <= drf.dominant_share(held, capacity, weights, i) for i in np.flatnonzero(fits))
        held[t] += demands[t]
    assert (held.sum(axis=0) <= capacity * (1 + CLOSE)).all()
    assert not ((held.sum(axis=0) + demands) <= capacity * (1 - CLOSE)).all(axis=1).any()


def test_gpu_compute_and_gpu_memory_are_resources_of_their_own() -> None:
    """A memory-heavy tenant and a compute-heavy one each get two thirds of what they need most."""
    demands = np.array([[100.0, 40.0], [500.0, 10.0]])  # milli-GPU, GiB per task
    tasks = fill(demands, np.array([8000.0, 640.0]), np.ones((2, 2)))
    shares = (demands * tasks[:, None] / np.array([8000.0, 640.0])).max(axis=1)
    assert shares[0] == pytest.approx(shares[1])
    assert shares[0] > 0.5


@st.composite
def queues(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    n = draw(st.integers(1, 20))
    arrival = np.cumsum([draw(st.integers(0, 6)) for _ in range(n)]).astype(float)
    tenant = np.array([draw(st.integers(0, 2)) for _ in range(n)])
    size = np.array([draw(st.integers(1, 9)) for _ in range(n)], dtype=float)
    return arrival, tenant, size, np.array([draw(st.integers(1, 4)) for _ in range(3)], dtype=float)


@settings(max_examples=200, deadline=None)
@given(queues(), st.sampled_from([0.5, 1.0, 3.0]))
def test_wfq_ends_at_most_one_largest_item_after_the_fluid_server(
    case: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray], rate: float
) -> None:
    arrival, tenant, size, weight = case
    fluid, tag = wfq.fluid_finishes(arrival, tenant, size, weight, rate)
    packet = wfq.packet_finishes(arrival, size, tag, rate)
    assert (packet <= fluid + size.max() / rate + CLOSE).all()
    # Both are work-conserving: they end busy periods together.
    assert fluid.max() == pytest.approx(packet.max())


def test_wfq_fluid_server_by_hand() -> None:
    """Weights 1 and 3, both with 6 units at 0: tenant 1 runs at 3/4 and ends at 8; tenant 0 has 4 left, ends at 12."""
    end, _ = wfq.fluid_finishes(np.zeros(2), np.array([0, 1]), np.array([6.0, 6.0]), np.array([1.0, 3.0]), 1.0)
    assert end.tolist() == pytest.approx([12.0, 8.0])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=40, max_size=40), st.lists(st.integers(1, 9), min_size=40, max_size=40))
def test_start_time_fair_queueing_keeps_backlogged_tenants_close(first: list[int], second: list[int]) -> None:
    """|W_0/w_0 − W_1/w_1| ≤ l_0/w_0 + l_1/w_1 while both have work (Goyal et al., theorem 1)."""
    sizes, weight = [first, second], (1.0, 3.0)
    finish, served, done, virtual = [0.0, 0.0], [0.0, 0.0], [0, 0], 0.0
    bound = max(first) / weight[0] + max(second) / weight[1]
    while done[0] < 40 and done[1] < 40:
        tags = [wfq.start_tag(virtual, f) for f in finish]
        t = 0 if tags[0] <= tags[1] else 1
        size = sizes[t][done[t]]
        virtual = tags[t]
        finish[t] = wfq.finish_tag(tags[t], size, weight[t])
        served[t] += size / weight[t]
        done[t] += 1
        assert abs(served[0] - served[1]) <= bound + CLOSE


def test_lottery_shares_are_within_their_standard_deviation() -> None:
    tickets = np.array([5.0, 3.0, 2.0, 0.0])
    n, runs = 1000, 200
    part = tickets / tickets.sum()
    limit = np.sqrt(part * (1 - part) / n)
    shares = np.array([np.bincount(lottery.draws(tickets, n, seed), minlength=4) / n for seed in range(runs)])
    assert (shares[:, 3] == 0).all()
    z = (shares[:, :3] - part[:3]) / limit[:3]
    assert abs(z.mean(axis=0)).max() < 4 / math.sqrt(runs)
    within = (abs(z) <= 1).mean()
    assert within == pytest.approx(0.683, abs=4 * math.sqrt(0.683 * 0.317 / (runs * 2)))
    assert (abs(z) <= 4.5).all()


def test_lottery_tickets_are_those_of_the_resource_needed_most() -> None:
    tickets = np.array([[10.0, 1.0], [1.0, 10.0]])
    assert lottery.tickets_for(tickets, np.array([1.0, 80.0]), np.array([8.0, 100.0]), 0) == 1.0
    assert lottery.tickets_for(tickets, np.array([7.0, 80.0]), np.array([8.0, 100.0]), 0) == 10.0


def test_decayed_usage_by_hand() -> None:
    """4 GPUs for one half-life leave 4·h/ln 2·(1 − ½); another half-life idle halves that."""
    held = decayed.usage_at(0.0, 0.0, 4.0, 100.0, 100.0)
    assert held == pytest.approx(4 * 100 / math.log(2) / 2)
    assert decayed.usage_at(held, 100.0, 0.0, 200.0, 100.0) == pytest.approx(held / 2)
    assert decayed.usage_key(held, 100.0, 0.0, 100.0, 100.0, 2.0) == pytest.approx(held / 2)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(1.0, 100.0), min_size=1, max_size=6))
def test_shortest_first_on_the_whole_cluster_is_finish_time_fair(alone: list[float]) -> None:
    """The i-th shortest ends after at most i times its own time, and ρ compares with N times: sharing cost nobody."""
    ends = np.cumsum(sorted(alone))
    rhos = [themis.rho(end - time, time, time, len(alone)) for end, time in zip(ends, sorted(alone), strict=True)]
    assert max(rhos) <= 1 + CLOSE
    # With 1/N of the cluster from the start, ρ is 1 for everyone.
    assert [themis.rho(0.0, time * len(alone), time, len(alone)) for time in alone] == pytest.approx([1.0] * len(alone))


def test_finish_time_fairness_offers_to_those_worst_off() -> None:
    assert themis.offered_to([1.0, 3.0, 2.0, 0.5], 0.5) == [1, 2]
    assert themis.offered_to([1.0, 3.0], 1.0) == [1]
    assert themis.rho_key(30.0, 10.0, 10.0, 2.0) < themis.rho_key(10.0, 10.0, 10.0, 2.0)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_tenant_within_its_guarantee_can_always_reclaim_it(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 4))
    guaranteed = np.array([[data.draw(st.integers(0, 8))] for _ in range(n)], dtype=float)
    capacity = guaranteed.sum(axis=0)
    held = np.zeros((n, 1))
    for t in range(n):
        held[t, 0] = data.draw(st.integers(0, int(capacity[0] - held.sum())))
    t = data.draw(st.integers(0, n - 1))
    request = np.array([float(data.draw(st.integers(0, 8)))])
    within = held[t, 0] + request[0] <= guaranteed[t, 0]
    free = capacity - held.sum(axis=0)
    assert quota.reclaimable(held, request, guaranteed, free, t) == within
    if within and request[0] > free[0]:
        order = quota.reclaim_order(held, guaranteed, capacity, t)
        assert order
        assert all(held[i, 0] > guaranteed[i, 0] for i in order)


def test_a_hard_quota_allows_up_to_the_limit() -> None:
    held, most = np.array([[3.0, 10.0]]), np.array([[4.0, math.inf]])
    assert quota.allows(held, np.array([1.0, 99.0]), most, 0)
    assert not quota.allows(held, np.array([2.0, 0.0]), most, 0)
    assert quota.allows(held, np.array([0.0, 1.0]), np.array([[2.0, 99.0]]), 0)


def test_keys_can_be_compiled() -> None:
    held, capacity = np.array([[2.0, 0.0], [1.0, 3.0]]), np.array([4.0, 4.0])
    share = njit(drf.dominant_share)
    assert [share(held, capacity, np.ones((2, 2)), t) for t in range(2)] == [0.5, 0.75]
    assert njit(quota.allows)(held, np.array([3.0, 0.0]), np.full((2, 2), 4.0), 0) is False
    assert njit(decayed.usage_at)(8.0, 0.0, 0.0, 10.0, 10.0) == pytest.approx(4.0)
