"""Operational laws hold of any record, and tell where one is cut."""

from __future__ import annotations

import numpy as np
import pytest

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.queueing.fit.offered import class_of, levels, offered
from gputwin.queueing.operational import Record, operational_laws


def record(jobs: int = 2_000) -> Record:
    rng = stream(0, "record")
    submit = np.sort(rng.uniform(0, 1000, jobs))
    start = submit + rng.exponential(5.0, jobs)
    return Record(submit, start, start + rng.lognormal(1.0, 1.0, jobs), rng.integers(1, 9, jobs).astype(float))


def test_laws_are_exact_over_a_whole_record() -> None:
    jobs = record()
    laws = operational_laws(jobs, 64.0, -1.0, float(jobs.end.max()) + 1, jobs.servers)
    assert [law.name for law in laws] == ["Little", "Little", "utilisation", "forced flow"]
    for law in laws:
        assert law.difference == pytest.approx(0, abs=1e-9)


def test_a_cut_record_shows_at_its_ends() -> None:
    jobs = record()
    late = Record(jobs.submit, jobs.start, jobs.end + 500.0, jobs.servers)
    running = operational_laws(late, 64.0, 0.0, 1000.0, jobs.servers)[1]
    assert abs(running.difference) > 0.1
    with pytest.raises(UserError):
        operational_laws(jobs, 64.0, 5.0, 5.0, jobs.servers)


def test_offered_load_by_hand() -> None:
    """Two GPUs from 0 to 10 s and one from 5 to 20 s: 2, 3, 1, 1 over quarters of 20 s."""
    times, level, width = levels(np.array([0.0, 5.0]), np.array([10.0, 20.0]), np.array([2.0, 1.0]), 0.0, 20.0)
    assert float(level @ width) == pytest.approx(2 * 10 + 1 * 15)
    assert level.max() == 3.0
    assert times[0] == 0.0


def test_poisson_single_gpu_jobs_are_not_peaked_and_gangs_are_by_their_size() -> None:
    rng = stream(0, "peaked")
    submit = np.sort(rng.uniform(0, 50_000, 200_000))
    run = rng.exponential(20.0, submit.size)
    one = offered(submit, run, np.ones(submit.size))
    assert one.peakedness == pytest.approx(1, abs=0.1)
    assert one.load == pytest.approx(80, rel=0.02)
    assert offered(submit, run, np.full(submit.size, 4.0)).peakedness == pytest.approx(4, rel=0.1)


def test_work_beyond_the_record_is_cut_and_counted_apart() -> None:
    submit = np.linspace(0, 100, 1001)
    jobs = offered(submit, np.full(submit.size, 1000.0), np.ones(submit.size))
    assert jobs.load == pytest.approx(500, rel=0.01)
    assert jobs.steady_load == pytest.approx(10_000, rel=0.01)


def test_classes_by_gpus() -> None:
    assert class_of(np.array([0.0, 0.5, 1.0, 2.0, 8.0, 9.0])).tolist() == [-1, 0, 1, 2, 2, 3]
    with pytest.raises(UserError, match="fewer than two jobs"):
        offered(np.array([1.0]), np.array([1.0]), np.array([1.0]))
