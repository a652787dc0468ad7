"""Schedules worked by hand in which jobs share GPUs: beside each other, in turn, in MIG instances; and what slowed whom."""

from __future__ import annotations

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.simulation.engine.state.lives import SEGMENTS
from gputwin.simulation.engine.state.records import START
from gputwin.simulation.explain import explain
from gputwin.simulation.interference.table import PairTable
from gputwin.simulation.result import result_of
from gputwin.simulation.rules import Changes, Scheduler, check_rules
from gputwin.simulation.run import Run, run
from gputwin.simulation.segments import placements_of
from gputwin.simulation.shared import GpuSharing
from tests.oracles.cases import Case, bits
from tests.oracles.reference import Node
from tests.simulation.by_hand import gpus, job

# Kind 0 is slowed to half by its own kind and not at all by kind 1; kind 1 to a quarter by kind 0.
PAIRS = PairTable(("a", "b"), ("v100",), np.array([[[0.5, 1.0], [0.25, 0.5]]]), np.ones((1, 2)))


def play(case: Case, sharing: GpuSharing, placement: str = "first-fit", **parameters: float) -> Run:
    workload, cluster, typical = case.engine_input
    rules = Scheduler("fifo", "greedy", placement, placement_parameters=parameters)
    return run(workload, cluster, rules, typical=typical, changes=Changes(sharing=sharing))


def lived(done: Run) -> list[tuple[int, float, float, float]]:
    """Return (job, start, end, rate) of each segment, by job and start."""
    lives = done.world.lives
    found = [
        (int(s["job"]), *(round(float(s[k]), 9) for k in ("start", "end", "rate")))
        for s in lives.segments[: lives.counts[SEGMENTS]]
    ]
    return sorted(found)


def ends(done: Run) -> list[float]:
    return [round(float(end), 9) for end in done.world.queue.jobs["end"]]


def slowed(done: Run) -> list[float]:
    return [round(float(s), 9) for s in done.world.lives.factors["slow_neighbours"]]


def test_a_neighbour_slows_a_job_from_its_start_to_its_end():
    """Each asks for half a GPU, so the measured slowdown of 2 counts half: 1 + 1 · 0.5 = 1.5 times as long."""
    half = gpus(1, 500)
    done = play(Case((Node(1),), (job(0, 10, half), job(2, 6, half))), GpuSharing(pairs=PAIRS))
    # Job 0 works 2 s alone, 6 s of work take 9 s, the last 2 s it is alone again.
    assert lived(done) == [(0, 0, 2, 1), (0, 2, 11, 0.666666667), (0, 11, 13, 1), (1, 2, 11, 0.666666667)]
    assert slowed(done) == [3, 3]


def test_the_slowdown_depends_on_both_kinds():
    """Kind 1 runs at a quarter beside a whole neighbour of kind 0: 1 + 3 · 0.5 = 2.5 times as long; kind 0 is not slowed."""
    done = play(
        Case((Node(1),), (job(0, 10, gpus(1, 500, kind=0)), job(0, 4, gpus(1, 500, kind=1)))), GpuSharing(pairs=PAIRS)
    )
    assert ends(done) == [10, 10]
    assert slowed(done) == [0, 6]


def test_neighbours_add_up_and_other_devices_do_not_count():
    quarter = gpus(1, 250)
    case = Case((Node(2),), (job(0, 7, quarter), job(0, 7, quarter), job(0, 7, quarter), job(0, 7, gpus(1))))
    done = play(case, GpuSharing(pairs=PAIRS))
    assert ends(done) == [10.5, 10.5, 10.5, 7]


def test_bandwidth_kept_for_high_priority_is_taken_from_its_neighbour():
    """Beside a whole neighbour each would run at 0.5. High priority keeps 0.8, so the other is left 0.2: per half neighbour
    1 + 0.25 / 2 and 1 + 4 / 2 times as long. Job 0 takes 9 s for 8; job 1 has done 3 of 6 by then, and ends at 12."""
    half = gpus(1, 500)
    case = Case((Node(1),), (job(0, 8, half, priority=1), job(0, 6, half)))
    done = play(case, GpuSharing("fraction", {"bandwidth": 0.8}, PAIRS))
    assert lived(done) == [(0, 0, 9, 0.888888889), (1, 0, 9, 0.333333333), (1, 9, 12, 1)]
    assert ends(play(case, GpuSharing("fraction", {}, PAIRS))) == [11, 9]
    # Nobody is of high priority: nothing is kept.
    assert ends(play(case, GpuSharing("fraction", {"bandwidth": 0.8, "priority": 2}, PAIRS))) == [11, 9]


