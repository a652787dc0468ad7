"""Elastic policies in the engine: schedules by hand, sizes against the plain rules and against exhaustive search."""

from __future__ import annotations

import itertools
import json

import numpy as np
import polars as pl
import pytest

from gputwin.cli.main import main
from gputwin.core.errors import UserError
from gputwin.simulation.elasticity.allocation import ElasticJob
from gputwin.simulation.elasticity.allocation import afs as plain_afs
from gputwin.simulation.elasticity.allocation import goodput as plain_goodput
from gputwin.simulation.elasticity.allocation import optimus as plain_optimus
from gputwin.simulation.elasticity.curves import PROFILES, curve, curves
from gputwin.simulation.elasticity.sizes import Demand, afs, optimus, pollux
from gputwin.simulation.elasticity.workers import ElasticPlan
from gputwin.simulation.interruptions import Checkpoints, Faults, Maintenance
from gputwin.simulation.result import result_of
from gputwin.simulation.rules import Changes
from tests.oracles.cases import Case
from tests.oracles.reference import Node
from tests.simulation.by_hand import gang, gpus, job
from tests.simulation.test_change_by_hand import lived, part, play

ONE, TWO = gpus(1), gpus(2)
PAIR = Case((Node(4),), (job(0, 40, ONE), job(0, 10, ONE)))


def grow(case: Case, policy: str, exponent: float = 1.0, most: int = 4, round_seconds: float = 5.0, **more: object):
    plan = ElasticPlan(policy, round_seconds, 1, most, exponent)
    return play(case, "fifo", Changes(elastic_plan=plan, **more))


def test_optimus_gives_gpus_to_whom_they_save_most_time():
    # One each; the third saves A 20 s (40 to 20), the fourth 6.7 s; B would save 5 s. At 10 B is done and A has 10 s of
    # work left, on 4 GPUs.
    assert lived(grow(PAIR, "optimus")) == [(1, 0, 10, "finished"), (0, 0, 10, "resized"), (0, 10, 12.5, "finished")]


def test_afs_finishes_the_short_job_first():
    # B is shorter and makes as much of a GPU: it has three, and is done after 10/3 s. At 5 A has 35 s left, on 4 GPUs.
    first, second, third = lived(grow(PAIR, "afs"))
    assert first == (1, 0, pytest.approx(10 / 3), "finished")
    assert (second, third) == ((0, 0, 5, "resized"), (0, 5, 13.75, "finished"))


def test_pollux_evens_out_speedups():
    # Two each; at 5 B is done and A, with 30 s left, has all 4.
    assert lived(grow(PAIR, "pollux")) == [(1, 0, 5, "finished"), (0, 0, 5, "resized"), (0, 5, 12.5, "finished")]


def test_a_resize_costs_its_time_and_is_not_made_where_it_saves_less():
    # A grows at 5 and pays 2 s: 30 s of work on 4 GPUs end at 14.5.
    done = grow(PAIR, "pollux", checkpoints=Checkpoints(resize_seconds=2))
    assert lived(done)[-1] == (0, 5, 14.5, "finished")
    assert part(done, 0, "overheads") == 2.0
    # 8 s would save 7.5: it goes on with two GPUs.
    done = grow(PAIR, "pollux", checkpoints=Checkpoints(resize_seconds=8))
    assert lived(done) == [(1, 0, 5, "finished"), (0, 0, 20, "finished")]


def test_effective_training_time_counts_the_gpus_that_were_held():
    # A holds 2 GPUs for 5 s and 4 for 9.5, of which 2 s are the resize; B holds 2 for 5: 58 GPU-seconds for 50 of work.
    summary = result_of(grow(PAIR, "pollux", checkpoints=Checkpoints(resize_seconds=2))).summary
    assert summary["effective_training_time_ratio"] == pytest.approx(50 / 58)
    assert summary["goodput"]["goodput"] == pytest.approx(50 / 58)


def test_speed_follows_the_curve_and_is_1_at_the_size_asked_for():
    # A asks for two GPUs; alone on four, it does 2 to the power of 0.5 of its work a second.
    done = grow(Case((Node(4),), (job(0, 10, TWO),)), "optimus", exponent=0.5)
    assert lived(done) == [(0, 0, pytest.approx(10 / 2**0.5), "finished")]
    assert part(done, 0, "slow_size") == pytest.approx(10 / 2**0.5 - 10)


