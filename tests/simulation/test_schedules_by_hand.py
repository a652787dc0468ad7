"""Schedules worked by hand: who goes next, who may overtake, and gangs that start whole or not at all."""

from __future__ import annotations

import math

import pytest

from gputwin.simulation.machines import cluster_models
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.run import run
from tests.oracles.cases import Case, cluster_of, outcomes_of, workload_of_jobs
from tests.oracles.reference import Ask, Node
from tests.simulation.by_hand import gang, gpus, job, nodes, places, starts

ONE = gpus(1)
TWO = gpus(2)

# --- Who goes next. One GPU is busy until 10; the others queue meanwhile. ---


def test_in_order_of_submission():
    # A, B, C in the order they came: 10, 10+5 = 15, 15+1 = 16.
    case = Case((Node(1),), (job(0, 10, ONE), job(1, 5, ONE), job(2, 1, ONE), job(3, 3, ONE)))
    assert starts(case.by_engine("fifo")) == [0, 10, 15, 16]


def test_the_shortest_predicted_goes_first():
    # Predictions 5, 1, 3: B at 10, C at 11, A at 11+3 = 14.
    case = Case((Node(1),), (job(0, 10, ONE), job(1, 5, ONE), job(2, 1, ONE), job(3, 3, ONE)))
    assert starts(case.by_engine("sjf")) == [0, 14, 10, 11]


def test_shortest_first_goes_by_the_prediction_not_by_the_truth():
    # A takes 9 but is believed to take 1, B takes 2 and is believed to take 3: A at 10, B at 19.
    case = Case((Node(1),), (job(0, 10, ONE), job(1, 9, ONE, predicted=1), job(1, 2, ONE, predicted=3)))
    assert starts(case.by_engine("sjf")) == [0, 10, 19]


def test_the_smallest_gpu_time_goes_first():
    # GPU-seconds: A 4 × 1 = 4, B 3 × 2 = 6, C 10 × 0.2 = 2. At 10 C takes a fifth of a GPU and A the other GPU;
    # B needs both: C ends at 20.
    case = Case((Node(2),), (job(0, 10, TWO), job(1, 4, ONE), job(1, 3, TWO), job(1, 10, gpus(1, 200))))
    assert starts(case.by_engine("gpu-time")) == [0, 10, 20, 10]


def test_gpu_time_counts_all_instances_of_a_gang():
    # A: 3 s × 2 instances × 1 GPU = 6; B: 5 s × 1 = 5 goes first although it is longer: B 10–15, A needs both GPUs: 15.
    case = Case((Node(2),), (job(0, 10, TWO), job(1, 3, ONE, 2), job(2, 5, ONE)))
    assert starts(case.by_engine("gpu-time")) == [0, 15, 10]


def test_priority_grows_with_the_wait():
    # Aging 0.001 a second: one step of priority is worth 1000 s of waiting. At 3000: L (priority 0, since 1) has
    # 0 + 2.999, H (1, since 500) has 1 + 2.5 = 3.5, M (1, since 1500) has 1 + 1.5 = 2.5: H, L, M.
    case = Case(
        (Node(1),),
        (job(0, 3000, ONE), job(1, 10, ONE), job(500, 10, ONE, priority=1), job(1500, 10, ONE, priority=1)),
    )
    assert starts(case.by_engine("priority")) == [0, 3010, 3000, 3020]


def test_whoever_has_waited_longest_goes_first_and_is_reserved_for():
    # Two GPUs. W wants both at 1; singles of 10 s come at 0 and every 5 s, and under greedy skip always take the GPU that
    # just fell free: W starts after the last of them, at 35. With a longest wait of 12 s it goes first from 13 on: the
    # singles of 5 and 10 end at 15 and 20, those of 15, 20 and 25 would delay it and wait: W at 20, done at 24.
    singles = [job(t, 10, ONE) for t in (0, 5, 10, 15, 20, 25)]
    case = Case((Node(2),), (singles[0], job(1, 4, TWO), *singles[1:]))
    assert starts(outcomes_of(case.run("priority", "greedy"), case.asks)) == [0, 35, 5, 10, 15, 20, 25]
    limited = outcomes_of(case.run("priority", "greedy", max_wait=12), case.asks)
    assert starts(limited) == [0, 20, 5, 10, 24, 24, 34]


