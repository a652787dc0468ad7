"""Where theory knows what interruption does to a queue, the engine gives it within a 99.9 % interval.

SRPT, processor sharing, least attained service and preemptive priorities on one or several servers, and servers that
break down. One GPU is one server; interruptions cost nothing and lose nothing. Mean service is 1 s.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.sparse.linalg import spsolve

from gputwin.core.rng import stream
from gputwin.queueing.distributions import exponential, lognormal
from gputwin.queueing.priority import ClassOfJobs, mg1_preemptive, mmc_preemptive
from gputwin.queueing.size_based import least_attained_service, processor_sharing, srpt
from gputwin.simulation.interruptions import Checkpoints, Faults
from gputwin.simulation.rules import Changes, Scheduler
from gputwin.simulation.run import run
from gputwin.simulation.shared import GpuSharing
from gputwin.studies.validation.single_server import preempt, preempt_on_servers
from tests.oracles.queueing import Arrivals, Floats, servers

JOBS, REPLICATIONS = 30_000, 10
NOTHING_LOST = Checkpoints(interval_seconds=0.0)
SERVICES = {"exponential": exponential(1.0), "lognormal": lognormal(1.0, 2.0)}


def completions(
    jobs: Arrivals, count: int, scheduler: Scheduler, changes: Changes | None = None, seed: int = 0
) -> Floats:
    """Return how long each job was in the system, s."""
    workload = jobs.workload()
    changes = changes or Changes(checkpoints=NOTHING_LOST)
    done = run(workload, servers(count), scheduler, changes=changes, attribute=False, seed=seed)
    records = done.world.queue.jobs
    return records["end"] - records["submit"]


def assert_agrees(
    name: str,
    exact: float,
    measure: Callable[[np.random.Generator], tuple[float, float]],
    precision: float,
    replications: int = REPLICATIONS,
) -> None:
    """Assert that the 99.9 % interval of the mean has the exact value in it and is narrow enough to tell.

    `measure` returns the figure and the load drawn above the one meant, which is the control variate.
    """
    drawn = np.array([measure(stream(0, name, k)) for k in range(replications)])
    line = stats.linregress(drawn[:, 1], drawn[:, 0])
    half = float(stats.t.ppf(0.9995, replications - 2) * line.intercept_stderr)
    said = f"{name}: theory {exact:.5g}, simulation {line.intercept:.5g} ± {half:.2g}"
    print(said)
    assert abs(line.intercept - exact) <= half, said
    assert half <= precision * exact, f"{said}, wider than {precision:.1%}"


def one_server(
    order: Scheduler, service: str, load: float, changes: Changes | None = None
) -> Callable[[np.random.Generator], tuple[float, float]]:
    def measure(rng: np.random.Generator) -> tuple[float, float]:
        submit = np.cumsum(rng.exponential(1 / load, JOBS))
        work = SERVICES[service].draw(rng, JOBS)
        time = completions(Arrivals(submit, work), 1, order, changes)
        return float(time[JOBS // 10 :].mean()), float(work.sum() / submit[-1] - load)

    return measure


@pytest.mark.parametrize("service", SERVICES)
def test_shortest_remaining_time(service):
    exact = srpt(0.7, SERVICES[service])
    assert_agrees(f"SRPT {service}", exact, one_server(Scheduler("srtf", "greedy"), service, 0.7), 0.04)


@pytest.mark.parametrize("service", ["lognormal"])
def test_least_attained_service_in_many_queues(service):
    # Queues of 0.05 s each up to 12 s; jobs that run longer are few, and go in order there.
    order = Scheduler("las", "greedy", order_parameters={"first": 0.05, "factor": 1.05, "queues": 160.0})
    exact = least_attained_service(0.6, SERVICES[service])
    assert_agrees(f"LAS {service}", exact, one_server(order, service, 0.6), 0.06)


@pytest.mark.parametrize("service", ["lognormal"])
def test_short_slices_share_the_server(service):
    order = Scheduler("round-robin", "greedy", order_parameters={"quantum": 0.04})
    exact = processor_sharing(0.6, SERVICES[service])
    assert_agrees(f"PS {service}", exact, one_server(order, service, 0.6), 0.06)


@pytest.mark.parametrize("service", SERVICES)
def test_time_slices_without_switches_share_the_server(service):
    """GPUs shared in turn by up to 100 jobs are processor sharing where switching costs nothing."""
    free = {"most": 100, "least_switch_ms": 0, "most_switch_ms": 0}
    changes = Changes(checkpoints=NOTHING_LOST, sharing=GpuSharing("time-slice", free))

    shared = one_server(Scheduler("fifo", "greedy"), service, 0.6, changes)
    assert_agrees(f"time slices {service}", processor_sharing(0.6, SERVICES[service]), shared, 0.06)


BY_PRIORITY = Scheduler("priority", "greedy", order_parameters={"aging": 0.0})
PREEMPTIVE = Changes(preemption="priority", checkpoints=NOTHING_LOST)


@pytest.mark.parametrize(("count", "rates"), [(1, (0.3, 0.4)), (4, (1.2, 1.6))])
@pytest.mark.parametrize("which", [0, 1])
def test_preemptive_priorities(count, rates, which):
    classes = [ClassOfJobs(rate, SERVICES["exponential"]) for rate in rates]
    exact = (mg1_preemptive(classes) if count == 1 else mmc_preemptive(count, rates, 1.0))[which].response

    def measure(rng: np.random.Generator) -> tuple[float, float]:
        submit = np.cumsum(rng.exponential(1 / sum(rates), JOBS))
        work, urgent = rng.exponential(1.0, JOBS), rng.random(JOBS) < rates[0] / sum(rates)
        time = completions(Arrivals(submit, work, priority=urgent.astype(int)), count, BY_PRIORITY, PREEMPTIVE)
        chosen = (urgent == (which == 0)) & (np.arange(JOBS) > JOBS // 10)
        return float(time[chosen].mean()), float(work.sum() / submit[-1] - sum(rates))

    assert_agrees(f"priority {count} {which}", exact, measure, 0.05)


def breakdown_jobs(servers: int, arrivals: float, failure: float, repair: float, most: int = 400) -> float:
    """Return the mean number of jobs in M/M/c whose servers fail and are repaired, each by itself, busy or not.

    States are (jobs, servers up) of a Markov chain cut off at `most` jobs; a job on a failed server goes on elsewhere
    or waits. Mitrany and Avi-Itzhak, "A Many-Server Queue with Service Interruptions", Operations Research 16(3), 1968.
    """
    up = servers + 1
    size = (most + 1) * up
    rows, columns, rates = [], [], []

    def move(n: int, k: int, to_n: int, to_k: int, rate: float) -> None:
        if rate > 0:
            rows.extend([to_n * up + to_k, n * up + k])
            columns.extend([n * up + k, n * up + k])
            rates.extend([rate, -rate])

    for n in range(most + 1):
        for k in range(up):
            if n < most:
                move(n, k, n + 1, k, arrivals)
            if n > 0:
                move(n, k, n - 1, k, min(n, k) * 1.0)
            if k > 0:
                move(n, k, n, k - 1, k * failure)
            if k < servers:
                move(n, k, n, k + 1, (servers - k) * repair)
    flow = sparse.csr_matrix((rates, (rows, columns)), (size, size)).tolil()
    flow[0, :] = 1.0
    right = np.zeros(size)
    right[0] = 1.0
    shares = spsolve(flow.tocsc(), right).reshape(most + 1, up)
    return float(np.arange(most + 1) @ shares.sum(axis=1))


def test_servers_that_break_down():
    count, arrivals, failure, repair = 3, 1.5, 0.2, 1.0
    exact = breakdown_jobs(count, arrivals, failure, repair) / arrivals
    faults = Faults(mtbf_seconds=1 / failure, repair_seconds=1 / repair)
    changes = Changes(faults=faults, checkpoints=NOTHING_LOST)

    def measure(rng: np.random.Generator) -> tuple[float, float]:
        submit, work = np.cumsum(rng.exponential(1 / arrivals, JOBS)), rng.exponential(1.0, JOBS)
        time = completions(
            Arrivals(submit, work), count, Scheduler(backfill="strict"), changes, int(rng.integers(1 << 30))
        )
        return float(time[JOBS // 10 :].mean()), float(work.sum() / submit[-1] - arrivals)

    assert_agrees("breakdowns", exact, measure, 0.06, 16)


def test_one_server_ends_every_job_when_a_plain_event_list_does():
    rng = stream(0, "srpt job by job")
    submit, work = np.cumsum(rng.exponential(1 / 0.8, 5000)), rng.exponential(1.0, 5000)
    time = completions(Arrivals(submit, work), 1, Scheduler("srtf", "greedy"))
    assert submit + time == pytest.approx(preempt(submit, work, lambda j, left: left), abs=1e-6)


def test_several_servers_end_every_job_when_a_plain_event_list_does():
    rng = stream(0, "priority job by job")
    submit, work = np.cumsum(rng.exponential(1 / 2.6, 5000)), rng.exponential(1.0, 5000)
    urgency = rng.integers(0, 3, 5000)
    # The plain list takes the latest submitted of the least urgent; here the one that started last goes. One job of each
    # urgency runs at most where ties cannot tell: the sum of all completion times is the same either way.
    time = completions(Arrivals(submit, work, priority=2 - urgency), 3, BY_PRIORITY, PREEMPTIVE)
    plain = preempt_on_servers(submit, work, urgency, 3) - submit
    urgent = urgency == 0
    assert time[urgent] == pytest.approx(plain[urgent], abs=1e-6)
