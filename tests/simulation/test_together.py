"""`check` and `simulate` agree on which gangs of several roles can never be placed."""

from __future__ import annotations

import random

import polars as pl

from gputwin.simulation.load import tasks_that_never_fit
from gputwin.simulation.together import REASON
from tests.oracles.cases import Case, cluster_of, trace_of_jobs
from tests.oracles.reference import Ask, Job, Machine, Node
from tests.oracles.test_gangs import episodes, fits


def never_fit(nodes: tuple[Node, ...], jobs: tuple[Job, ...]) -> pl.DataFrame:
    return tasks_that_never_fit(trace_of_jobs(jobs).tasks, cluster_of(nodes).nodes())


def test_roles_that_fit_only_one_at_a_time_are_told() -> None:
    server, worker = Ask(cpu=3000), Ask(cpu=8000)
    fits_well = Job(0.0, 5.0, ((server, 1), (worker, 1)), 5.0)
    too_much = Job(1.0, 5.0, ((server, 2), (worker, 1)), 5.0)
    nodes = (Node(0, cpu=8000), Node(0, cpu=4000))
    assert never_fit(nodes, (fits_well,)).is_empty()
    found = never_fit(nodes, (fits_well, too_much))
    assert found.select("reason", "tasks", "example_job").rows() == [(REASON, 2, "job-0001")]


def test_what_never_fits_is_what_exhaustive_search_says() -> None:
    found = {True: 0, False: 0}
    for seed in range(40):
        case = episodes(random.Random(f"check {seed}"))
        for job in [job for job in case.jobs if len(job.groups) > 1][:25]:
            never = not never_fit(case.nodes, (job,)).is_empty()
            asked = [ask for ask, size in job.groups for _ in range(size)]
            assert never == (not fits([Machine(node) for node in case.nodes], asked, set())), (seed, job)
            found[never] += 1
    assert min(found.values()) > 200


def test_check_and_simulate_agree() -> None:
    for seed in range(20):
        case = episodes(random.Random(f"agree {seed}"))
        jobs = tuple(Job(float(k), 0.5, job.groups, 0.5) for k, job in enumerate(case.jobs[:40]))
        outcomes = Case(case.nodes, jobs).by_engine("fifo", "loss", "first-fit")
        for job, outcome in zip(jobs, outcomes, strict=True):
            told = not never_fit(case.nodes, (job,)).is_empty()
            assert (outcome.fate == "never fits") == told, (seed, job)