def test_priority_ages_as_fast_as_it_is_told():
    # With 0.1 a second one step is worth 10 s: L is 499 s older than H and goes first.
    cluster = cluster_of((Node(1),))
    jobs = (job(0, 3000, ONE), job(1, 10, ONE), job(500, 10, ONE, priority=1))
    workload = workload_of_jobs(jobs, cluster_models(cluster))
    done = run(workload, cluster, Scheduler("priority", "strict", order_parameters={"aging": 0.1}))
    assert done.world.queue.jobs["start"].tolist() == [0, 3000, 3010]


@pytest.mark.parametrize("order", ["sjf", "gpu-time", "priority", "fifo"])
def test_equals_go_in_order_of_submission(order):
    case = Case((Node(1),), tuple(job(0, 5, ONE) for _ in range(4)))
    assert starts(case.by_engine(order)) == [0, 5, 10, 15]


@pytest.mark.parametrize("backfill", ["strict", "greedy", "easy"])
def test_arrivals_of_one_instant_are_put_in_order_before_anybody_starts(backfill):
    # Both come at 5 to an idle node; the shorter goes first though it is second in the trace: B 5–8, then A.
    case = Case((Node(2),), (job(5, 9, TWO), job(5, 3, ONE)))
    assert starts(case.by_engine("sjf", backfill)) == [8, 5]


@pytest.mark.parametrize("backfill", ["strict", "greedy", "easy", "loss"])
def test_jobs_end_before_others_arrive_at_the_same_instant(backfill):
    case = Case((Node(1),), (job(0, 5, ONE), job(5, 1, ONE)))
    assert starts(case.by_engine("fifo", backfill)) == [0, 5]


def test_a_job_of_no_duration_takes_its_turn():
    # A 0–4; B starts and ends at 4; C starts at 4 too.
    case = Case((Node(1),), (job(0, 4, ONE), job(1, 0, ONE), job(2, 3, ONE)))
    outcomes = case.by_engine()
    assert starts(outcomes) == [0, 4, 4]
    assert {outcome.fate for outcome in outcomes} == {"finished"}


# --- Who may overtake. Z holds one of two GPUs until 10, A (from 1) needs both, B and C need one. ---

Z, A, B, C = job(0, 10, ONE), job(1, 5, TWO), job(2, 3, ONE), job(4, 20, ONE)


def test_strict_nobody_overtakes_the_first():
    # A 10–15, then B and C side by side.
    assert starts(Case((Node(2),), (Z, A, B, C)).by_engine("fifo", "strict")) == [0, 10, 15, 15]


def test_greedy_whoever_fits_starts_so_large_jobs_starve():
    # B 2–5; C takes its GPU at 5 and holds it until 25, when A at last finds both free.
    assert starts(Case((Node(2),), (Z, A, B, C)).by_engine("fifo", "greedy")) == [0, 25, 2, 5]


def test_easy_lets_overtake_who_ends_before_the_shadow_time():
    # A is promised 10. B is believed to end at 2+3 = 5 ≤ 10 and starts; C would end at 25 and waits for A to end at 15.
    assert starts(Case((Node(2),), (Z, A, B, C)).by_engine("fifo", "easy")) == [0, 10, 2, 15]


def test_easy_a_job_that_ends_at_the_shadow_time_does_not_delay():
    # 4+6 = 10.
    assert starts(Case((Node(2),), (Z, A, job(4, 6, ONE))).by_engine("fifo", "easy")) == [0, 10, 4]


def test_easy_a_long_job_may_use_what_the_reservation_leaves():
    # A can only run on node 0; C goes to node 1 at once. The next long one would need node 0 and waits until 15.
    case = Case((Node(2), Node(1)), (Z, A, C, job(5, 20, ONE)))
    outcomes = case.by_engine("fifo", "easy")
    assert starts(outcomes) == [0, 10, 4, 15]
    assert nodes(outcomes[2]) == [1]


