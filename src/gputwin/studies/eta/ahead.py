"""Many possible futures from one or many moments, simulated in one run of the engine.

A run of the engine has a fixed cost that exceeds that of a few hundred jobs, so futures follow each other on the clock
of one run: each begins after everything of the one before must have ended (its last arrival plus the sum of its
durations: while nobody runs, the first in the queue can start). In each, jobs that run take their places first, then
those that wait are submitted in their order, then later arrivals come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gputwin.core.errors import UserError
from gputwin.core.rng import stream
from gputwin.core.units import DAY
from gputwin.profiling.jobs import Floats, Ints
from gputwin.simulation.cluster import Cluster
from gputwin.simulation.engine.attribution.causes import CAUSE_NAMES
from gputwin.simulation.engine.state.records import Records
from gputwin.simulation.policy import ORDERINGS
from gputwin.simulation.rules import Scheduler
from gputwin.simulation.run import run
from gputwin.simulation.scenario import Scenario
from gputwin.simulation.workload import Workload
from gputwin.studies.eta.durations import Durations
from gputwin.studies.eta.record import Moment, Record

MOST_JOBS = 400_000
"""Jobs in one run of the engine."""
SETTLING = 1.0
"""s between the running jobs' taking their places and the submission of those that wait."""
ALIKE_DAYS = 28
"""Later arrivals are those of one of as many days before, at the same time of day."""


@dataclass(frozen=True)
class Rules:
    """Under which rules to look ahead, how often, and how far arrivals are drawn."""

    scheduler: Scheduler
    cluster: Cluster
    draws: int
    horizon: float
    """s for which others arrive; 0: nobody does."""
    believes_limits: bool
    """Whether the scheduler believes time limits where there are any; else it knows the truth."""
    seed: int = 0


@dataclass(frozen=True)
class Future:
    """What may come after one moment: of its pending jobs [job, draw] the s until each starts (NaN: never)."""

    moment: Moment
    wait: Floats
    causes: Floats
    """[pending job, cause]: s of the simulated wait, mean over draws; empty where not asked for."""
    held: Floats
    """[pending job, job that runs]: mean GPU-seconds held while it waits; empty where not asked for."""


def check(scenario: Scenario) -> None:
    """Raise a user error where the scenario has what looking ahead does not take."""
    for name in ("faults", "elasticity", "locality", "preemption", "speed"):
        if getattr(scenario, name):
            raise UserError(f"eta does not simulate {name}; leave it out of the scenario")
    if ORDERINGS.get(scenario.order.name).preemption:
        raise UserError(f"order '{scenario.order.name}' preempts, which eta does not simulate; use fifo or sjf")


def look_ahead(
    record: Record, moments: Sequence[Moment], durations: Durations, rules: Rules, *, explained: bool = False
) -> list[Future]:
    """Return what may come after each of the moments; each future is drawn from a stream of its own."""
    found: list[Future] = []
    batch: list[_Drawn] = []
    size = 0
    for drawn in _drawn(record, moments, durations, rules):
        if batch and size + drawn.size > MOST_JOBS:
            found += _simulated(record, batch, rules, explained)
            batch, size = [], 0
        batch.append(drawn)
        size += drawn.size
    return found + (_simulated(record, batch, rules, explained) if batch else [])


@dataclass(frozen=True)
class _Drawn:
    """One moment with durations of its jobs [job, draw] and the arrivals of each draw: rows, after s, for s."""

    moment: Moment
    runs: Floats
    waits: Floats
    arrivals: list[tuple[Ints, Floats, Floats]]

    @property
    def size(self) -> int:
        """Return the number of jobs in all futures."""
        here = self.moment.running.size + self.moment.pending.size
        return here * len(self.arrivals) + sum(rows.size for rows, _, _ in self.arrivals)


def _drawn(record: Record, moments: Sequence[Moment], durations: Durations, rules: Rules) -> list[_Drawn]:
    # One question to the model for all moments.
    jobs = np.concatenate([part for m in moments for part in (m.running, m.pending)] or [np.zeros(0, np.int64)])
    at = np.concatenate([np.full(m.running.size + m.pending.size, m.at) for m in moments] or [np.zeros(0)])
    first_at = moments[0].at if moments else 0.0
    random = stream(rules.seed, f"eta durations {first_at!r}")
    drawn = durations.draw(record, jobs, at, rules.draws, random) if jobs.size else np.zeros((0, rules.draws))
    result, begin = [], 0
    for m in moments:
        middle, end = begin + m.running.size, begin + m.running.size + m.pending.size
        come = _arrivals(record, m.at, rules, stream(rules.seed, f"eta arrivals {m.at!r}"))
        result.append(_Drawn(m, drawn[begin:middle], drawn[middle:end], come))
        begin = end
    return result