def test_jobs_that_come_make_others_shrink():
    case = Case((Node(4),), (job(0, 80, ONE), job(5, 10, ONE), job(5, 10, ONE)))
    # A has all 4 until 5, then 60 s of work left: 60 to 30 saves more than anything else. B and C end at 15; then A has
    # 40 s left, on 4 GPUs.
    assert lived(grow(case, "optimus")) == [
        (0, 0, 5, "resized"),
        (1, 5, 15, "finished"),
        (2, 5, 15, "finished"),
        (0, 5, 15, "resized"),
        (0, 15, 25, "finished"),
    ]


def test_with_more_jobs_than_gpus_afs_runs_the_shortest():
    case = Case((Node(1),), (job(0, 20, ONE), job(0, 5, ONE), job(5, 5, ONE)))
    assert lived(grow(case, "afs")) == [(1, 0, 5, "finished"), (2, 5, 10, "finished"), (0, 10, 30, "finished")]
    assert lived(grow(case, "optimus")) == [(0, 0, 20, "finished"), (1, 20, 25, "finished"), (2, 25, 30, "finished")]


def test_who_cannot_be_resized_keeps_its_size():
    half = gpus(1, milli=500)
    roles = gang(0, 10, (gpus(0, cpu=1), 1), (gpus(1, cpu=1), 2))
    case = Case((Node(4, cpu=8),), (roles, job(0, 10, half), job(0, 10, half), job(0, 10, ONE)))
    # Two GPUs for the job of two roles, one for the two halves, and one for the elastic job.
    assert sorted(lived(grow(case, "optimus"))) == [(j, 0, 10, "finished") for j in range(4)]
    done = grow(Case((Node(1, cpu=4),), (job(0, 3, gpus(0, cpu=4)), job(0, 9, ONE))), "optimus")
    assert sorted(lived(done)) == [(0, 0, 3, "finished"), (1, 0, 9, "finished")]


def test_a_worker_has_its_part_of_the_job_and_a_model_of_its_own():
    # Workers of 2 CPUs each: three fit on the node with 6. Model b is for the second job alone.
    wide = job(0, 12, gpus(2, cpu=4000))
    done = grow(Case((Node(4, "a", cpu=6000),), (wide,)), "optimus", most=3)
    assert lived(done) == [(0, 0, 8, "finished")]
    case = Case((Node(2, "a"), Node(2, "b")), (job(0, 10, ONE), job(0, 10, gpus(1, models=("b",)))))
    assert [s[2] for s in lived(grow(case, "optimus"))] == [5, 5]


def test_a_node_that_goes_down_takes_its_gpus_with_it():
    case = Case((Node(2), Node(2)), (job(0, 40, ONE),))
    done = grow(case, "optimus", faults=Faults(maintenance=(Maintenance(1, np.inf, 5.0, 10.0),)))
    # All its work is lost at 5 (nothing saved it); it goes on with two GPUs, and four from 10 on.
    assert lived(done) == [(0, 0, 5, "failed"), (0, 5, 10, "resized"), (0, 10, 17.5, "finished")]


