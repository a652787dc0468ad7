"""Node pools on small batch traces worked by hand: what starts when, who waits for it, what is paid."""

from __future__ import annotations

import numpy as np
import pytest

from gputwin.autoscaling.nodes.spec import layout_of
from gputwin.autoscaling.nodes.study import PoolOptions, compare_pools, simulate_fixed, simulate_pools
from gputwin.autoscaling.nodes.supply import SpotSupply, Zone
from gputwin.autoscaling.spot.expected import SpotWork
from gputwin.autoscaling.spot.hazard import Series
from gputwin.core.errors import UserError
from gputwin.simulation.interruptions import Checkpoints
from tests.autoscaling.nodes.made import pools
from tests.oracles.cases import trace_of_jobs
from tests.simulation.by_hand import gpus, job

ONE, TWO = gpus(1), gpus(2)
ZONE = Zone("z", np.array([0.0, 60.0]), np.array([1.0, 0.0]), 1e6)


def segments(outcome):
    from gputwin.simulation.segments import segments_of

    frame = segments_of(outcome.run).sort("start_time", "job")
    return [(j, s, e, str(w)) for j, s, e, _, w, _ in frame.iter_rows()]


def test_a_node_is_started_for_who_waits_and_removed_when_it_was_empty_for_a_while():
    # A waits 30 s for the boot and runs to 130; the node is empty for 60 s and leaves at 190. At 300 the same for B.
    trace = trace_of_jobs((job(0, 100, TWO), job(300, 5, ONE)))
    done = simulate_pools(pools(), trace, PoolOptions())
    assert segments(done) == [(0, 30, 130, "finished"), (1, 330, 335, "finished")]
    assert [(e.time, e.what) for e in done.events] == [(0, "launched"), (190, "removed"), (300, "launched")]
    score = done.score
    assert (score.mean_wait_seconds, score.startup_wait_seconds) == (30, 30)
    assert score.cost == pytest.approx(190 / 3600 * 6)
    assert score.allocated_cost == pytest.approx(100 / 3600 * 6)
    assert score.idle_cost == pytest.approx(90 / 3600 * 6)


def test_the_fixed_cluster_pays_every_node_all_the_time():
    trace = trace_of_jobs((job(0, 100, TWO), job(300, 5, ONE)))
    score = simulate_fixed(pools(), trace, PoolOptions()).score
    assert score.cost == pytest.approx(4 * 300 / 3600 * 6)
    assert (score.allocated_cost, score.p95_wait_seconds) == (pytest.approx(100 / 3600 * 6), 0.0)


def test_a_gang_gets_only_the_nodes_it_lacks():
    # A takes one GPU of the first node; B's three instances of one GPU need the other one and one more node.
    trace = trace_of_jobs((job(0, 500, ONE), job(100, 50, ONE, 3), job(300, 5, ONE)))
    done = simulate_pools(pools(), trace, PoolOptions())
    assert [(e.time, e.what) for e in done.events][:2] == [(0, "launched"), (100, "launched")]
    assert done.score.launches == 2


def test_jobs_that_nothing_can_stop_save_no_checkpoints():
    # On demand and not movable: a save every 20 s would cost time and protect from nothing.
    trace = trace_of_jobs((job(0, 100, TWO), job(300, 5, ONE)))
    saving = Checkpoints(20.0, 5.0, 5.0)
    done = simulate_pools(pools(), trace, PoolOptions(checkpoints=saving))
    assert segments(done)[0] == (0, 30, 130, "finished")
    spot = simulate_pools(pools(), trace, PoolOptions(checkpoints=saving), 1.0)
    assert segments(spot)[0] == (0, 30, 150, "finished")
    # Four saves of 5 s on a spot node that nobody took away: overhead, but no work was done again.
    assert spot.score.lost_gpu_hours == 0.0
    assert spot.score.overhead_gpu_hours == pytest.approx(4 * 5 * 2 / 3600)
    assert done.score.overhead_gpu_hours == 0.0


