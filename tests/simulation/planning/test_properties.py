"""What planners promise, on random cases, and the plans of simple ones worked out by hand."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy._core._multiarray_umath import __cpu_baseline__, __cpu_features__
from scipy.optimize import linprog

from gputwin.simulation.planning.max_min import worth_of
from gputwin.simulation.planning.shares import isolated_shares
from gputwin.simulation.planning.snapshot import PLANNERS, Floats, Plan, Snapshot, snapshot_of

CLOSE = 1e-4
SLOW_AND_FAST = ("slow", "fast"), np.array([1.0, 1.0])


def planned(name: str, snapshot: Snapshot) -> Plan:
    return PLANNERS.get(name).make()(snapshot)


@st.composite
def cases(draw: st.DrawFn, busy: bool = False, gangs: bool = True) -> Snapshot:
    """Return jobs of different speeds on up to three models; `busy`: an equal part is less than any of them can use."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    models = draw(st.integers(1, 3))
    capacity = rng.integers(1, 9, models).astype(float)
    jobs = draw(st.integers(1, 12)) + (int(capacity.sum()) if busy else 0)
    gpus = np.minimum(rng.choice([1.0, 1.0, 2.0, 4.0] if gangs else [1.0], jobs), capacity.max())
    throughputs = rng.lognormal(0, 1.0, (jobs, models)) * (gpus[:, None] <= capacity)
    steps = rng.lognormal(5, 1.0, jobs)
    return snapshot_of(tuple("abc"[:models]), capacity, throughputs, gpus=gpus, steps_left=steps)


@pytest.mark.parametrize("name", PLANNERS.names())
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_plan_gives_no_time_twice(name: str, data: st.DataObject) -> None:
    """AlloX is for jobs of one GPU: of gangs it plans more than fit, and rounds start those that do."""
    case = data.draw(cases(gangs=name != "allox"))
    shares = planned(name, case).alone
    assert (shares >= -CLOSE).all()
    assert (shares.sum(axis=1) <= 1 + CLOSE).all()
    assert ((shares * case.gpus[:, None]).sum(axis=0) <= case.capacity + CLOSE).all()


@settings(max_examples=60, deadline=None)
@given(case=cases(busy=True))
def test_max_min_gives_each_job_at_least_what_its_own_part_of_the_cluster_would(case: Snapshot) -> None:
    """Sharing incentive (Narayanan et al., OSDI'20, section 4.4)."""
    alone = (case.throughputs * isolated_shares(case)).sum(axis=1)
    assert (planned("max-min-speed", case).throughputs(case) >= alone * (1 - CLOSE)).all()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(case=cases(gangs=False))
def test_water_filling_is_never_behind_max_min_for_the_worst_off(case: Snapshot) -> None:
    """Sorted from the worst off, the first who is treated otherwise is better off."""
    filled, plain = (
        np.sort(planned(name, case).throughputs(case) / worth_of(case)) for name in ("water-filling", "max-min-speed")
    )
    apart = np.flatnonzero(abs(filled - plain) > 1e-3 * plain)
    assert not apart.size or filled[apart[0]] > plain[apart[0]]


@settings(max_examples=40, deadline=None)
@given(case=cases())
def test_finish_time_fairness_delays_nobody_beyond_its_own_part_of_the_cluster(case: Snapshot) -> None:
    """At the first plan: the parts themselves are a plan with a ratio of 1, so the best is no worse."""
    rate = planned("finish-time-speed", case).throughputs(case)
    alone = (case.throughputs * isolated_shares(case)).sum(axis=1)
    assert (rate >= alone * (1 - CLOSE)).all()


@settings(max_examples=40, deadline=None)
@given(case=cases())
def test_no_plan_without_optimisation_has_a_lower_makespan(case: Snapshot) -> None:
    def last_end(name: str) -> float:
        return float((case.steps_left / planned(name, case).throughputs(case)).max())

    best = last_end("makespan")
    assert all(best <= last_end(name) * (1 + CLOSE) for name in ("isolated", "proportional", "max-min-speed"))


@pytest.mark.parametrize(
    ("name", "jobs", "share"),
    [("isolated", 2, [2 / 3, 1 / 3]), ("isolated", 4, [1 / 2, 1 / 4]), ("proportional", 4, [1 / 2, 1 / 4])],
)
def test_equal_parts_by_hand(name: str, jobs: int, share: list[float]) -> None:
    """Two GPUs of model a and one of b. Of two jobs each would get 1 and ½, more than all of its time."""
    found = planned(name, snapshot_of(("a", "b"), np.array([2.0, 1.0]), np.ones((jobs, 2)))).alone
    assert found == pytest.approx(np.tile(share, (jobs, 1)))