def test_easy_a_long_job_may_use_the_rest_of_a_reserved_node():
    # Three GPUs: Z holds one until 10 and A will need two, so one is left beside the reservation, for C but not for D.
    case = Case((Node(3),), (Z, job(1, 5, gpus(3)), job(2, 5, TWO), C))
    # A' (3 GPUs) first: it needs all; C (until 24) would delay it, the 2-GPU job (2–7) would not.
    assert starts(case.by_engine("fifo", "easy")) == [0, 10, 2, 15]
    case = Case((Node(4),), (Z, job(1, 5, gpus(4)), C))
    assert starts(case.by_engine("fifo", "easy")) == [0, 10, 15]
    case = Case((Node(3),), (job(0, 10, TWO), job(1, 5, TWO), C, job(4, 20, ONE)))
    # Z' holds devices 0 and 1 until 10, then A takes them; device 2 stays for C; D waits until A ends.
    outcomes = case.by_engine("fifo", "easy")
    assert starts(outcomes) == [0, 10, 4, 15]
    assert places(outcomes)[2] == [(0, (2,))]


def test_easy_a_job_that_outlives_its_prediction_is_believed_to_run_as_long_again():
    # Z is believed to end at 4, then at 4+4 = 8, then at 8+8 = 16; it ends at 10. A (both GPUs) is first in line.
    # B comes at 5 and is believed to end at 11 > 8: refused. At 8 the shadow moves to 16 and 8+6 = 14 ≤ 16: B 8–14.
    # So A starts at 14, not at 10: the price of the wrong prediction.
    case = Case((Node(2),), (job(0, 10, ONE, predicted=4), job(1, 5, TWO), job(5, 6, ONE)))
    assert starts(case.by_engine("fifo", "easy")) == [0, 14, 8]


def test_easy_an_early_end_is_used_at_once():
    # Z is believed to end at 10 but ends at 4. B (5 s) comes at 2, ends by 10, and holds A up until 7.
    case = Case((Node(2),), (job(0, 4, ONE, predicted=10), job(1, 5, TWO), job(2, 5, ONE)))
    assert starts(case.by_engine("fifo", "easy")) == [0, 7, 2]


def test_easy_the_promise_is_made_anew_when_somebody_more_urgent_takes_what_was_promised():
    # H (from 1, both GPUs) is promised 10. X, more urgent, takes the free GPU from 2 to 102, so H can only start at 102;
    # Y (20 s, after H in order) finds Z's GPU free at 10 and ends at 30, long before.
    urgent = job(2, 100, ONE, priority=5)
    case = Case((Node(2),), (job(0, 10, ONE, priority=5), job(1, 5, TWO), urgent, job(3, 20, ONE)))
    assert starts(case.by_engine("priority", "easy")) == [0, 102, 2, 10]


def test_easy_keeps_free_a_place_that_a_limit_per_node_makes_scarce():
    # H needs node 0's GPU (free at 10) for its first group and, for its second, the one place that application y may have
    # on node 1 (at 10 node 0 is full). The third job would take that place until 21 and must wait: H 10–15.
    limited = gpus(1, 500, limit=1, application="y")
    case = Case((Node(1), Node(1)), (job(0, 10, ONE), gang(1, 5, (ONE, 1), (limited, 1)), job(1, 20, limited)))
    assert starts(case.by_engine("fifo", "easy")) == [0, 10, 15]


@pytest.mark.parametrize(("now", "shadow"), [(0.6, 1.7), (0.7, 2.9), (1.2, 3.4), (0.03, 0.29)])
def test_easy_copes_with_rounding(now, shadow):
    # The last job is believed to end at the shadow time: 1.1 ≤ 1.7 - 0.6, but in floating point 0.6 + 1.1 > 1.7.
    # Whether it may overtake or not, the one in front is not held up and the run comes to an end.
    predicted = round(shadow - now, 2)
    case = Case((Node(2),), (job(0, shadow, ONE), job(0, now, ONE), job(0, 1, TWO), job(now / 2, predicted, ONE)))
    outcomes = case.by_engine("fifo", "easy")
    assert {outcome.fate for outcome in outcomes} == {"finished"}
    assert outcomes[2].start == pytest.approx(shadow)