def test_the_slowest_waits_are_split_by_cause_and_full_pools_are_named():
    # Six jobs on at most four nodes: two wait for the boot and then for the first to end.
    trace = trace_of_jobs((*(job(0, 100, TWO) for _ in range(6)), job(500, 5, ONE)))
    score = simulate_pools(pools(count=4), trace, PoolOptions()).score
    assert sum(score.slow_wait_causes.values()) == pytest.approx(130.0)
    assert score.slow_wait_causes["node_startup"] == pytest.approx(30.0)
    assert score.at_limit["n"] > 0.5


def test_no_more_nodes_than_the_pool_may_have():
    trace = trace_of_jobs((*(job(0, 100, TWO) for _ in range(6)), job(500, 5, ONE)))
    done = simulate_pools(pools(count=4), trace, PoolOptions())
    assert [s for _, s, _, _ in segments(done)][:6] == [30.0] * 4 + [130.0] * 2
    assert done.bill.mean_nodes <= 4


def test_a_reclaimed_spot_node_stops_its_job_which_goes_on_demand():
    # Spot at 0 (cheaper), up at 30. At 60 the zone has no more: notice, gone at 80. On demand from 80, up at 110.
    trace = trace_of_jobs((job(0, 100, TWO), job(400, 5, ONE)))
    supply = SpotSupply((ZONE,), notice_seconds=20.0)
    done = simulate_pools(pools(), trace, PoolOptions(supply=supply), spot_share=0.5)
    assert segments(done)[:2] == [(0, 30, 80, "drained"), (0, 110, 210, "finished")]
    assert [(e.time, e.type, e.what) for e in done.events][:3] == [
        (0, "n-spot", "launched"),
        (60, "n-spot", "reclaimed"),
        (80, "n", "launched"),
    ]
    assert done.score.lost_gpu_hours == pytest.approx(50 * 2 / 3600)
    assert done.score.spot_cost == pytest.approx(80 / 3600 * 2)


def test_spot_nodes_cost_what_the_price_is_at_the_time():
    # As above: a spot node from 0 to 80. The price triples at 40; its mean over 400 s is 2.8, which stands for 2.
    prices = Series(np.array([0.0, 40.0]), np.array([1.0, 3.0]), 400.0)
    trace = trace_of_jobs((job(0, 100, TWO), job(400, 5, ONE)))
    supply = SpotSupply((ZONE,), notice_seconds=20.0, prices=prices)
    bill = simulate_pools(pools(), trace, PoolOptions(supply=supply), spot_share=0.5).bill
    assert bill.spot_cost == pytest.approx(2 * (40 * 1 + 40 * 3) / 2.8 / 3600)
    # At work from 30 to 80 there, and from 110 to 210 on demand.
    assert bill.cost.allocated == pytest.approx((2 * (10 * 1 + 40 * 3) / 2.8 + 6 * 100) / 3600)


def test_notice_lets_a_job_save_its_work():
    trace = trace_of_jobs((job(0, 100, TWO), job(400, 5, ONE)))
    options = PoolOptions(
        supply=SpotSupply((ZONE,), notice_seconds=20.0),
        checkpoints=Checkpoints(interval_seconds=1000.0, save_seconds=5.0),
    )
    done = simulate_pools(pools(), trace, options, spot_share=0.5)
    # 50 s are done at 80; then the save and the other 50 s.
    assert segments(done)[:2] == [(0, 30, 80, "drained"), (0, 110, 165, "finished")]


@pytest.mark.parametrize("rule", ["cluster-autoscaler", "karpenter"])
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_allocated_and_idle_add_up_to_what_is_paid(rule, share):
    dice = np.random.default_rng(3)
    jobs = sorted(
        (
            job(float(t), float(d), gpus(int(g)), int(k))
            for t, d, g, k in zip(
                dice.uniform(0, 4000, 60),
                dice.exponential(200, 60),
                dice.integers(1, 3, 60),
                dice.integers(1, 4, 60),
                strict=True,
            )
        ),
        key=lambda j: j.submit,
    )
    supply = SpotSupply((Zone("z", np.array([0.0, 900.0]), np.array([1.0, 0.5]), 1800.0),), 2.0, 10.0)
    made = pools(count=6, rule=rule, settings={})
    done = simulate_pools(made, trace_of_jobs(jobs), PoolOptions(supply=supply), share)
    price = np.concatenate([np.full(lane.count, lane.price) for lane in layout_of(made, share).lanes])
    bill = done.bill
    assert (bill.allocated_seconds <= bill.paid_seconds + 1e-6).all()
    assert bill.cost.allocated + bill.cost.idle == pytest.approx((bill.paid_seconds * price).sum() / 3600)
    assert done.score.unfinished == 0
    on = len({e.node for e in done.events if e.what == "launched"})
    assert 0 < on <= 9
    assert bill.mean_nodes < 6