def test_a_pool_of_memory_is_kept_for_high_priority():
    """16,000 MiB in eight partitions, of which the last two are a pool. Jobs 0 and 1 hold 4 and 5, and 0 to 3; job 2 of low
    priority waits until 10 though two are free, job 3 of high priority starts there at once."""
    asks = [(10, 4000, 0), (20, 8000, 0), (5, 2000, 0), (5, 4000, 1)]
    jobs = tuple(job(0, d, gpus(1, 200, gpu_memory=mib), priority=p) for d, mib, p in asks)
    done = play(Case((Node(1, gpu_memory=16_000),), jobs), GpuSharing("memory"))
    assert [float(s) for s in done.world.queue.jobs["start"]] == [0, 0, 10, 0]
    assert [int(slot["devices"]) >> START for slot in done.world.slots] == [4, 0, 5, 6]
    without = play(Case((Node(1, gpu_memory=16_000),), jobs), GpuSharing("memory", {"reserved": 0}))
    assert [float(s) for s in without.world.queue.jobs["start"]] == [0, 0, 0, 5]


def test_who_needs_the_pool_and_may_not_have_it_never_fits():
    large, whole = gpus(1, 800, gpu_memory=14_000), gpus(1)
    case = Case((Node(1, gpu_memory=16_000),), (job(0, 1, large), job(0, 1, large, priority=1), job(2, 1, whole)))
    done = play(case, GpuSharing("memory"))
    assert np.isnan(done.world.queue.jobs["start"]).tolist() == [True, False, False]


def test_a_gang_waits_for_its_slowest_instance():
    case = Case((Node(1), Node(1)), (job(0, 4, gpus(1, 500), 1), job(0, 10, gpus(1, 500), 2)))
    done = play(case, GpuSharing(pairs=PAIRS))
    assert [s["node"] for s in done.world.slots] == [0, 0, 1]
    # Until job 0 ends at 6 s, the instance beside it holds up both.
    assert lived(done)[1:] == [(1, 0, 6, 0.666666667), (1, 6, 12, 1)]


def test_mps_lets_whole_jobs_share_at_the_measured_speed():
    """Two jobs that ask for a whole GPU each run beside each other at half speed; a third waits."""
    done = play(
        Case((Node(1),), (job(0, 4, gpus(1)), job(0, 6, gpus(1)), job(1, 1, gpus(1)))),
        GpuSharing("mps", {"most": 2}, PAIRS),
    )
    assert lived(done) == [(0, 0, 8, 0.5), (1, 0, 10, 0.5), (1, 10, 11, 1), (2, 8, 10, 0.5)]


def test_time_slices_give_each_its_part():
    """Two jobs have half each; a third that needs a quarter of the GPU has that, and the others share the rest."""
    free = {"least_switch_ms": 0, "most_switch_ms": 0}
    case = Case((Node(1),), (job(0, 10, gpus(1)), job(2, 6, gpus(1)), job(3, 1, gpus(1, 250))))
    done = play(case, GpuSharing("time-slice", free))
    assert lived(done) == [
        (0, 0, 2, 1),
        (0, 2, 3, 0.5),
        (0, 3, 4, 0.375),
        (0, 4, 14.25, 0.5),
        (0, 14.25, 16.25, 1),
        (1, 2, 3, 0.5),
        (1, 3, 4, 0.375),
        (1, 4, 14.25, 0.5),
        (2, 3, 4, 1),
    ]


def test_switching_costs_time_by_the_memory_a_job_fills():
    """Quanta of 100 ms; a job that fills all memory is switched to in 10 ms, one that fills half in 5.5 ms."""
    node = Node(1, gpu_memory=1000)
    case = Case((node,), (job(0, 1, gpus(1, gpu_memory=500)), job(0, 1, gpus(1, gpu_memory=500))))
    done = play(case, GpuSharing("time-slice", {}))
    assert ends(done) == [pytest.approx(2 * 211 / 200)] * 2


def test_memory_must_fit_together_or_is_swapped():
    """12 GB/s: two jobs of 12,000 MiB on a GPU of 16,000 MiB move 4 · 12,000 MiB in each cycle."""
    large = gpus(1, gpu_memory=12_000)
    case = Case((Node(1, gpu_memory=16_000),), (job(0, 1, large), job(0, 1, large)))
    apart = play(case, GpuSharing("time-slice", {}))
    assert ends(apart) == [1, 2]
    done = play(case, GpuSharing("time-slice", {"swap": 1, "quantum_ms": 60_000}))
    cycle = 120 + 2 * 0.00775 + 4 * 12_000 * 2**20 / 12e9
    assert ends(done) == [pytest.approx(2 * cycle / 120)] * 2
    # With short quanta, sharing loses: both end later than the second of them alone.
    short = play(case, GpuSharing("time-slice", {"swap": 1}))
    assert min(ends(short)) > 2 * max(ends(apart))


def test_most_jobs_on_a_gpu_and_idle_gpus_first():
    case = Case((Node(2),), tuple(job(0, 2, gpus(1)) for _ in range(5)))
    done = play(case, GpuSharing("time-slice", {"most": 2, "least_switch_ms": 0, "most_switch_ms": 0}))
    assert [bits(int(s["devices"])) for s in done.world.slots] == [(0,), (1,), (0,), (1,), (0,)]
    assert ends(done) == [4, 4, 4, 4, 6]