# --- Conservative: everybody has a promise. Z holds two of three GPUs until 10; A needs two, B three, C one. ---

D, E, F, G = job(0, 10, TWO), job(1, 5, TWO), job(2, 5, gpus(3)), job(3, 100, ONE)


def test_conservative_nobody_who_waits_is_delayed():
    # E is promised 10 and F 15, when E ends. The third GPU is free, but G (100 s) would hold F up: 20, when F ends.
    # EASY promises only E something: G starts at 3 and F waits until 103.
    assert starts(Case((Node(3),), (D, E, F, G)).by_engine("fifo", "conservative")) == [0, 10, 15, 20]
    assert starts(Case((Node(3),), (D, E, F, G)).by_engine("fifo", "easy")) == [0, 10, 103, 3]


def test_conservative_gaps_between_plans_are_filled():
    # 12 s from 3 on end at 15, when F begins; 4 s more cannot, and wait until 20.
    case = Case((Node(3),), (D, E, F, job(3, 12, ONE), job(4, 16, ONE)))
    assert starts(case.by_engine("fifo", "conservative")) == [0, 10, 15, 3, 20]


def test_conservative_a_plan_may_begin_where_another_ends_on_the_same_device():
    # Half a GPU is held until 10, then promised to the second job (a whole GPU from 10 to 15 …), the third (half, until 10)
    # fits beside the first; the fourth (half, 11 s) would reach into the second's time.
    half = gpus(1, 500)
    case = Case((Node(1),), (job(0, 10, half), job(1, 5, ONE), job(2, 8, half), job(3, 11, half)))
    assert starts(case.by_engine("fifo", "conservative")) == [0, 10, 2, 15]


def test_conservative_shares_that_follow_each_other_leave_the_rest_free():
    # R holds half a GPU until 10, P (a whole GPU's worth of CPU, half a GPU) is promised that half at 10: at any time half
    # is left for L, which runs from 2 to 32 beside both.
    half, busy = gpus(1, 500, cpu=3000), gpus(1, 500, cpu=1000)
    case = Case((Node(1, cpu=4000),), (job(0, 10, half), job(1, 10, half), job(2, 30, busy)))
    assert starts(case.by_engine("fifo", "conservative")) == [0, 10, 2]


def test_conservative_plans_move_up_when_somebody_ends_early():
    # D is believed to run until 10 but ends at 4: E 4–9, F 9–14, G 14.
    case = Case((Node(3),), (job(0, 4, TWO, predicted=10), E, F, G))
    assert starts(case.by_engine("fifo", "conservative")) == [0, 4, 9, 14]


def test_conservative_nobody_is_forgotten_when_plans_are_made_anew():
    # All need the whole node. B runs from 0 to 6 but is believed to end at 1, then 2, 4 and 8; C (5 s) goes before A (1 s).
    # Plans are made anew one by one, each beside the others' old ones:
    # 0: C 1–6, A 6–7.   1: C beside A's 6–7 only at 7–12, A 2–3.   2: C 4–9, A 9–10.   4: C beside 9–10 at 10–15, A 8–9.
    # 6: B has ended: C beside 8–9 at 9–14, A at once, 6–7. Then nothing runs, and C starts at 9.
    b, c = job(0, 6, TWO, predicted=1, priority=2), job(0, 1, TWO, predicted=5, priority=2)
    case = Case((Node(2),), (job(0, 1, TWO), b, c))
    assert starts(case.by_engine("priority", "conservative")) == [6, 0, 9]


@pytest.mark.parametrize("predicted", [0, 1e-9])
def test_conservative_a_job_believed_to_take_no_time_still_holds_its_place(predicted):
    case = Case((Node(1),), (job(0, 4, ONE), job(1, 5, ONE, predicted=predicted), job(2, 3, ONE)))
    assert starts(case.by_engine("fifo", "conservative")) == [0, 4, 9]


