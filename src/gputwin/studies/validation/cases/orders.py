"""Orders other than that of arrival: priorities, lengths, sharing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gputwin.queueing.distributions import Distribution, Floats, exponential, lognormal
from gputwin.queueing.priority import ClassOfJobs, mg1_preemptive, mg1_priority, mmc_preemptive, mmc_priority
from gputwin.queueing.sharing import time_shared
from gputwin.queueing.size_based import least_attained_service, processor_sharing, sjf, srpt
from gputwin.simulation.rules import Scheduler
from gputwin.studies.validation import single_server
from gputwin.studies.validation.cases.arrival_order import settled
from gputwin.studies.validation.queue_workload import Jobs, ServedJobs, poisson, serve, servers
from gputwin.studies.validation.replicate import OWN, Case, Sample

JOBS, OWN_JOBS = 120_000, 60_000
BY_PRIORITY = Scheduler("priority", "strict", order_parameters={"aging": 0.0})


def order_cases() -> list[Case]:
    """Return the cases."""
    return [*_priorities(), *_interrupting(), *_lengths(), *_time_sharing()]


def _two_classes(
    rates: Floats, services: tuple[Distribution, Distribution], jobs: int
) -> Callable[..., tuple[Jobs, Floats]]:
    def draw(rng: np.random.Generator) -> tuple[Jobs, Floats]:
        urgent = rng.random(jobs) < rates[0] / rates.sum()
        service = np.where(urgent, services[0].draw(rng, jobs), services[1].draw(rng, jobs))
        return Jobs(poisson(rng, float(rates.sum()), jobs), service, priority=urgent.astype(float)), urgent

    return draw


def _priorities() -> list[Case]:
    cases = []
    short, long = exponential(1.0), lognormal(1.5, 3.0)
    settings: list[tuple[int, Floats, tuple[Distribution, Distribution]]] = [
        (1, np.array([0.25, 0.3]), (short, long)),
        (4, np.array([1.0, 1.8]), (short, short)),
    ]
    for count, rates, services in settings:
        draw = _two_classes(rates, services, JOBS)
        classes = [ClassOfJobs(float(r), s) for r, s in zip(rates, services, strict=True)]
        found = mg1_priority(classes) if count == 1 else mmc_priority(count, [float(r) for r in rates], 1.0)
        load = float(sum(r * s.mean for r, s in zip(rates, services, strict=True)))

        def simulate(rng: np.random.Generator, draw=draw, count=count, load=load) -> Sample:  # type: ignore[no-untyped-def]
            jobs, urgent = draw(rng)
            done = serve(jobs, servers(count), BY_PRIORITY)
            part, excess = settled(jobs, done, load)
            wait, chosen = done.wait[part], urgent[part]
            return Sample(
                {"wait, urgent": float(wait[chosen].mean()), "wait, others": float(wait[~chosen].mean())}, excess
            )

        theory = {"wait, urgent": found[0].wait, "wait, others": found[1].wait}
        name = "M/G/1" if count == 1 else f"M/M/{count}"
        cases.append(Case(f"{name} with priority (Cobham)", f"load {load / count:.2g}", theory, simulate))
    return cases


def _interrupting() -> list[Case]:
    rates = np.array([0.25, 0.3])
    services: tuple[Distribution, Distribution] = (exponential(1.0), lognormal(1.5, 3.0))
    draw = _two_classes(rates, services, OWN_JOBS)
    found = mg1_preemptive([ClassOfJobs(float(r), s) for r, s in zip(rates, services, strict=True)])

    def one(rng: np.random.Generator) -> Sample:
        jobs, urgent = draw(rng)
        key = np.where(urgent, 0, jobs.submit.size) + np.arange(jobs.submit.size)
        end = single_server.preempt(jobs.submit, jobs.service, lambda j, left: float(key[j]))
        return _responses_by_class(jobs, urgent, end, 0.7)

    many_rates = np.array([1.0, 1.8])
    many_draw = _two_classes(many_rates, (exponential(1.0), exponential(1.0)), OWN_JOBS)
    many = mmc_preemptive(4, [float(r) for r in many_rates], 1.0)

    def four(rng: np.random.Generator) -> Sample:
        jobs, urgent = many_draw(rng)
        end = single_server.preempt_on_servers(jobs.submit, jobs.service, [int(not u) for u in urgent], 4)
        return _responses_by_class(jobs, urgent, end, 2.8)

    names = ("response, urgent", "response, others")
    return [
        Case("M/G/1 preemptive", "load 0.7", dict(zip(names, (f.response for f in found), strict=True)), one, OWN),
        Case("M/M/4 preemptive", "load 0.7", dict(zip(names, (f.response for f in many), strict=True)), four, OWN),
    ]


def _responses_by_class(jobs: Jobs, urgent: Floats, end: Floats, load: float) -> Sample:
    done = ServedJobs(jobs.submit, jobs.submit, end, np.zeros(end.size, np.bool_))
    part, excess = settled(jobs, done, load)
    response, chosen = (end - jobs.submit)[part], urgent[part].astype(bool)
    return Sample(
        {"response, urgent": float(response[chosen].mean()), "response, others": float(response[~chosen].mean())},
        excess,
    )


def _lengths() -> list[Case]:
    rate, service = 0.7, lognormal(1.0, 2.0)
    median = float(service.quantile(np.array([0.5]))[0])

    def by_half(jobs: Jobs, values: Floats, what: str) -> Sample:
        done = ServedJobs(jobs.submit, jobs.submit, jobs.submit, np.zeros(values.size, np.bool_))
        part, excess = settled(jobs, done, rate)
        short = jobs.service[part] < median
        return Sample(
            {what: float(values[part].mean()), f"{what}, shorter half": float(values[part][short].mean())}, excess
        )

    def shortest_first(rng: np.random.Generator) -> Sample:
        jobs = Jobs(poisson(rng, rate, JOBS), service.draw(rng, JOBS))
        return by_half(jobs, serve(jobs, servers(1), Scheduler("sjf", "strict")).wait, "wait")

    setting = "lognormal, cs² 2, load 0.7"
    theory = {"wait": sjf(rate, service), "wait, shorter half": sjf(rate, service, below=0.5)}
    cases = [Case("M/G/1 shortest job first", setting, theory, shortest_first)]
    runs: list[tuple[str, Callable[..., float], Callable[[Floats, Floats], Floats]]] = [
        ("SRPT", srpt, lambda submit, work: single_server.preempt(submit, work, lambda j, left: left)),
        ("processor sharing", processor_sharing, single_server.share),
        ("least attained service", least_attained_service, single_server.least_attained),
    ]
    for name, model, ends in runs:

        def simulate(rng: np.random.Generator, ends=ends) -> Sample:  # type: ignore[no-untyped-def]
            jobs = Jobs(poisson(rng, rate, OWN_JOBS), service.draw(rng, OWN_JOBS))
            return by_half(jobs, ends(jobs.submit, jobs.service) - jobs.submit, "response")

        theory = {"response": model(rate, service), "response, shorter half": model(rate, service, below=0.5)}
        cases.append(Case(f"M/G/1 {name}", setting, theory, simulate, OWN))
    return cases


def _time_sharing() -> list[Case]:
    rate, slice_seconds, switch_seconds = 0.6, 0.02, 0.005
    found = time_shared(rate, 1.0, slice_seconds, switch_seconds)
    cases = []
    for name, service in (("exponential", exponential(1.0)), ("lognormal, cs² 4", lognormal(1.0, 4.0))):

        def simulate(rng: np.random.Generator, service=service) -> Sample:  # type: ignore[no-untyped-def]
            submit, work = poisson(rng, rate, OWN_JOBS), service.draw(rng, OWN_JOBS)
            end = single_server.share(submit, work, lambda n: 1.0 if n == 1 else found.efficiency)
            jobs = Jobs(submit, work)
            done = ServedJobs(submit, submit, end, np.zeros(end.size, np.bool_))
            part, excess = settled(jobs, done, rate)
            return Sample({"response": float((end - submit)[part].mean())}, excess)

        setting = f"{name}, load 0.6, 20 ms slices, 5 ms switches"
        cases.append(Case("GPU time sharing", setting, {"response": found.response}, simulate, OWN))
    return cases