def test_mig_instances_stand_only_where_they_may():
    """On an A100 of seven slices: a 1g at the last place, a 2g before it, a 3g at the front; nothing else fits."""
    case = Case(
        (Node(1, "A100"),),
        (
            job(0, 10, gpus(1, 140)),
            job(0, 4, gpus(1, 250)),
            job(0, 5, gpus(1, 400)),
            job(1, 5, gpus(1, 140)),
            job(2, 3, gpus(1, 500)),
            job(3, 2, gpus(1)),
        ),
    )
    done = play(case, GpuSharing("mig"))
    assert [float(s) for s in done.world.queue.jobs["start"]] == [0, 0, 0, 4, 5, 10]
    assert [int(s["devices"]) >> START for s in done.world.slots] == [6, 4, 0, 5, 0, 0]
    shown = placements_of(done)
    assert shown["devices"].to_list() == [1] * 6
    assert shown["first_slice"].to_list() == [6, 4, 0, 5, 0, 0]


def test_mig_speed_follows_the_share_of_multiprocessors():
    """Half of what it asks for is enough: 250 milli get a 1g, 14 of 98 SMs = 142 milli."""
    done = play(Case((Node(1, "A100"),), (job(0, 10, gpus(1, 250)),)), GpuSharing("mig", {"least_share": 0.5}))
    assert ends(done) == [pytest.approx(10 * 250 / 142)]


def test_compatible_placement_keeps_those_apart_that_slow_each_other():
    a, b = gpus(1, 500, kind=0), gpus(1, 500, kind=1)
    harmless = PairTable(("a", "b"), ("v100",), np.array([[[0.5, 1.0], [1.0, 0.5]]]), np.ones((1, 2)))
    case = Case((Node(2),), (job(0, 10, a), job(0, 10, a), job(1, 6, b), job(2, 6, b)))
    assert ends(play(case, GpuSharing(pairs=harmless))) == [15, 15, 9.5, 10.5]
    done = play(case, GpuSharing(pairs=harmless), "compatible")
    assert [bits(int(s["devices"])) for s in done.world.slots] == [(0,), (1,), (0,), (1,)]
    assert ends(done) == [10, 10, 7, 8]


def test_compatible_placement_opens_an_idle_gpu_only_where_neighbours_cost_more():
    """Two of kind a on a GPU slow each other by 0.5 each, 1 in all: less than an idle GPU counts at idle=1.1."""
    a = gpus(1, 500, kind=0)
    case = Case((Node(2),), (job(0, 10, a), job(0, 10, a)))
    assert ends(play(case, GpuSharing(pairs=PAIRS), "compatible", idle=0.9)) == [10, 10]
    assert ends(play(case, GpuSharing(pairs=PAIRS), "compatible", idle=1.1)) == [15, 15]


def test_explain_names_the_slow_neighbour_and_the_parts_sum():
    half = gpus(1, 500)
    done = play(Case((Node(1),), (job(0, 10, half), job(2, 6, half))), GpuSharing(pairs=PAIRS))
    result = result_of(done)
    told = explain(result, "job-0")
    assert told.slowed_by_neighbours_seconds == pytest.approx(3)
    assert [(n["job_id"], n["seconds"]) for n in told.neighbours] == [("job-1", 9.0)]
    assert "slowed it by 3 s; the one that pressed most was job job-1" in " ".join(told.story())
    parts = result.summary["completion_parts_seconds"]
    assert parts["slow_neighbours"] == pytest.approx(6)
    assert sum(parts.values()) == pytest.approx(13 + 9)


@pytest.mark.parametrize(
    ("sharing", "backfill", "words"),
    [
        (GpuSharing("time-slice", {"most": 0}), "greedy", "give 1 or more"),
        (GpuSharing("time-slice", {"most": 2.5}), "greedy", "whole number"),
        (GpuSharing("time-slice", {}, PAIRS), "greedy", "interference does not go with sharing 'time-slice'"),
        (GpuSharing("mps"), "greedy", "needs a table of pairs"),
        (GpuSharing("mig"), "easy", "does not go with backfill 'easy'"),
        (GpuSharing("memory"), "easy", "sharing 'memory' does not go with backfill 'easy'"),
        (GpuSharing("memory", {"reserved": 8}), "greedy", "give at most 7"),
        (GpuSharing("fraction", {"bandwidth": 1.5}, PAIRS), "greedy", "give at most 1"),
        (GpuSharing("fraction", {"bandwidth": 0.5}), "greedy", "give interference"),
        (GpuSharing("slices"), "greedy", "unknown sharing 'slices'"),
    ],
)
def test_what_does_not_go_together_is_refused_in_one_line(sharing, backfill, words):
    with pytest.raises(UserError) as caught:
        check_rules(Scheduler("fifo", backfill), Changes(sharing=sharing))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ((Node(1, "T4"),), "a T4 cannot be cut"),
        ((Node(1, "A100"), Node(1, "A30")), "are cut in different ways"),
        ((Node(0),), "has no GPUs"),
    ],
)
def test_mig_needs_gpus_that_can_be_cut_alike(nodes, words):
    with pytest.raises(UserError, match=words):
        play(Case(nodes, (job(0, 1, gpus(0)),)), GpuSharing("mig"))
