"""Jobs of several sizes: lost where they do not fit, or waiting for servers to be free together."""

from __future__ import annotations

import numpy as np

from gputwin.core.units import percent
from gputwin.queueing.erlang import erlang_b
from gputwin.queueing.gangs import Gang, gang_wait, saturated_throughput
from gputwin.queueing.loss import kaufman_roberts, multi_resource_loss
from gputwin.simulation.rules import Scheduler
from gputwin.studies.validation.cases.arrival_order import BURSTY, settled
from gputwin.studies.validation.queue_workload import Floats, Jobs, poisson, serve, servers
from gputwin.studies.validation.replicate import Case, Sample

JOBS = 60_000
LOSS = Scheduler(backfill="loss")


def gang_and_loss_cases() -> list[Case]:
    """Return the cases."""
    return [*_loss(), *_gangs()]


def _loss() -> list[Case]:
    def one_size(rng: np.random.Generator) -> Sample:
        jobs = Jobs(poisson(rng, 80.0, JOBS), BURSTY.draw(rng, JOBS))
        done = serve(jobs, servers(90), LOSS)
        part, excess = settled(jobs, done, 80.0)
        return Sample({"share lost": float(done.lost[part].mean())}, excess)

    sizes, loads = np.array([1, 2, 5]), np.array([9.0, 4.5, 1.8])
    lost = kaufman_roberts(30, dict(zip(sizes.tolist(), loads.tolist(), strict=True)))

    def several_sizes(rng: np.random.Generator) -> Sample:
        size = rng.choice(sizes, JOBS, p=loads / loads.sum())
        jobs = Jobs(poisson(rng, float(loads.sum()), JOBS), rng.exponential(1.0, JOBS), gpus=size)
        done = serve(jobs, servers(1, 30), LOSS)
        part, excess = settled(jobs, done, float(loads @ sizes))
        return Sample({f"share lost, {b} GPUs": float(done.lost[part][size[part] == b].mean()) for b in sizes}, excess)

    needs, node_loads = [(0, 12), (1, 8), (2, 8), (8, 64)], np.array([3.0, 4.0, 1.0, 0.2])
    node_lost = multi_resource_loss([8, 96], needs, node_loads.tolist())

    def node(rng: np.random.Generator) -> Sample:
        kind = rng.choice(4, JOBS, p=node_loads / node_loads.sum())
        gpus, cores = np.array(needs).T
        submit = poisson(rng, float(node_loads.sum()), JOBS)
        jobs = Jobs(submit, rng.exponential(1.0, JOBS), gpus=gpus[kind], cpu_milli=1000 * cores[kind])
        done = serve(jobs, servers(1, 8, cpu_milli=96_000), LOSS)
        part, excess = settled(jobs, done, float(node_loads @ gpus))
        figures = {_node_figure(need): float(done.lost[part][kind[part] == k].mean()) for k, need in enumerate(needs)}
        return Sample(figures, excess)

    return [
        Case("Erlang B", "hyperexponential, 80 erlangs on 90", {"share lost": erlang_b(90, 80.0)}, one_size),
        Case(
            "Kaufman–Roberts",
            "jobs of 1, 2 and 5 of 30 GPUs, load 0.9",
            {f"share lost, {b} GPUs": lost[int(b)] for b in sizes},
            several_sizes,
        ),
        Case(
            "loss on several resources",
            "a node of 8 GPUs and 96 cores",
            {_node_figure(need): p for need, p in zip(needs, node_lost, strict=True)},
            node,
        ),
    ]


def _node_figure(need: tuple[int, int]) -> str:
    return f"share lost, {need[0]} GPUs and {need[1]} cores"


def _gangs() -> list[Case]:
    gangs = [Gang(0.6, 1, 1.0), Gang(0.3, 2, 1.5), Gang(0.1, 8, 0.5)]
    count = 8
    most = saturated_throughput(count, gangs)

    def draw(rng: np.random.Generator, submit: Floats) -> Jobs:
        kind = rng.choice(len(gangs), submit.size, p=[g.share for g in gangs])
        service = rng.exponential(np.array([g.mean_service for g in gangs])[kind])
        return Jobs(submit, service, instances=np.array([g.servers for g in gangs])[kind])

    def saturated(rng: np.random.Generator) -> Sample:
        jobs = draw(rng, np.zeros(JOBS))
        start = serve(jobs, servers(count)).start
        first, last = JOBS // 10, JOBS - JOBS // 10
        return Sample({"jobs per second": (last - first) / float(start[last] - start[first])})

    cases = [
        Case("gangs in saturation", "sizes 1, 2, 8 on 8 servers", {"jobs per second": most}, saturated),
    ]
    per_job = sum(g.share * g.servers * g.mean_service for g in gangs)
    for share in (0.6, 0.9):
        rate = share * most

        def simulate(rng: np.random.Generator, rate: float = rate) -> Sample:
            jobs = draw(rng, poisson(rng, rate, JOBS))
            done = serve(jobs, servers(count))
            part, excess = settled(jobs, done, rate * per_job)
            wait = done.wait[part]
            return Sample({"mean wait": float(wait.mean()), "share that waits": float((wait > 0).mean())}, excess)

        found = gang_wait(count, rate, gangs)
        theory = {"mean wait": found.mean, "share that waits": found.probability}
        setting = f"sizes 1, 2, 8 on 8 servers, {percent(share)} of saturation"
        cases.append(Case("wait of gangs", setting, theory, simulate))
    return cases