def two(throughputs: list[list[float]], steps: list[float], elapsed: Floats | None = None) -> Snapshot:
    return snapshot_of(*SLOW_AND_FAST, np.array(throughputs), steps_left=np.array(steps), seconds_since_submit=elapsed)


def test_makespan_by_hand() -> None:
    """A has f of the fast GPU: 1 + 3 f steps a second, B 2 − f; both end 30 steps at once for f = ¼."""
    case = two([[1, 4], [1, 2]], [30, 30])
    assert planned("makespan", case).throughputs(case) == pytest.approx([1.75, 1.75], abs=1e-3)


def test_finish_time_by_hand() -> None:
    """Halves of both GPUs would take A 12 s and B 20 s. A has waited 6 s: (6 + 30/(1 + 3 f)) / 12 = 30/(2 − f) / 20."""
    case = two([[1, 4], [1, 2]], [30, 30], np.array([6.0, 0.0]))
    f = (21**0.5 - 3) / 2
    assert planned("finish-time-speed", case).throughputs(case) == pytest.approx([1 + 3 * f, 2 - f], abs=1e-3)


def test_first_come_first_served_within_an_entity_stops_where_gpus_are_out() -> None:
    """Two GPUs: the first two jobs have one each, nothing is left for the third, nor for a gang of two."""
    throughputs = np.array([[1.0], [2.9], [4.0], [2.0]])
    case = snapshot_of(("a",), np.array([2.0]), throughputs, gpus=np.array([1.0, 1.0, 1.0, 2.0]))
    assert planned("hierarchical-fifo", case).alone[:, 0] == pytest.approx([1, 1, 0, 0], abs=1e-3)


@pytest.mark.parametrize("name", ["water-filling", "hierarchical-fair"])
def test_who_has_no_competitor_has_its_fastest_model(name: str) -> None:
    """A, a gang of four, is fastest on b, where it fits; B on c."""
    throughputs = np.array([[1.6, 3.2, 0.0], [0.7, 0.6, 2.2]])
    case = snapshot_of(("a", "b", "c"), np.array([6.0, 7.0, 1.0]), throughputs, gpus=np.array([4.0, 1.0]))
    assert planned(name, case).throughputs(case) == pytest.approx([3.2, 2.2], abs=1e-3)


def test_allox_by_hand() -> None:
    """A: 30 s slow, 7.5 s fast. B: 6 s slow, 4 s fast: 7.5 + 6 beats 4 + 11.5. If B takes 60 s slow, both go fast."""
    assert planned("allox", two([[1, 4], [1, 1.5]], [30, 6])).alone.tolist() == [[0, 1], [1, 0]]
    assert planned("allox", two([[1, 4], [0.1, 1.5]], [30, 6])).alone[:, 1].tolist() == [0, 1]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_first_come_first_served_raises_each_job_as_far_as_those_before_it_leave_room(seed: int) -> None:
    """Of many more jobs than there are GPUs; the oracle raises one job after the other with HiGHS."""
    rng = np.random.default_rng(seed)
    gpus = rng.choice([1.0, 2.0, 4.0, 8.0], 60)
    case = snapshot_of(("a", "b", "c"), np.full(3, 12.0), rng.lognormal(0, 1.0, (60, 3)), gpus=gpus)
    best = _one_after_the_other(case)
    assert planned("hierarchical-fifo", case).throughputs(case) == pytest.approx(best, rel=1e-3, abs=1e-3)


def _one_after_the_other(case: Snapshot) -> Floats:
    jobs, models = case.throughputs.shape
    rates = np.zeros((jobs, jobs * models))
    times, held = np.zeros_like(rates), np.zeros((models, jobs * models))
    for i in range(jobs):
        mine = slice(i * models, (i + 1) * models)
        rates[i, mine], times[i, mine], held[:, mine] = case.throughputs[i], 1.0, case.gpus[i] * np.eye(models)
    best = np.zeros(jobs)
    for i in range(jobs):
        limits = np.concatenate([-best * (1 - 1e-6), np.ones(jobs), case.capacity])
        found = linprog(-rates[i], A_ub=np.concatenate([-rates, times, held]), b_ub=limits, bounds=(0, 1))
        best[i] = max(-found.fun, 0.0)
    return best


def test_plans_are_the_same_to_the_last_bit_on_other_processors() -> None:
    """Without wide vector instructions, and with the linear algebra of a processor of 2008."""
    without = [name for name, has in __cpu_features__.items() if has and name not in __cpu_baseline__]
    older = {"NPY_DISABLE_CPU_FEATURES": " ".join(without), "OPENBLAS_CORETYPE": "Nehalem", "OMP_NUM_THREADS": "1"}
    here, there = (
        subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.simulation.planning.print_plans"],
            env={**os.environ, **processor},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for processor in ({}, older)
    )
    assert here.count("\n") == len(PLANNERS.names())
    assert here == there
