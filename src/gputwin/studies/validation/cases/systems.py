"""Rates that change, impatience, little room, parts that join, users that come back."""

from __future__ import annotations

import numpy as np

from gputwin.queueing.distributions import Floats, exponential
from gputwin.queueing.forkjoin import fork_join
from gputwin.queueing.markov import erlang_a, mmck
from gputwin.queueing.network import Station, closed_network
from gputwin.queueing.time_varying import modified_offered_load, pointwise_stationary
from gputwin.studies.validation import other_queues
from gputwin.studies.validation.queue_workload import Jobs, poisson, serve, servers
from gputwin.studies.validation.replicate import OWN, WARM_UP, Case, Sample

JOBS = 60_000


def system_cases() -> list[Case]:
    """Return the cases."""
    return [*_changing_rates(), _patience(), _room(), *_fork_join(), *_closed()]


def _changing_rates() -> list[Case]:
    """A day of 24 h with a rate that swings by half: once with jobs of 15 minutes, once of 6 hours."""
    count, steps = 40, 144
    day = 24.0
    swing = 1 + 0.5 * np.sin(2 * np.pi * (np.arange(steps) + 0.5) / steps)
    cases = []
    for mean, name, error in ((0.25, "jobs of 15 min", 0.2), (6.0, "jobs of 6 h", 0.2)):
        rates = 0.62 * count / mean * swing
        top = float(rates.max())

        def simulate(rng: np.random.Generator, rates: Floats = rates, mean: float = mean, top: float = top) -> Sample:
            candidates = poisson(rng, top, 4 * JOBS)
            now = rates[(candidates % day / day * rates.size).astype(np.int64)]
            submit = candidates[rng.random(candidates.size) * top < now]
            done = serve(Jobs(submit, rng.exponential(mean, submit.size)), servers(count))
            part = submit > max(WARM_UP * submit[-1], 5 * mean)
            return Sample({"share that waits": float((done.wait[part] > 0).mean())})

        at_once = pointwise_stationary(rates, count, mean)
        lagging = modified_offered_load(rates, day / steps, exponential(mean), count)
        # Each where it applies: the first takes every moment as settled, the second knows that load lags.
        if mean < 1:
            theory, model = at_once.share_waiting, "pointwise stationary"
        else:
            theory, model = lagging.share_waiting, "modified offered load"
        cases.append(
            Case(
                model,
                f"rate ± 50 % over a day, {name}, 40 servers",
                {"share that waits": theory},
                simulate,
                tolerance=error,
            )
        )
    return cases


def _patience() -> Case:
    count, rate, patience_rate = 20, 22.0, 0.5
    found = erlang_a(count, rate, 1.0, patience_rate)

    def simulate(rng: np.random.Generator) -> Sample:
        submit, service = poisson(rng, rate, JOBS), rng.exponential(1.0, JOBS)
        wait, gone = other_queues.with_patience(submit, service, rng.exponential(1 / patience_rate, JOBS), count)
        first = int(JOBS * WARM_UP)
        excess = float(service[first:].sum() / (submit[-1] - submit[first]) - rate)
        return Sample(
            {"mean wait": float(wait[first:].mean()), "share that leaves": float(gone[first:].mean())}, excess
        )

    theory = {"mean wait": found.mean_wait, "share that leaves": found.abandoned}
    return Case("Erlang A", "22 erlangs on 20, patience 2 s", theory, simulate, OWN)


def _room() -> Case:
    count, room, rate = 8, 14, 7.5
    found = mmck(count, room, rate, 1.0)

    def simulate(rng: np.random.Generator) -> Sample:
        submit, service = poisson(rng, rate, JOBS), rng.exponential(1.0, JOBS)
        wait, lost = other_queues.with_room(submit, service, count, room)
        part = np.arange(JOBS) >= int(JOBS * WARM_UP)
        excess = float(service[part].sum() / (submit[-1] - submit[part][0]) - rate)
        figures = {"share lost": float(lost[part].mean()), "mean wait": float(wait[part & ~lost].mean())}
        return Sample(figures, excess)

    theory = {"share lost": found.lost, "mean wait": found.mean_wait}
    return Case("M/M/c/K", "7.5 erlangs on 8, room for 14", theory, simulate, OWN)


def _fork_join() -> list[Case]:
    rate = 0.7
    cases = []
    for parts, error in ((2, None), (8, 0.05), (32, 0.05)):

        def simulate(rng: np.random.Generator, parts: int = parts) -> Sample:
            submit, service = poisson(rng, rate, JOBS), rng.exponential(1.0, (JOBS, parts))
            first = int(JOBS * WARM_UP)
            response = other_queues.fork_join_responses(submit, service)[first:]
            excess = float(service[first:].mean() * (JOBS - first) / (submit[-1] - submit[first]) - rate)
            return Sample({"response": float(response.mean())}, excess)

        theory = {"response": fork_join(parts, rate, 1.0).estimate}
        model = "fork-join" if parts == 2 else "fork-join (Nelson–Tantawi)"
        cases.append(Case(model, f"{parts} parts, load 0.7", theory, simulate, OWN, error))
    return cases


def _closed() -> list[Case]:
    stations = [Station("users", 20.0, None), Station("GPUs", 6.0, 4), Station("storage", 0.9)]
    cases = []
    for jobs in (6, 20):

        def simulate(rng: np.random.Generator, jobs: int = jobs) -> Sample:
            return Sample({"rounds per second": other_queues.closed_rounds(jobs, stations, rng, JOBS // 4)})

        theory = {"rounds per second": closed_network(jobs, stations).throughput}
        setting = f"{jobs} users, 4 GPUs, 1 store"
        cases.append(Case("closed network (MVA)", setting, theory, simulate, OWN))
    return cases