def _arrivals(
    record: Record, at: float, rules: Rules, random: np.random.Generator
) -> list[tuple[Ints, Floats, Floats]]:
    """Return for each draw who comes later: jobs of an earlier day from the same time of day on."""
    nobody = (np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    known_seconds = at - record.first
    if rules.horizon <= 0 or known_seconds <= 0:
        return [nobody] * rules.draws
    days = int(min(known_seconds // DAY, ALIKE_DAYS))
    # Of a record shorter than a day, any stretch of at most half its length.
    horizon = min(rules.horizon, DAY if days else known_seconds / 2)
    begins = at - (
        random.integers(1, days + 1, rules.draws) * DAY
        if days
        else horizon + random.random(rules.draws) * (known_seconds - horizon)
    )
    result = []
    ran_by = record.ran_by(at)
    for begin in begins:
        low, high = np.searchsorted(record.submit, (begin, begin + horizon))
        rows = np.arange(low, high)
        ran = ran_by[rows]
        known = ran[~np.isnan(ran)]
        if not known.size:
            result.append(nobody)
            continue
        # How long those ran that had not ended is not known yet: as long as others of that day.
        ran = np.where(np.isnan(ran), random.choice(known, rows.size), ran)
        result.append((rows, record.submit[rows] - begin, np.maximum(ran, 1.0)))
    return result


def _simulated(record: Record, batch: Sequence[_Drawn], rules: Rules, explained: bool) -> list[Future]:
    rows: list[Ints] = []
    submit: list[Floats] = []
    duration: list[Floats] = []
    believed: list[Floats] = []
    clock = 0.0
    for drawn in batch:
        m = drawn.moment
        here = np.concatenate([m.running, m.pending])
        limit = record.limit[here] - np.maximum(m.at - record.start[here], 0.0)
        since = np.repeat([0.0, SETTLING], [m.running.size, m.pending.size])
        for k, (later, after, ran) in enumerate(drawn.arrivals):
            runs = np.concatenate([drawn.runs[:, k], drawn.waits[:, k], ran])
            limits = np.concatenate([np.maximum(limit, 1.0), record.limit[later]])
            rows.append(np.concatenate([here, later]))
            submit.append(clock + np.concatenate([since, SETTLING + after]))
            duration.append(runs)
            believed.append(np.where(np.isnan(limits) | (not rules.believes_limits), runs, limits))
            clock = float(submit[-1][-1] if runs.size else clock) + float(runs.sum()) + 2 * SETTLING
    every = np.concatenate(rows)
    if not every.size:
        return [_nothing(drawn, rules) for drawn in batch]
    workload = _workload(
        record.workload, every, np.concatenate(submit), np.concatenate(duration), np.concatenate(believed)
    )
    outcome = run(
        workload, rules.cluster, rules.scheduler, seed=rules.seed, bin_seconds=max(clock, 1.0), attribute=explained
    )
    jobs = outcome.world.queue.jobs
    found, begin = [], 0
    for drawn in batch:
        m, waits, causes = drawn.moment, [], []
        held = np.zeros((m.pending.size, m.running.size) if explained else (0, 0))
        for later, _, _ in drawn.arrivals:
            middle = begin + m.running.size
            end = middle + m.pending.size
            part = jobs[middle:end]
            waits.append(part["start"] - part["submit"])
            if explained:
                causes.append(np.where(np.isnan(waits[-1])[:, None], 0.0, outcome.world.causes.share[middle:end]))
                held += _held(workload, jobs[begin:middle], part) / rules.draws
            begin = end + later.size
        mean = np.mean(causes, axis=0) if causes else np.zeros((0, len(CAUSE_NAMES)))
        found.append(Future(m, np.stack(waits, axis=1), mean, held))
    return found


def _nothing(drawn: _Drawn, rules: Rules) -> Future:
    return Future(drawn.moment, np.zeros((0, rules.draws)), np.zeros((0, len(CAUSE_NAMES))), np.zeros((0, 0)))


def _held(workload: Workload, running: Records, pending: Records) -> Floats:
    """Return [pending, running] GPU-seconds that running jobs hold until each pending one starts, where it may run."""
    models = [
        workload.allowed[workload.groups["request"][s["first_group"] : s["first_group"] + s["groups"]]].any(axis=0)
        for s in workload.shapes
    ]
    reach = np.stack(models)
    shared = reach[pending["shape"]].astype(np.int64) @ reach[running["shape"]].T.astype(np.int64) > 0
    until = np.nan_to_num(np.minimum(running["end"][None], pending["start"][:, None]) - pending["submit"][:, None])
    gpus = running["gpu_milli"] / 1000.0
    return np.where(shared, np.maximum(until, 0.0) * gpus[None], 0.0)


def _workload(base: Workload, rows: Ints, submit: Floats, duration: Floats, believed: Floats) -> Workload:
    """Return these rows of a workload, one after the other, with times and durations of their own."""
    jobs = base.jobs[rows].copy()
    jobs["submit"], jobs["duration"], jobs["predicted"] = submit, duration, believed
    instances = base.shapes["instances"][jobs["shape"]].astype(np.int64)
    jobs["first_slot"] = np.cumsum(instances) - instances
    return replace(base, jobs=jobs, job_ids=base.job_ids[:0], older=None, window=(0.0, float(submit[-1]) + 1.0))