def test_the_command_line_takes_a_policy_and_explain_tells_sizes(capsys, tmp_path):
    where = ["synthetic:philly?jobs=150", "--cluster", "homogeneous:4x8", "--round", "1m", "-o", str(tmp_path)]
    assert (
        main(["simulate", *where, "--elastic", "afs:most_gpus=8,curves=drawn", "--checkpoint", "resize=30s", "--json"])
        == 0
    )
    told = capsys.readouterr()
    assert "got that of one of 6 measured ones by chance" in told.err
    resized = json.loads(told.out)["stops"]["resized"]
    assert resized > 0
    segments = pl.read_parquet(tmp_path / "segments.parquet").filter(pl.col("why").cast(pl.String) == "resized")
    assert segments.height == resized
    job = pl.read_parquet(tmp_path / "jobs.parquet")["job_id"][segments["job"][0]]
    assert main(["explain", str(tmp_path), job]) == 0
    assert "It was resized: GPUs held were" in " ".join(capsys.readouterr().out.split())
    assert main(["simulate", *where, "--elastic", "afs"]) == 2
    assert "150 of 150 jobs have no scaling curve" in capsys.readouterr().err
    assert main(["simulate", *where, "--elastic", "optimum"]) == 2
    assert "unknown elastic policy 'optimum'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"), [("magic", "known: afs, optimus, pollux, shrink"), ("shrnk", "did you mean 'shrink'?")]
)
def test_a_wrong_elastic_policy_is_told_of_shrinking_too(
    given: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", "synthetic:pai2020?jobs=20", "--cluster", "pai2020", "--elastic", given]) == 2
    assert said in capsys.readouterr().err


def test_what_does_not_go_with_an_elastic_policy_is_refused():
    with pytest.raises(UserError, match="unknown elastic policy 'best'"):
        grow(PAIR, "best")
    with pytest.raises(UserError, match="1 <= least_gpus <= most_gpus"):
        ElasticPlan("optimus", 5.0, 4, 2)
    with pytest.raises(UserError, match="scaling exponent is 2"):
        ElasticPlan("optimus", exponent=2.0)
    with pytest.raises(UserError, match="leave out preemption"):
        play(PAIR, "srtf", Changes(elastic_plan=ElasticPlan("afs")))


def random_demand(rng: np.random.Generator, jobs: int, most: int) -> tuple[Demand, list[ElasticJob]]:
    steps = -np.sort(-rng.uniform(0.05, 1.0, (jobs, most)), axis=1)
    speed = np.concatenate([np.zeros((jobs, 1)), np.cumsum(steps, axis=1)], axis=1)
    left, least = rng.uniform(1, 100, jobs), rng.integers(1, 3, jobs).astype(float)
    top = np.maximum(least, rng.integers(1, most + 1, jobs))
    plain = [
        ElasticJob(lambda n, row=speed[j]: float(row[n]), float(left[j]), int(least[j]), int(top[j]))
        for j in range(jobs)
    ]
    return Demand(speed, left, least, top), plain


def test_sizes_are_those_of_the_plain_rules():
    rng = np.random.default_rng(11)
    for _ in range(150):
        demand, plain = random_demand(rng, int(rng.integers(1, 7)), 6)
        total = int(rng.integers(0, 20))
        assert optimus(demand, total).tolist() == plain_optimus(plain, total)
        assert pollux(demand, total).tolist() == plain_goodput(plain, total)
    for _ in range(150):
        demand, plain = random_demand(rng, 2, 6)
        demand = Demand(demand.speed, demand.left, np.ones(2), demand.most)
        plain = [ElasticJob(p.speed, p.work_left, 1, p.most) for p in plain]
        assert afs(demand, 8).tolist() == plain_afs(plain, 8)


def test_greedy_sizes_are_the_best_for_concave_curves():
    """No other sizes have a smaller sum of remaining times."""
    rng = np.random.default_rng(12)
    for _ in range(60):
        demand, _ = random_demand(rng, 3, 4)
        demand = Demand(demand.speed, demand.left, np.ones(3), demand.most)
        total = int(rng.integers(3, 10))
        every = [
            sizes for sizes in itertools.product(*(range(1, int(m) + 1) for m in demand.most)) if sum(sizes) <= total
        ]
        seconds = demand.seconds_left()
        best = min(sum(seconds[j, n] for j, n in enumerate(sizes)) for sizes in every)
        found = optimus(demand, total).astype(int)
        assert sum(seconds[j, n] for j, n in enumerate(found)) == pytest.approx(best)


def test_curves_never_fall_and_an_adaptive_batch_scales_further():
    for profile in PROFILES:
        fixed, free = (curve(profile, 32, adapts=adapts) for adapts in (False, True))
        assert fixed[0] == free[0] == 0
        assert fixed[1] == free[1] == 1
        assert (np.diff(fixed) >= 0).all()
        assert (np.diff(free) >= 0).all()
    ends = np.array([curves(32, adapts=adapts)[:, -1] for adapts in (False, True)])
    assert (ends[1] >= ends[0]).all()
    assert curves(4, adapts=False, exponent=0.5).tolist() == [[0, 1, 2**0.5, 3**0.5, 2]]