def test_loss_who_does_not_fit_at_once_is_lost():
    # B comes while A holds the GPU; C at the very moment it is free again.
    outcomes = Case((Node(1),), (job(0, 5, ONE), job(4, 5, ONE), job(5, 5, ONE))).by_engine("fifo", "loss")
    assert [outcome.fate for outcome in outcomes] == ["finished", "lost", "finished"]
    assert math.isnan(outcomes[1].start)


def test_loss_does_not_care_for_predictions():
    jobs = tuple(job(0, 9, gpus(1, 200), predicted=1) for _ in range(12))
    outcomes = Case((Node(2),), jobs).by_engine("fifo", "loss")
    # Five fifths on each of two GPUs.
    assert [outcome.fate for outcome in outcomes] == ["finished"] * 10 + ["lost"] * 2


# --- Gangs. ---


def test_a_gang_starts_whole_and_holds_nothing_while_it_waits():
    # Z holds a GPU of node 0 until 10. The gang needs both GPUs of both nodes: it waits for 10 and keeps nobody from
    # node 1 meanwhile.
    case = Case((Node(2), Node(2)), (job(0, 10, ONE), job(1, 5, TWO, 2), job(2, 3, TWO)))
    outcomes = case.by_engine("fifo", "greedy")
    assert starts(outcomes) == [0, 10, 2]
    assert places(outcomes)[1] == [(0, (0, 1)), (1, (0, 1))]
    assert places(outcomes)[2] == [(1, (0, 1))]


def test_groups_of_a_job_start_together():
    # Two workers with a GPU each and a parameter server with 3 of 4 cores: the cores are free at 6.
    server = Ask(cpu=3000)
    case = Case((Node(2, cpu=4000),), (job(0, 6, Ask(cpu=2000)), gang(1, 5, (server, 1), (ONE, 2)), job(2, 1, ONE)))
    outcomes = case.by_engine("fifo", "greedy")
    assert starts(outcomes) == [0, 6, 2]
    # The workers ask for more GPU share, so they are placed first.
    assert places(outcomes)[1] == [(0, (0,)), (0, (1,)), (0, ())]


def test_a_limit_per_node_spreads_a_gang():
    spread = gpus(1, limit=1, application="x")
    case = Case((Node(2), Node(2)), (job(0, 5, spread, 2), job(1, 5, spread)))
    outcomes = case.by_engine()
    assert nodes(outcomes[0]) == [0, 1]
    assert starts(outcomes) == [0, 5]


def test_what_not_even_the_empty_cluster_holds_is_told_apart_and_holds_nobody_up():
    too_many, wrong_model = job(0, 5, TWO, 3), job(0, 5, gpus(1, models=frozenset({"B"})))
    over_limit = job(0, 5, gpus(1, limit=1, application="x"), 3)
    together = gang(0, 5, (TWO, 1), (TWO, 2))
    case = Case((Node(2, "A"), Node(2, "A")), (too_many, wrong_model, over_limit, together, job(0, 5, TWO, 2)))
    outcomes = case.by_engine()
    assert [outcome.fate for outcome in outcomes] == ["never fits"] * 4 + ["finished"]
    assert outcomes[4].start == 0


@pytest.mark.parametrize("placement", ["first-fit", "best-fit", "worst-fit", "consolidate", "topology", "fgd"])
def test_shares_of_several_gpus_are_never_promised_twice_nor_forgotten(placement):
    # Three instances of half of two GPUs each need three GPUs, taken as 0+1, 1+2, 0+2. A placement that takes 0+1 twice
    # must say that the job never fits; it must not leave it waiting for ever.
    case = Case((Node(3),), (job(0, 5, gpus(2, 500), 3),))
    (outcome,) = case.by_engine("fifo", "strict", placement)
    assert outcome.fate in ("finished", "never fits")
    if outcome.fate == "finished":
        taken = [device for _, devices in places([outcome])[0] for device in devices]
        assert sorted(taken) == [0, 0, 1, 1, 2, 2]