def test_the_expected_cost_of_spot_is_what_the_simulation_shows():
    # 120 jobs of 2 h, a node lost every 2 h on average without notice, a save every 30 minutes.
    work = SpotWork(7200.0, 0.5, 2.0, save_seconds=60.0, restart_seconds=120.0)
    trace = trace_of_jobs((*(job(0, 7200, ONE) for _ in range(120)), job(40_000, 5, ONE)))
    checkpoints = Checkpoints(interval_seconds=1800.0, save_seconds=60.0, restart_seconds=120.0)
    options = PoolOptions(supply=SpotSupply((), 0.5, 0.0), checkpoints=checkpoints)
    made = pools(count=130, gpus=1, period_seconds=60.0, settings={})
    done = simulate_pools(made, trace, options, spot_share=1.0)
    held = np.zeros(121)
    for j, start, end, _ in segments(done):
        held[j] += end - start
    held = held[:120]
    error = held.std(ddof=1) / np.sqrt(held.size)
    cost = held.mean() / 3600 * 2.0
    assert abs(cost - work.expected_cost(1800.0)) < 3 * error / 3600 * 2.0
    assert done.score.reclaims > 60


def test_a_hazard_that_follows_the_price_costs_what_is_expected():
    # Cheap and calm for an hour, then three times the price and nine times the losses; the jobs come ten minutes before.
    prices = Series(np.array([0.0, 3600.0]), np.array([1.0, 3.0]), 7200.0)
    supply = SpotSupply((), 2.4, 0.0, prices, price_power=2.0)
    start = 3000.0
    trace = trace_of_jobs((job(0, 5, ONE), *(job(start, 1200, ONE) for _ in range(120)), job(7100, 5, ONE)))
    checkpoints = Checkpoints(interval_seconds=300.0, save_seconds=10.0, restart_seconds=20.0)
    made = pools(count=130, gpus=1, period_seconds=20.0, boot_seconds=0.0, settings={})
    done = simulate_pools(made, trace, PoolOptions(supply=supply, checkpoints=checkpoints), spot_share=1.0)
    relative = prices.relative()
    held = np.zeros(122)
    for j, begin, end, _ in segments(done):
        held[j] += relative.integral(end) - relative.integral(begin)
    held = held[1:121] / 3600
    work = SpotWork(1200.0, 2.4, 1.0, save_seconds=10.0, restart_seconds=20.0)
    expected = work.expected_cost_over_time(supply.hazard, 300.0, start, relative)
    assert abs(held.mean() - expected) < 3 * held.std(ddof=1) / np.sqrt(held.size)
    assert done.bill.cost.allocated == pytest.approx(2 * held.sum(), rel=1e-3)


def test_rules_and_shares_side_by_side():
    trace = trace_of_jobs((job(0, 100, TWO), job(300, 5, ONE)))
    found = compare_pools(
        pools(), trace, PoolOptions(), rules=("cluster-autoscaler", "karpenter"), spot_shares=(0.0, 0.5), seeds=(0, 1)
    )
    names = [(o.score.rule, o.score.spot_share, o.score.seed) for o in found]
    assert names[0] == ("fixed", 0.0, 0)
    assert names.count(("karpenter", 0.5, 1)) == 1
    assert len(names) == 1 + 2 * (1 + 2)


def test_settings_a_rule_does_not_have_are_one_line():
    trace = trace_of_jobs((job(0, 100, TWO),))
    with pytest.raises(UserError, match="autoscaler settings of 'cluster-autoscaler'"):
        simulate_pools(pools(settings={"speed": 1}), trace, PoolOptions())
