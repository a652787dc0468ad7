"""Elastic jobs in the engine: at each round a policy says how many GPUs each job has, and jobs are resized to that.

Rounds have equal length. Jobs that get no GPUs are stopped, others start, shrink or grow; each resize costs what the
scenario's checkpoints say. A job grows only if that saves more time than it costs, and shrinks only if others get its
GPUs. GPUs that a job leaves within a round are idle until the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gputwin.simulation.elasticity.sizes import ELASTIC, Demand, Ints
from gputwin.simulation.elasticity.throughput import Floats
from gputwin.simulation.elasticity.workers import NO_GPUS, ElasticPlan, Workers
from gputwin.simulation.engine.attribution.causes import QUOTA
from gputwin.simulation.engine.world import ARRIVAL, RUNS, WAITS, World
from gputwin.simulation.planning.drive import carry_out, gpus_by_model

if TYPE_CHECKING:
    from gputwin.simulation.engine.kernel import Stepper


class ElasticDriver:
    """Drives one run: `drive` of `simulation.run.run`."""

    def __init__(self, plan: ElasticPlan, workers: Workers, resize_seconds: float) -> None:
        self.policy, self.plan, self.workers = ELASTIC.get(plan.policy), plan, workers
        self.resize_seconds = resize_seconds
        self._arrived = 0
        self._active: Ints = np.zeros(0, np.int64)
        """Jobs that wait or run, in order of submission."""
        self._size = np.zeros(workers.workload.size)
        """GPUs that each running job holds."""

    def __call__(self, stepper: Stepper) -> None:
        """Take the run from round to round until all jobs have come and gone, or nobody will be let run."""
        stepper.world.queue.shapes["cause"] = QUOTA
        now: float | None = float(stepper.world.queue.jobs["submit"][0])
        while now is not None and not stepper.run_until(now):
            self._note_jobs(stepper.world)
            self._round(stepper, now)
            if stepper.run_until(now):
                return
            now = self._following(stepper.world, now)

    def _following(self, world: World, now: float) -> float | None:
        coming, jobs = int(world.loop[ARRIVAL]), world.queue.jobs
        if world.counters["running"][0] > 0:
            return now + self.plan.round_seconds
        if coming < jobs.size:
            return max(float(jobs["submit"][coming]), now)
        # Nobody runs and nobody comes: only a node that comes back can help.
        upcoming = world.events.heap["time"][0] if world.events.count[0] else np.inf
        return float(max(upcoming, now + self.plan.round_seconds)) if upcoming < np.inf else None

    def _note_jobs(self, world: World) -> None:
        """Admit jobs that came and forget those that left."""
        jobs, coming = world.queue.jobs, int(world.loop[ARRIVAL])
        self._active = np.concatenate([self._active, np.arange(self._arrived, coming)])
        self._arrived = coming
        outcome = jobs["outcome"][self._active]
        self._active = self._active[(outcome == WAITS) | (outcome == RUNS)]

    def _round(self, stepper: Stepper, now: float) -> None:
        world, workers = stepper.world, self.workers
        capacity = gpus_by_model(world, len(workers.workload.models))
        parts = [self._active[workers.pool[self._active] == NO_GPUS]]
        sizes = [np.ones(parts[0].size)]
        for m in np.unique(workers.pool[self._active]).tolist():
            if m != NO_GPUS:
                jobs = self._active[workers.pool[self._active] == m]
                parts.append(jobs)
                sizes.append(self._sizes(world, jobs, float(capacity[m]), now))
        jobs, size = np.concatenate(parts), np.concatenate(sizes)
        runs = world.queue.jobs["outcome"][jobs] == RUNS
        held = np.where(runs, self._size[jobs], 0.0)
        pool = workers.pool[jobs]
        changes = np.flatnonzero(np.where(pool == NO_GPUS, ~runs, size != held) & (size > 0))
        # Who shrinks goes first, so that there is room for the others; these go in order of submission.
        shrinks = size[changes] < held[changes]
        changes = changes[np.lexsort((jobs[changes], ~shrinks))]
        stopped = jobs[runs & (size == 0) & (pool != NO_GPUS)]
        carry_out(stepper, now, stopped, jobs[changes], workers.shape(jobs[changes], size[changes]))
        self._size[jobs] = size

    def _sizes(self, world: World, jobs: Ints, capacity: float, now: float) -> Floats:
        """Return the GPUs that each job of one model has from now on."""
        workers, records = self.workers, world.queue.jobs[jobs]
        # What found no place, or was stopped by a failure, holds nothing; what could not grow has its old size.
        shape = workers.shape(jobs, workers.least[jobs])
        runs = records["outcome"] == RUNS
        held = np.where(runs, workers.least[jobs] + (records["shape"] - shape), 0.0)
        self._size[jobs] = held
        lives = world.lives.records[jobs]
        worked = np.maximum(now - lives["since"] - lives["overhead"], 0.0) * lives["rate"]
        left = np.maximum(records["predicted"] - records["done"] - np.where(runs, worked, 0.0), 1.0)
        demand = Demand(workers.speeds(jobs), left, workers.least[jobs], workers.most[jobs])
        wanted = self.policy.sizes(demand, capacity)
        return self._that_pay(demand, held, wanted, capacity)

    def _that_pay(self, demand: Demand, held: Floats, wanted: Floats, capacity: float) -> Floats:
        """Return the wanted sizes, but as they are where a change does not pay."""
        seconds = demand.seconds_left()
        rows = np.arange(held.size)
        now, then = (seconds[rows, demand.column(size)] for size in (held, wanted))
        with np.errstate(invalid="ignore"):
            keeps = (held > 0) & (wanted > held) & (now - then <= self.resize_seconds)
        sizes = np.where(keeps, held, wanted)
        free = capacity - sizes.sum()
        for j in np.flatnonzero((wanted > 0) & (wanted < held)).tolist():
            if held[j] - wanted[j] <= free:
                sizes[j] = held[j]
                free -= held[j] - wanted[j]
        return sizes
